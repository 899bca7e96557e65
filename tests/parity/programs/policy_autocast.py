"""What a layer casts of what it is given: positions, names, lists, dicts, whole numbers, truth values, None; and with autocast off."""
import keras
import numpy as np
import tensorflow as tf
from parity import check

kind = lambda t: None if t is None else str(tf.as_dtype(t.dtype).name) if hasattr(t, "dtype") else type(t).__name__
seen = []


class Look(keras.layers.Layer):
    def call(self, x, other=None, scale=1.0, flags=None, training=False):
        seen.append([tf.nest.map_structure(kind, x), tf.nest.map_structure(kind, other) if other is not None else None, kind(scale), kind(flags), training])
        return tf.nest.flatten(x)[0]


f = tf.ones((2, 2))
d, i, b, h = tf.cast(f, tf.float64), tf.ones((2, 2), tf.int32), tf.constant([True, False]), tf.cast(f, tf.float16)
for policy in ("mixed_bfloat16", "float16", "float32", "float64"):
    for autocast in (True, False):
        layer = Look(dtype=policy, autocast=autocast)
        for given, more in ((f, {}), ([f, d], {}), ({"a": f, "b": i}, {}), ((f, (h, i)), {}), (f, {"other": d}), (f, {"scale": 2.0}), (f, {"flags": b}), (i, {"training": True}),
                            (np.ones((2, 2), "float32"), {}), (np.ones((2, 2)), {})):
            layer(given, **more)
        check(f"{policy} {'cast' if autocast else 'as it is'}", seen)
        seen.clear()


class Inner(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.look = Look(dtype="float32")

    def call(self, x):
        return self.look(x) + tf.cast(x, tf.float32)


y = Inner(dtype="mixed_float16")(f)
check("a layer in float32 within", [seen[-1], kind(y)])
check("said of itself", [Look(dtype="mixed_float16").compute_dtype, Look(dtype="mixed_float16").dtype, Look(dtype="mixed_float16").variable_dtype,
                         Look(dtype="mixed_float16", autocast=False).autocast, Look(dtype="float16").input_dtype])
