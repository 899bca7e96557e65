"""len, iteration, unpacking, bool, int, float, index, hash of tensors."""
import numpy as np
import tensorflow as tf
from parity import check, raises

x = tf.constant([[1, 2, 3], [4, 5, 6]])
check("len", len(x))
check("rows", [row for row in x])
(a, b, c), second = x
check("unpacked", a)
check("second", second)
check("sum of rows", sum(x))
check("float", float(tf.constant(2.5)))
check("int", int(tf.constant(7)))
check("index", list(range(10))[tf.constant(3)])
check("range", [i for i in range(tf.constant(3))])
check("bool true", bool(tf.constant(True)))
check("bool of a comparison", bool(tf.reduce_sum(x) > 20))
check("if", "large" if tf.reduce_max(x) > 5 else "small")
check("zip", [int(p) * int(q) for p, q in zip(x[0], x[1])])
check("enumerate", [(i, v) for i, v in enumerate(tf.constant([3.0, 4.0]))])
check("max of tensor", max(tf.constant([3, 9, 2])))
check("format", f"{tf.constant(3.14159):.2f}")
raises(TypeError, lambda: len(tf.constant(1)))
raises(TypeError, lambda: iter(tf.constant(1)))
raises(ValueError, lambda: bool(tf.constant([True, False])))
raises(TypeError, lambda: hash(tf.constant(1)))
raises(TypeError, lambda: float(tf.constant([1.0, 2.0])))
