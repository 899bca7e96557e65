"""Arithmetic of 16-bit floats."""
import tensorflow as tf
from parity import check

x = tf.constant([-1.7, -0.2, 0.0, 0.9, 2.5, 3.5])
check("to half", tf.cast(x, "float16"))
check("float16", tf.constant([1.0, 2.0], tf.float16) * 3)
check("sum", tf.reduce_sum(tf.cast(x, tf.float16)), tol=2e-3)
check("matmul", tf.matmul(tf.ones((2, 3), tf.float16), tf.ones((3, 2), tf.float16)))
