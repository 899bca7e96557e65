"""tf.sparse: made, moved, added, multiplied; gradients of values; tf.sets."""
import tensorflow as tf
from parity import check, raises

a = tf.sparse.SparseTensor([[0, 2], [3, 4]], [31.0, 2.0], [4, 6])
b = tf.sparse.SparseTensor([[0, 2], [3, 0]], [56.0, 38.0], [4, 6])


def both(name, s):
    check(name + " indices", s.indices)
    check(name + " values", s.values)
    check(name + " shape", s.dense_shape)


both("add", tf.sparse.add(a, b))
both("concat", tf.sparse.concat(1, [a, b]))
both("slice", tf.sparse.slice(a, [0, 1], [2, 4]))
both("transpose", tf.sparse.transpose(b))
both("reshape", tf.sparse.reshape(a, [2, -1]))
both("expand", tf.sparse.expand_dims(a, 1))
both("retain", tf.sparse.retain(a, [False, True]))
both("eye", tf.sparse.eye(2, 3))
both("maximum", tf.sparse.maximum(a, b))
both("reorder", tf.sparse.reorder(tf.sparse.SparseTensor([[1, 0], [0, 1]], [1, 2], [2, 2])))
both("map_values", tf.sparse.map_values(tf.add, a, 5.0))
filled, empty = tf.sparse.fill_empty_rows(a, -1.0)
both("filled", filled)
check("empty rows", empty)
check("dense", tf.sparse.to_dense(a))
check("dense, -1 elsewhere", tf.sparse.to_dense(a, -1.0))
both("from dense", tf.sparse.from_dense([[1, 0, 0, 8], [0, 0, 3, 0]]))
check("printed", str(tf.sparse.SparseTensor([[0, 1]], [7], [2, 2])))
check("softmax", tf.sparse.softmax(tf.sparse.SparseTensor([[0, 0], [0, 1], [1, 1]], [1.0, 2.0, 3.0], [2, 2])).values)
check("reduce_sum", tf.sparse.reduce_sum(a, 1))
check("reduce_max", tf.sparse.reduce_max(a, 1))
dense = tf.reshape(tf.range(12.0), (6, 2))
values = tf.Variable([1.0, 2.0])
with tf.GradientTape() as tape:
    product = tf.sparse.sparse_dense_matmul(tf.sparse.SparseTensor([[0, 2], [3, 4]], values * 1.0, [4, 6]), dense)
    loss = tf.reduce_sum(product * product)
check("product", product)
check("gradient of values", tape.gradient(loss, values))
raises(tf.errors.InvalidArgumentError, lambda: tf.sparse.sparse_dense_matmul(a, tf.ones((5, 2))))
both("intersection", tf.sets.intersection([[1, 2, 3], [4, 5, 6]], [[2, 3, 9], [4, 0, 1]]))
both("union", tf.sets.union([[1, 2]], [[2, 3]]))
both("difference", tf.sets.difference([[1, 2, 3]], [[2]]))
check("size", tf.sets.size(tf.sparse.from_dense([[1, 2], [0, 3]])))
check("in another order", tf.sparse.to_dense(tf.SparseTensor([[1], [0]], [10, 20], [2]), validate_indices=False))
check("of truth", tf.sparse.to_dense(tf.SparseTensor([[0], [1]], [True, False], [3]), default_value=True))
check("texts by a mask", tf.boolean_mask(tf.constant([["a", "b"], ["c", "d"]]), [True, False], axis=1).numpy().tolist())
