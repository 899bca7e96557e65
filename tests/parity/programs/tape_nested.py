"""Second and higher derivatives by nested tapes, gradient of a gradient norm."""
import tensorflow as tf
from parity import check

x = tf.Variable(2.0)
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        y = x ** 4
    dy = inner.gradient(y, x)
d2y = outer.gradient(dy, x)
check("first", dy)
check("second", d2y)

with tf.GradientTape() as t3:
    with tf.GradientTape() as t2:
        with tf.GradientTape() as t1:
            y = tf.sin(x) * x
        d1 = t1.gradient(y, x)
    d2 = t2.gradient(d1, x)
d3 = t3.gradient(d2, x)
check("three", [d1, d2, d3])

w = tf.Variable([[0.3, -0.2], [0.1, 0.4]])
data = tf.constant([[1.0, 2.0], [-1.0, 0.5]])
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        inner.watch(data)
        score = tf.reduce_sum(tf.tanh(data @ w))
    g = inner.gradient(score, data)
    penalty = tf.reduce_mean((tf.norm(g, axis=1) - 1.0) ** 2)
check("penalty", penalty)
check("gradient of the penalty", outer.gradient(penalty, w))
