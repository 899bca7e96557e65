"""Random layers, initialisers and draws in halves: types, ranges, means; dropout's zeros and scale."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)
f32 = lambda t: tf.cast(t, tf.float32).numpy()
ones = np.ones((200, 50), "float32")
for policy in ("mixed_bfloat16", "mixed_float16", "float16", "bfloat16"):
    for make in (lambda: L.Dropout(0.5, seed=1, dtype=policy), lambda: L.SpatialDropout1D(0.5, seed=1, dtype=policy), lambda: L.AlphaDropout(0.5, seed=1, dtype=policy),
                 lambda: L.GaussianNoise(0.1, seed=1, dtype=policy), lambda: L.GaussianDropout(0.1, seed=1, dtype=policy)):
        layer = make()
        given = ones[:, None] if isinstance(layer, L.SpatialDropout1D) else ones
        y = layer(given, training=True)
        check(f"{policy} {type(layer).__name__}", [name(y), name(layer(given, training=False)), abs(float(f32(y).mean()) - 1) < 0.1])
    dropped = f32(L.Dropout(0.5, seed=1, dtype=policy)(ones, training=True))
    check(f"{policy}: dropout", sorted({float(v) for v in dropped.ravel()}))
for kind in ("float16", "bfloat16", "float64"):
    draws = [keras.random.uniform((500,), dtype=kind, seed=1), keras.random.normal((500,), dtype=kind, seed=1), keras.random.truncated_normal((500,), dtype=kind, seed=1),
             tf.random.uniform((500,), dtype=kind), tf.random.normal((500,), dtype=kind), tf.random.stateless_uniform((500,), [1, 2], dtype=kind)]
    check(f"draws in {kind}", [[name(d) for d in draws], [bool(abs(f32(d).mean() - m) < 0.2) for d, m in zip(draws, (0.5, 0, 0, 0.5, 0, 0.5))],
                               bool((f32(draws[0]) < 1).all()) or kind != "float64"])
    made = [keras.initializers.get(k)((40, 30), dtype=kind) for k in ("glorot_uniform", "he_normal", "zeros", "ones", "lecun_normal")]
    check(f"initialisers in {kind}", [[name(m) for m in made], [bool(f32(m).std() > 0) for m in made]])
mask = keras.random.dropout(tf.ones((100,), tf.float16), 0.25, seed=3)
check("dropout by itself", [name(mask), sorted({round(float(v), 2) for v in f32(mask)})])
