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

# The optimizer's own accumulation: in fit, in a tf.function, in a loop.
def small():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    return model, tf.constant(np.arange(24, dtype="float32").reshape(8, 3) / 10), tf.constant(np.arange(8, dtype="float32").reshape(8, 1))


def by_hand(model, x, y, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y)**2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


model, x, y = small()
model.compile(tf.keras.optimizers.Adam(0.05, gradient_accumulation_steps=2), "mse")
history = model.fit(x, y, batch_size=2, epochs=2, shuffle=False, verbose=0).history
check("accumulated in fit", [history["loss"], [w.tolist() for w in model.get_weights()], int(model.optimizer.iterations)], 1e-4)
for name, wrap in {"loop": lambda f: f, "function": tf.function}.items():
    model, x, y = small()
    step, optimizer = wrap(by_hand), tf.keras.optimizers.SGD(0.05, momentum=0.9, gradient_accumulation_steps=3)
    check("accumulated in a " + name, [float(step(model, x, y, optimizer)) for _ in range(7)], 1e-4)
