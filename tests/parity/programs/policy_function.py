"""Several dtypes within tf.function: signatures of halves, retracing by dtype, numbers of Python, branches and loops; what does not go together."""
import numpy as np
import tensorflow as tf
from parity import check, raises

h, b, f = tf.constant([1.0, 2.5, -3.0], tf.float16), tf.constant([1.0, 2.5, -3.0], tf.bfloat16), tf.constant([1.0, 2.5, -3.0])
f32 = lambda t: tf.cast(t, tf.float32)
traces = []


@tf.function
def twice(x):
    traces.append(x.dtype.name)
    return x * 2 + 0.5


results = [twice(t) for t in (h, b, f, h, b)]
check("by dtype", [traces, [r.dtype.name for r in results], [f32(r) for r in results]])


@tf.function(input_signature=[tf.TensorSpec([None], tf.float16), tf.TensorSpec([], tf.bfloat16)])
def signed(x, s):
    return x + tf.cast(s, x.dtype), tf.cast(x, s.dtype) * s


check("by signature", [f32(r) for r in signed(h, tf.constant(2.0, tf.bfloat16))] + [r.dtype.name for r in signed(h, tf.constant(2.0, tf.bfloat16))])
raises((TypeError, ValueError), lambda: signed(f, tf.constant(2.0, tf.bfloat16)))
mixed = tf.function(lambda x, y: x + y)
raises((TypeError, ValueError, tf.errors.InvalidArgumentError), lambda: mixed(h, f))
raises((TypeError, ValueError, tf.errors.InvalidArgumentError), lambda: mixed(h, b))
raises(tf.errors.InvalidArgumentError, lambda: h + b)
raises(tf.errors.InvalidArgumentError, lambda: tf.matmul(tf.ones((2, 2), tf.float16), tf.ones((2, 2))))


@tf.function
def flow(x, n):
    total = tf.zeros_like(x)
    for k in tf.range(n):
        total += x / tf.cast(k + 1, x.dtype)
    if tf.reduce_sum(total) > 0:
        return total
    return -total


for t in (h, b):
    r = flow(t, tf.constant(3))
    check(f"loops {t.dtype.name}", [r.dtype.name, f32(r)], tol=2e-2)
check("where", [f32(tf.where(h > 0, h, tf.zeros_like(h))), tf.where(b > 0, 1, 0)])
v = tf.Variable(np.zeros(3), dtype=tf.float16)


@tf.function
def gather(x):
    v.assign_add(tf.cast(x, tf.float16))
    return v + 1


gather(f)
check("variables", [gather(f), v])
check("shared numbers", [tf.function(lambda: tf.constant(1.5, tf.float16) * 2.0)(), tf.function(lambda x: 1.0 - x)(h)])
