"""float16: computed as float32 and rounded; a wider tensor beside it is refused."""
import numpy as np
import tensorflow as tf
from parity import check, raises

h = tf.cast([1.0, 2.5, -3.25], tf.float16)
check("sum", h + h)
check("number", [h * 2, h - 1.0, 2.0 / h, -h, h ** 2])
check("rounded", tf.constant(0.1, tf.float16) + tf.constant(0.2, tf.float16))
check("reduce", [tf.reduce_sum(h), tf.reduce_max(h)])
check("product", tf.matmul(tf.ones((2, 3), tf.float16), tf.ones((3, 1), tf.float16)))
check("functions", [tf.nn.relu(h), tf.sqrt(tf.abs(h)), tf.maximum(h, 0.0)])
check("compare", [h > 0, tf.argmax(h)])
check("shapes", [tf.reshape(h, (3, 1)), tf.concat([h, h], 0), h[1:], tf.zeros_like(h), tf.stack([h, h])])
check("wide", tf.cast(h, tf.float32) * 1.5)
raises(tf.errors.InvalidArgumentError, lambda: h + tf.constant(1.0))
v = tf.Variable(np.ones(3, np.float16))
v.assign_add(h)
v.assign_sub(np.ones(3, np.float16))
check("variable", v)
with tf.GradientTape() as tape:
    tape.watch(h)
    y = tf.reduce_sum(h * h) + tf.reduce_sum(h)
check("gradient", tape.gradient(y, h))
rows = tf.IndexedSlices(tf.ones((3, 2)), tf.constant([0, 2, 0]), dense_shape=tf.constant([3, 2]))
check("slices", tf.convert_to_tensor(rows))
check("numbers are rounded, too", [h * 1.1, h + 0.1, 1.1 / h, h - 0.1, 0.1 - h, h / 3.3, tf.maximum(h, 0.3)])
check("of bfloat16", [tf.cast(v, tf.float32) for v in (tf.cast(h, tf.bfloat16) * 1.1, tf.cast(h, tf.bfloat16) + 0.1)], tol=1e-6)
