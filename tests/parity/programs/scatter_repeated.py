"""Scattering to an index that comes more than once: updates overwrite in their order, sums add up."""
import numpy as np
import tensorflow as tf
from parity import check

at = [[1], [1], [2], [1]]
check("update", tf.tensor_scatter_nd_update(tf.zeros(4), at, [1.0, 2.0, 3.0, 4.0]))
check("add", tf.tensor_scatter_nd_add(tf.zeros(4), at, [1.0, 2.0, 3.0, 4.0]))
check("infinite", tf.tensor_scatter_nd_update(tf.zeros(3), [[0], [1], [0]], [float("-inf"), float("inf"), 2.0]))
check("truth", tf.tensor_scatter_nd_update([True, False], [[1], [1]], [True, False]))
v = tf.Variable(tf.zeros(4))
v.scatter_nd_update(at, [1.0, 2.0, 3.0, 4.0])
check("variable", v)
v = tf.Variable(tf.zeros((3, 2)))
v.scatter_update(tf.IndexedSlices(tf.constant([[1.0, 1.0], [2.0, 2.0]]), tf.constant([1, 1])))
check("slices", v)
x = np.arange(20, dtype="f4").reshape(4, 5)
places = np.array([[0, 1], [3, 4], [0, 1], [2, 2], [3, 4], [0, 1]])
check("elements", tf.tensor_scatter_nd_update(x, places, np.arange(6, dtype="f4") - 10))
check("rows", tf.tensor_scatter_nd_update(x, [[2], [0], [2]], np.arange(15, dtype="f4").reshape(3, 5)))
check("blocks", tf.tensor_scatter_nd_update(x, places.reshape(2, 3, 2), np.arange(6, dtype="f4").reshape(2, 3)))
u = tf.constant([1.0, 2.0, 3.0])
with tf.GradientTape(persistent=True) as tape:
    tape.watch(u)
    y = tf.tensor_scatter_nd_update(tf.ones(4), [[3], [1], [0]], u) * tf.constant([1.0, 10.0, 100.0, 1000.0])
check("gradient", tape.gradient(y, u))
