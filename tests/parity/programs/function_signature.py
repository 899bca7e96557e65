"""input_signature, get_concrete_function, None dimensions, reduce_retracing."""
import numpy as np
import tensorflow as tf
from parity import check, raises


@tf.function(input_signature=[tf.TensorSpec(shape=[None], dtype=tf.float32)])
def next_collatz(x):
    return tf.where(x % 2.0 == 0.0, x / 2.0, 3.0 * x + 1.0)


check("two", next_collatz(tf.constant([1.0, 2.0])))
check("three", next_collatz(tf.constant([1.0, 2.0, 7.0])))
check("list converts", next_collatz([4.0]))
raises(TypeError, lambda: next_collatz(tf.constant([[1.0, 2.0], [3.0, 4.0]])))
raises(TypeError, lambda: next_collatz(tf.constant([1, 2])))


@tf.function(reduce_retracing=True)
def g(x):
    return tf.reduce_sum(x)


check("relaxed", [g(tf.ones((n,))) for n in (2, 3, 4)])


@tf.function
def h(x, y):
    return x @ y


concrete = h.get_concrete_function(tf.TensorSpec((2, 3), tf.float32), tf.TensorSpec((3, None), tf.float32))
check("concrete", concrete(tf.ones((2, 3)), tf.ones((3, 4))))
check("output shape", concrete.structured_outputs.shape)
one = h.get_concrete_function(tf.constant([[1.0]]), tf.constant([[2.0]]))
check("from values", one(tf.constant([[3.0]]), tf.constant([[4.0]])))
check("python_function", h.python_function(tf.constant([[3.0]]), tf.constant([[4.0]])))

# --- the graph of a concrete function -------------------------------------------------------------------------------
kept = tf.Variable([[1.0, 2.0], [3.0, 4.0]])


@tf.function
def weighed(x, y):
    return tf.reduce_sum(tf.matmul(x, kept) * y) + 1.0


shown = weighed.get_concrete_function(tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([2], tf.float32)).graph
check("a graph", [type(shown).__name__, isinstance(shown, tf.Graph), [t.name for t in shown.inputs[:2]], shown.inputs[0].shape.as_list()])
check("its result", [[t.shape.as_list(), t.dtype.name] for t in shown.outputs])
check("its operations", [any(o.type == kind for o in shown.get_operations()) for kind in ("Placeholder", "MatMul", "Sum", "Tanh")])
check("after", weighed(tf.ones((1, 2)), tf.ones(2)))

# --- what a concrete function is called with ------------------------------------------------------------------------
@tf.function
def times(x, n):
    return x * n


thrice = times.get_concrete_function(tf.constant([1.0, 2.0]), 3)
check("a number of the signature", [thrice(tf.constant([5.0, 6.0])), thrice(tf.constant([5.0, 6.0]), 3), thrice(x=tf.constant([1.0, 0.0]))])
check("a list", thrice([1.0, 2.0], 3))
raises(TypeError, lambda: thrice(tf.constant([1.0, 2.0]), 4))
raises(TypeError, lambda: thrice(1.0))
raises(tf.errors.InvalidArgumentError, lambda: thrice(tf.constant([1, 2])))
text = times.get_concrete_function(tf.constant(1.0), tf.constant(2.0))
raises(tf.errors.InvalidArgumentError, lambda: text(tf.constant("a"), tf.constant(2.0)))

# --- shapes and dtypes that do not fit are found while a function is traced ---------------------------------------------
raises(ValueError, lambda: tf.function(lambda a, b: a @ b)(tf.ones((2, 3)), tf.ones((2, 3))))
raises(ValueError, lambda: tf.function(lambda a, b: tf.concat([a, b], 0))(tf.ones((2, 3)), tf.ones((2, 4))))
raises(ValueError, lambda: tf.function(lambda a: tf.reshape(a, (4,)))(tf.ones(3)))
raises(TypeError, lambda: tf.function(lambda a, b: a + b)(tf.ones(2), tf.ones(2, tf.int32)))
raises(tf.errors.InvalidArgumentError, lambda: tf.ones((2, 3)) @ tf.ones((2, 3)))
wrong = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3)])
wrong.compile("sgd", "mse")
raises(ValueError, lambda: wrong.fit(np.ones((4, 4)), np.ones((4, 2)), verbose=0))
