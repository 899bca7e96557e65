"""tf.function: results as eager, traced once per signature, Python side effects only when tracing."""
import numpy as np
import tensorflow as tf
from parity import check

traces = []


@tf.function
def f(a, b):
    traces.append((str(a.dtype) if tf.is_tensor(a) else a, tf.is_tensor(b)))
    return a * b + 1.0


check("result", f(tf.constant([1.0, 2.0]), tf.constant(3.0)))
check("again", f(tf.constant([5.0, 6.0]), tf.constant(4.0)))
check("traced once", len(traces))
f(tf.constant([1.0, 2.0, 3.0]), tf.constant(3.0))
check("new shape", len(traces))
f(tf.constant([1.0, 2.0], tf.float64), tf.constant(3.0, tf.float64))
check("new dtype", len(traces))
f(tf.constant([1.0, 2.0]), 3.0)
f(tf.constant([1.0, 2.0]), 3.0)
check("python number", len(traces))
f(tf.constant([1.0, 2.0]), 4.0)
check("other python number", len(traces))
f(np.ones(2, "float32"), np.float32(2.0))
check("arrays are tensors", len(traces))
check("keyword", f(b=tf.constant(3.0), a=tf.constant([1.0, 2.0])))
check("count", f.experimental_get_tracing_count())


@tf.function
def several(x, training=False):
    if training:
        x = x * 2.0
    return {"sum": tf.reduce_sum(x), "parts": (x, [x + 1.0])}


check("structure", several(tf.constant([1.0, 2.0])))
check("flag", several(tf.constant([1.0, 2.0]), training=True)["sum"])


@tf.function
def nothing(v):
    v.assign_add(1.0)


v = tf.Variable(1.0)
check("returns nothing", nothing(v))
check("side effect", v)
check("plain python result", tf.function(lambda: 5)())
