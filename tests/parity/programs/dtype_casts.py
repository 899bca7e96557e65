"""tf.cast, saturate, bool, and the attributes of dtypes."""
import numpy as np
import tensorflow as tf
from parity import check

x = tf.constant([-1.7, -0.2, 0.0, 0.9, 2.5, 3.5])
check("to int", tf.cast(x, tf.int32))
check("to bool", tf.cast(x, tf.bool))
check("to double", tf.cast(x, tf.float64), tol=1e-6)
check("bool to float", tf.cast([True, False], tf.float32))
check("int to float", tf.cast(tf.range(3), tf.float32))
check("int to uint8", tf.cast(tf.constant([1, 254]), tf.uint8))
check("saturate", tf.saturate_cast(tf.constant([-5.0, 300.0]), tf.uint8))
check("same", tf.cast(x, x.dtype))
check("name", tf.float32.name)
check("is_floating", tf.float16.is_floating)
check("is_integer", tf.int8.is_integer)
check("size", tf.int64.size)
check("max", tf.int32.max)
check("min", float(tf.float32.min))
check("as_numpy_dtype", tf.float32.as_numpy_dtype is np.float32)
check("equal to numpy", tf.float32 == np.float32)
check("equal to text", tf.float32 == "float32")
check("as_dtype", tf.as_dtype("int64"))
check("as_dtype of numpy", tf.as_dtype(np.float16))
check("to int of large", tf.cast(tf.constant(16777217, tf.int64), tf.float32))
