"""tf.cast to halves and back: ties, the largest, the smallest, infinities, whole numbers, truth values; saturate_cast; what is kept."""
import numpy as np
import tensorflow as tf
from parity import check

values = np.array([0.0, -0.0, 1.0, 1.0009765625, 1.00048828125, 1.00146484375, 1.0078125, 1.00390625, 1.01171875, 65504.0, 65519.0, 65520.0, -7e4, 6e-8, 2.9e-8, 3e-8, 5.96e-8,
                   6.1e-5, 1e-40, 3.38e38, 3.4e38, -3.4e38, 0.1, 1 / 3, 255.5, 2049.0, 2051.0, 257.0, 259.0], np.float32)
for kind in ("float16", "bfloat16"):
    half = tf.cast(values, kind)
    check(f"{kind} and back", [half.dtype.name, tf.cast(half, tf.float32)])
    check(f"{kind}, float64 and back", tf.cast(tf.cast(values.astype("float64"), kind), tf.float64))
    check(f"{kind} special", [str(tf.cast(tf.cast(tf.constant([np.inf, -np.inf, np.nan]), kind), tf.float32).numpy().tolist())])
    whole = tf.cast([1.9, -1.9, 100.0, 0.4], kind)
    check(f"{kind} to whole numbers", [tf.cast(whole, k) for k in ("int8", "int32", "int64", "bool")])
    check(f"whole numbers to {kind}", [tf.cast(tf.cast([1, 2049, 257, 100], k), kind) if kind == "float16" else tf.cast(tf.cast(tf.cast([1, 2049, 257, 100], k), kind), tf.float32)
                                       for k in ("int32", "int64", "uint16")])
    check(f"truth to {kind}", tf.cast(tf.cast([True, False], kind), tf.float32))
    check(f"saturated {kind}", tf.cast(tf.saturate_cast(tf.constant([1e6, -1e6, 1.5]), kind), tf.float32))
    v = tf.Variable(values[:4], dtype=kind)
    check(f"{kind} variable", [v.dtype.name, tf.cast(v, tf.float32)])
    check(f"{kind} limits", [float(tf.as_dtype(kind).max), float(tf.as_dtype(kind).min), tf.as_dtype(kind).size, tf.as_dtype(kind).is_floating])
    check(f"{kind} to the other", tf.cast(tf.cast(tf.cast([1.5, 0.1, 300.0], kind), "bfloat16" if kind == "float16" else "float16"), tf.float32))
check("the same dtype is the same", tf.cast(tf.constant([1.5], tf.float16), tf.float16))
with tf.GradientTape() as tape:
    x = tf.constant([1.0, 2.0])
    tape.watch(x)
    y = tf.reduce_sum(tf.cast(tf.cast(x, tf.float16) * tf.constant(3.0, tf.float16), tf.float32))
check("gradient through casts", tape.gradient(y, x))
