"""gather, gather_nd, scatter_nd, tensor_scatter_nd_*, one_hot, embedding_lookup."""
import numpy as np
import tensorflow as tf
from parity import check, raises

p = tf.reshape(tf.range(12.0), (4, 3))
check("gather", tf.gather(p, [3, 0, 3]))
check("gather axis", tf.gather(p, [2, 0], axis=1))
check("gather matrix of indices", tf.gather(p, [[0, 1], [2, 3]]))
check("gather batch_dims", tf.gather(p, [[0], [1], [2], [0]], batch_dims=1))
check("gather_nd", tf.gather_nd(p, [[0, 0], [3, 2]]))
check("gather_nd rows", tf.gather_nd(p, [[1], [2]]))
check("scatter_nd", tf.scatter_nd([[1], [3], [1]], [5.0, 6.0, 7.0], [5]))
check("scatter_nd rows", tf.scatter_nd([[2], [0]], [[1, 1], [2, 2]], (3, 2)))
check("update", tf.tensor_scatter_nd_update(p, [[0, 1], [2, 2]], [100.0, 200.0]))
check("add", tf.tensor_scatter_nd_add(p, [[0], [0]], [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]))
check("sub", tf.tensor_scatter_nd_sub(p, [[1, 1]], [4.0]))
check("max", tf.tensor_scatter_nd_max(p, [[0, 0]], [9.0]))
check("one_hot", tf.one_hot([0, 2, 1], 3))
check("one_hot values", tf.one_hot([1, 0], depth=2, on_value=5, off_value=-1))
check("one_hot axis", tf.one_hot([[0, 1], [2, 0]], 3, axis=1))
check("one_hot beyond", tf.one_hot([-1, 3], 3))
check("embedding_lookup", tf.nn.embedding_lookup(p, [[0, 3]]))
check("dynamic_partition", tf.dynamic_partition([1, 2, 3, 4], [0, 1, 0, 1], 2))
check("dynamic_stitch", tf.dynamic_stitch([[0, 2], [1]], [[10, 30], [20]]))
x = tf.Variable(p)
with tf.GradientTape() as tape:
    y = tf.reduce_sum(tf.gather(x, [1, 1, 2]) * 2.0)
check("gradient of gather", tf.convert_to_tensor(tape.gradient(y, x)))
raises(tf.errors.InvalidArgumentError, lambda: tf.gather(p, [7]))

for dtype, on, off in ((tf.int64, 2 ** 53 + 1, -1), (tf.int16, 5, -1), (tf.uint8, 3, 0), (tf.bool, True, False), (tf.float64, 0.1, 0.5),
                       (tf.float16, 0.5, 2.0)):
    check(f"one_hot of {dtype.name}", tf.one_hot([0, 2], 3, tf.constant(on, dtype), tf.constant(off, dtype)))
check("one_hot of NumPy's", [tf.one_hot([0, 2], 3, np.int64(7)), tf.one_hot([0, 2], 3, off_value=np.int64(7))])
