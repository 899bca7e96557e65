"""map: one and several arguments, structures, constants, captured values."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

d = Dataset.range(5)
check("square", list(d.map(lambda x: x * x)))
check("cast", list(d.map(lambda x: tf.cast(x, tf.float32) / 2.0)))
check("two", list(d.map(lambda x: (x, -x))))
check("list", list(d.map(lambda x: [x, x + 1])))
check("dict", list(d.map(lambda x: {"a": x, "b": x + 1})))
check("spec", repr(d.map(lambda x: {"a": tf.cast(x, tf.float32), "b": tf.stack([x, x])}).element_spec))
pairs = Dataset.from_tensor_slices((np.arange(3.0), np.arange(3)))
check("arguments", list(pairs.map(lambda a, b: a + tf.cast(b, tf.float64))))
named = Dataset.from_tensor_slices({"x": np.arange(3), "y": np.arange(3) * 2})
check("by name", list(named.map(lambda e: e["x"] + e["y"])))
table = tf.constant([10.0, 20.0, 30.0, 40.0, 50.0])
check("captured", list(d.map(lambda i: tf.gather(table, i))))
check("captured array", list(d.map(lambda i: np.arange(5.0)[::-1].copy() * tf.cast(i, tf.float64))))
check("constant", list(d.take(2).map(lambda i: (i, 3.5, "text"))))
check("parallel", list(d.map(lambda x: x + 1, num_parallel_calls=tf.data.AUTOTUNE)))
check("parallel 4", list(d.map(lambda x: x + 2, num_parallel_calls=4, deterministic=True)))
check("unordered", sorted(int(x) for x in d.map(lambda x: x + 2, num_parallel_calls=2, deterministic=False)))
check("repr", repr(d.map(lambda x: x)))

@tf.function
def decorated(x):
    return x * 3

check("tf.function", list(d.map(decorated)))
raises(TypeError, lambda: pairs.map(lambda a: a))
