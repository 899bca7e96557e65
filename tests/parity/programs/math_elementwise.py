"""Element-wise functions of tf and tf.math."""
import numpy as np
import tensorflow as tf
from parity import check

x = tf.constant([-2.5, -1.0, -0.3, 0.0, 0.4, 1.0, 2.5])
p = tf.constant([0.1, 0.5, 1.0, 2.0, 7.5])
for name in ("abs sign square exp sin cos tan tanh sigmoid floor round ceil rint softplus erf expm1 atan sinh cosh asinh"
             " negative log_sigmoid is_nan is_finite").split():
    check(name, getattr(tf.math, name)(x), tol=2e-5)
for name in "sqrt rsqrt log log1p reciprocal lgamma digamma".split():
    check("positive " + name, getattr(tf.math, name)(p), tol=2e-5)
u = tf.constant([-0.9, -0.5, 0.0, 0.25, 0.8])
for name in "asin acos atanh erfinv".split():
    check("unit " + name, getattr(tf.math, name)(u), tol=2e-5)
check("same function", bool(tf.reduce_all(tf.abs(x) == tf.math.abs(x))))
check("acosh", tf.acosh(p + 1.0))
check("log of zero", tf.math.log([0.0, -1.0]))
check("divide by zero", tf.constant([1.0, -1.0, 0.0]) / 0.0)
check("clip", tf.clip_by_value(x, -1.0, 0.5))
check("clip_by_norm", tf.clip_by_norm(x, 2.0))
clipped, norm = tf.clip_by_global_norm([x, p], 3.0)
check("clip_by_global_norm", clipped)
check("global norm", norm)
check("round half to even", tf.round([0.5, 1.5, 2.5, -0.5]))
