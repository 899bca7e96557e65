"""Variables and tensors in map functions."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

v = tf.Variable([1.0, 2.0, 3.0])
d = Dataset.range(3)
check("variable", list(d.map(lambda i: tf.gather(v, i) * 10.0)))
w = tf.constant([[1.0, 0.0], [0.0, 2.0]])
check("matmul", list(Dataset.from_tensor_slices(np.eye(2, dtype=np.float32)).map(lambda r: tf.linalg.matvec(w, r))))
check("closure", [list(d.map(lambda i, k=k: i + k)) for k in (1, 2)])
mean, std = tf.constant([0.5, 1.0]), tf.constant([2.0, 4.0])
check("normalise", list(Dataset.from_tensor_slices(np.ones((2, 2), np.float32)).map(lambda r: (r - mean) / std)))
check("one_hot", list(d.map(lambda i: tf.one_hot(i, 4))))
check("concat", list(d.map(lambda i: tf.concat([[i], [i * 2]], 0))))
check("many", list(d.map(lambda i: tf.reduce_sum(tf.linalg.diag(tf.ones(3)) * tf.cast(i, tf.float32), axis=0))))
check("logic", list(d.map(lambda i: (i > 0, tf.logical_and(i > 0, i < 2), i == 1, i != 1))))
check("math", list(d.map(lambda i: tf.exp(tf.cast(i, tf.float32)) + tf.math.log1p(tf.cast(i, tf.float32)))), 1e-5)
check("reverse", list(Dataset.from_tensor_slices(np.arange(6).reshape(2, 3)).map(lambda r: tf.reverse(r, [0]))))
check("divmod", list(d.map(lambda i: (i // 2, i % 2, -i, abs(i - 1)))))
check("sort", list(Dataset.from_tensor_slices([[3, 1, 2], [9, 7, 8]]).map(lambda r: (tf.sort(r), tf.argsort(r), tf.argmax(r)))))
check("split", list(Dataset.from_tensor_slices(np.arange(8).reshape(2, 4)).map(lambda r: tf.split(r, 2))))
check("tile", list(d.map(lambda i: tf.tile([i], [2]))))
check("cast bool", list(d.map(lambda i: tf.cast(i, tf.bool))))
