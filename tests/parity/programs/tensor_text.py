"""What print shows of tensors, variables, shapes and dtypes."""
import numpy as np
import tensorflow as tf
from parity import check

check("scalar", str(tf.constant(3.5)))
check("scalar repr", repr(tf.constant(3)))
check("vector", str(tf.constant([1.0, 2.0, 3.5])))
check("vector repr", repr(tf.constant([1, 2, 3])))
check("matrix", str(tf.constant([[1.0, 2.0], [3.0, 4.0]])))
check("matrix repr", repr(tf.constant([[1.0, 2.0], [3.0, 4.0]])))
check("bool", str(tf.constant([True, False])))
check("double", str(tf.constant([0.1], tf.float64)))
check("variable", str(tf.Variable([1.0, 2.0], name="w")))
check("variable repr", repr(tf.Variable(2, name="step")))
check("dtype", str(tf.float32))
check("dtype repr", repr(tf.int64))
check("shape", str(tf.constant([[1.0, 2.0]]).shape))
check("shape repr", repr(tf.constant([[1.0, 2.0]]).shape))
check("scalar shape", str(tf.constant(1).shape))
check("unknown shape", str(tf.TensorShape([None, 3])))
check("spec", str(tf.TensorSpec((None, 3), tf.float32)))
