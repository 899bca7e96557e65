"""Element-wise functions of tf and tf.math."""
import numpy as np
import tensorflow as tf
from parity import check

x = tf.constant([-2.5, -1.0, -0.3, 0.0, 0.4, 1.0, 2.5])
p = tf.constant([0.1, 0.5, 1.0, 2.0, 7.5])
for f in (tf.abs, tf.sign, tf.square, tf.exp, tf.sin, tf.cos, tf.tan, tf.tanh, tf.sigmoid, tf.floor, tf.round,
          tf.math.ceil, tf.math.rint, tf.math.softplus, tf.math.erf, tf.math.expm1, tf.atan, tf.sinh, tf.cosh,
          tf.asinh, tf.math.negative, tf.math.log_sigmoid, tf.math.is_nan, tf.math.is_finite, tf.nn.relu):
    check(f.__name__, f(x), tol=2e-5)
for f in (tf.sqrt, tf.math.rsqrt, tf.math.log, tf.math.log1p, tf.math.reciprocal, tf.math.lgamma, tf.math.digamma):
    check("positive " + f.__name__, f(p), tol=2e-5)
u = tf.constant([-0.9, -0.5, 0.0, 0.25, 0.8])
for f in (tf.asin, tf.acos, tf.math.atanh, tf.math.erfinv):
    check("unit " + f.__name__, f(u), tol=2e-5)
check("acosh", tf.acosh(p + 1.0))
check("log of zero", tf.math.log([0.0, -1.0]))
check("divide by zero", tf.constant([1.0, -1.0, 0.0]) / 0.0)
check("clip", tf.clip_by_value(x, -1.0, 0.5))
check("clip_by_norm", tf.clip_by_norm(x, 2.0))
clipped, norm = tf.clip_by_global_norm([x, p], 3.0)
check("clip_by_global_norm", clipped)
check("global norm", norm)
check("round half to even", tf.round([0.5, 1.5, 2.5, -0.5]))
