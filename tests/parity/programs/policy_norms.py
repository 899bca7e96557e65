"""Other normalisations under policies: results, gradients of inputs and weights, scale and centre left out, axes."""
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)
R = np.random.RandomState(0)
x = tf.constant(R.normal(2.0, 3.0, size=(3, 4, 6)).astype("float32"))
MAKE = {"layer": lambda p: L.LayerNormalization(dtype=p), "axes": lambda p: L.LayerNormalization(axis=[1, 2], dtype=p), "bare": lambda p: L.LayerNormalization(center=False, scale=False, dtype=p),
        "group": lambda p: L.GroupNormalization(2, dtype=p), "instance": lambda p: L.GroupNormalization(-1, dtype=p), "rms": lambda p: L.RMSNormalization(dtype=p),
        "unit": lambda p: L.UnitNormalization(dtype=p)}
for policy, eps in (("mixed_bfloat16", 2.0 ** -8), ("mixed_float16", 2.0 ** -11), ("float16", 2.0 ** -11), ("float64", 1e-9)):
    for key, make in MAKE.items():
        layer = make(policy)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = layer(x)
            loss = tf.reduce_sum(tf.cast(y, tf.float32) * tf.cast(tf.range(6), tf.float32))
        check(f"{policy} {key}", [name(y), name(tape.gradient(loss, x)), [str(v.dtype) for v in layer.weights], [name(g) for g in tape.gradient(loss, layer.trainable_weights)]])
        check(f"{policy} {key}: numbers", tf.cast(y, tf.float32), tol=16 * max(eps, 1e-6))
large = tf.constant([[3e4, -3e4, 2e4, 1e4]], tf.float16)
check("squares beyond float16", tf.cast(L.LayerNormalization(dtype="mixed_float16")(large), tf.float32), tol=1e-2)
