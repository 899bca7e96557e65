"""Functions that scripts seldom use."""
import numpy as np
import tensorflow as tf
from parity import check

r = np.random.RandomState(0)
x = tf.constant(r.uniform(-1, 1, (1, 5, 6, 2)), tf.float32)
check("weighted_moments", list(tf.nn.weighted_moments(x, [1, 2], tf.ones_like(x))))
check("normalize_moments", list(tf.nn.normalize_moments(tf.constant(4.0), tf.constant([8.0]), tf.constant([20.0]), None)))
check("sufficient_statistics", [float(t) for t in tf.nn.sufficient_statistics(x[0, 0, :, 0], [0])[:3]])
check("bitwise and", tf.bitwise.bitwise_and([5, 6], [3, 3]))
check("left shift", tf.bitwise.left_shift([1, 2], [3, 1]))
m = tf.constant([[4.0, 1.0], [1.0, 3.0]])
check("adjoint", tf.linalg.adjoint(m))
x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
check("polyval", tf.math.polyval([tf.constant(2.0), tf.constant(1.0)], tf.constant(3.0)))
check("cumulative", tf.math.cumulative_logsumexp(x[0]))
check("unravel", tf.unravel_index([1, 5], [2, 3]))
check("shape_n", [s.numpy().tolist() for s in tf.shape_n([x, x[0]])])
v = tf.Variable(2.0)
with tf.GradientTape() as tape:
    y = tf.sign(v)
check("gradient of the sign", tape.gradient(y, v))
