"""Gradient accumulation over 4 batches gives the step of one large batch."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check

r = np.random.RandomState(5)
x = r.uniform(-1, 1, (32, 3)).astype("float32")
y = r.uniform(-1, 1, (32, 1)).astype("float32")
start = None


def build():
    global start
    m = keras.Sequential([keras.Input((3,)), keras.layers.Dense(6, activation="tanh"), keras.layers.Dense(1)])
    start = start or [r.uniform(-0.8, 0.8, w.shape).astype("float32") for w in m.get_weights()]
    m.set_weights(start)
    return m


def gradients(m, xs, ys):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(m(xs) - ys))
    return loss, tape.gradient(loss, m.trainable_variables)


small, large = build(), build()
opt_small, opt_large = keras.optimizers.Adam(0.02), keras.optimizers.Adam(0.02)
for step in range(3):
    accumulated = [tf.Variable(tf.zeros_like(v), trainable=False) for v in small.trainable_variables]
    total = 0.0
    for i in range(4):
        loss, grads = gradients(small, x[8 * i:8 * i + 8], y[8 * i:8 * i + 8])
        total += float(loss) / 4
        for a, g in zip(accumulated, grads):
            a.assign_add(g / 4.0)
    opt_small.apply_gradients(zip(accumulated, small.trainable_variables))
    loss, grads = gradients(large, x, y)
    opt_large.apply_gradients(zip(grads, large.trainable_variables))
    check("small batches", total)
    check("large batch", loss)
check("weights", small.get_weights(), tol=1e-4)
check("the same", all(np.allclose(p, q, atol=1e-4) for p, q in zip(small.get_weights(), large.get_weights())))
