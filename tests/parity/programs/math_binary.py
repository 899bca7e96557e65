"""Functions of two arguments of tf.math, with broadcasting."""
import tensorflow as tf
from parity import check, raises

a = tf.constant([[5.0, -3.0, 0.5], [2.0, 8.0, -1.5]])
b = tf.constant([2.0, -2.0, 4.0])
for name in ("add subtract multiply divide maximum minimum floordiv floormod squared_difference atan2 truediv divide_no_nan"
             " multiply_no_nan").split():
    check(name, getattr(tf.math, name)(a, b))
check("pow", tf.pow(tf.abs(a), b))
check("mod", tf.math.mod(a, b))
check("divide_no_nan", tf.math.divide_no_nan([1.0, 2.0], [0.0, 4.0]))
check("xdivy", tf.math.xdivy([0.0, 2.0], [0.0, 4.0]))
check("xlogy", tf.math.xlogy([0.0, 2.0], [0.0, 4.0]))
check("add_n", tf.add_n([a, a, a]))
check("accumulate", tf.math.accumulate_n([a, a]))
check("cross", tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]))
check("int maximum", tf.maximum([1, 5], [3, 2]))
check("int pow", tf.pow([2, 3], [3, 2]))
check("scalar first", tf.subtract(1.0, b))
check("truncatediv", tf.truncatediv([-7, 7], [2, 2]))
check("logical_and", tf.logical_and([True, False], [True, True]))
check("logical_or", tf.math.logical_or([True, False], [False, False]))
check("logical_xor", tf.math.logical_xor([True, False], [True, True]))
check("logical_not", tf.logical_not([True, False]))
raises(tf.errors.InvalidArgumentError, lambda: tf.ones((2, 3)) + tf.ones((2, 4)))
raises(tf.errors.InvalidArgumentError, lambda: tf.maximum(tf.ones((3,)), tf.ones((4,))))
