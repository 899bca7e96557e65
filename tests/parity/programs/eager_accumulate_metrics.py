"""Running sums over many batches, kept as tensors and read once at the end."""
import numpy as np
import tensorflow as tf
from parity import check

total, count = tf.constant(0.0), 0
kept = []
for i in range(200):
    batch = tf.constant(np.arange(4, dtype="float32") + i)
    value = tf.reduce_mean(batch * batch)
    total += value
    count += 1
    if i % 50 == 0:
        kept.append(value)
check("mean", total / count)
check("kept", kept)
v = tf.Variable(0.0)
for i in range(300):
    v.assign_add(float(i))
check("variable", v)
x = tf.ones((2, 2))
for i in range(100):
    x = x @ tf.constant([[0.9, 0.1], [0.2, 0.8]])
check("chain", x, tol=1e-4)
data = np.arange(20, dtype="float32").reshape(10, 2)
t = tf.constant(data)
sums = [tf.reduce_sum(t[i * 3:(i + 1) * 3]) for i in range(4)]
check("slices in a loop", sums)
rate = tf.Variable(0.1)
w = tf.Variable([1.0, -1.0])
for i in range(10):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w ** 2)
    w.assign_sub(rate * tape.gradient(loss, w))
    rate.assign(0.1 / (i + 2))
check("changing rate", w)
check("loss of the last step", loss)
