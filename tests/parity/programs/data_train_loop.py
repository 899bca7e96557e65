"""A loop of one's own over a dataset."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

w = tf.Variable([[0.0], [0.0]])
x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(12, 2)
y = x.sum(1, keepdims=True)
d = Dataset.from_tensor_slices((x, y)).batch(4).repeat(5).prefetch(1)
losses = []
for a, b in d:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((a @ w - b) ** 2)
    g, = tape.gradient(loss, [w])
    w.assign_sub(0.2 * g)
    losses.append(float(loss))
check("losses", losses, 1e-4)
check("w", w, 1e-4)

@tf.function
def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(a, w) - b) ** 2)
    w.assign_sub(0.2 * tape.gradient(loss, w))
    return loss

check("steps", [float(step(a, b)) for a, b in d.take(4)], 1e-4)
check("seen", [int(n) for n, _ in d.enumerate().take(3)])
