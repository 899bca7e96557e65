"""Embeddings under policies: tables in the variables' type, rows in the layer's, masks, gradients, ids of several types."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)
ids = np.array([[1, 2, 0, 0], [3, 1, 4, 0]])
table = np.random.RandomState(0).normal(size=(6, 3)).astype("float32")
for policy, eps in (("mixed_bfloat16", 2.0 ** -8), ("mixed_float16", 2.0 ** -11), ("bfloat16", 2.0 ** -8), ("float64", 1e-9)):
    layer = L.Embedding(6, 3, mask_zero=True, dtype=policy)
    layer.build((None, 4))
    layer.set_weights([table])
    y = layer(ids)
    check(policy, [name(y), str(layer.embeddings.dtype), layer.compute_mask(ids), layer.autocast])
    check(f"{policy}: rows", tf.cast(y, tf.float32), tol=2 * max(eps, 1e-6))
    check(f"{policy}: ids of other types", [name(layer(ids.astype(k))) for k in ("int32", "int64", "uint8", "float32")])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.cast(layer(ids), tf.float32) * 2.0)
    gradient = tf.convert_to_tensor(tape.gradient(loss, layer.embeddings))
    check(f"{policy}: gradient", [name(gradient), tf.cast(gradient, tf.float32)])
keras.config.set_dtype_policy("mixed_bfloat16")
inputs = keras.Input((4,), dtype="int32")
hidden = L.Embedding(6, 3, mask_zero=True)(inputs)
hidden = L.LSTM(2)(hidden)
model = keras.Model(inputs, L.Dense(1, dtype="float32")(hidden))
rng = np.random.RandomState(1)
model.set_weights([rng.uniform(-0.4, 0.4, size=w.shape).astype("float32") for w in model.get_weights()])
model.compile("adam", "mse")
check("a model", [[str(layer.output.dtype) for layer in model.layers], str(model.inputs[0].dtype)])
check("fitted", [float(v) for v in model.fit(ids, np.ones((2, 1), "float32"), epochs=2, verbose=0).history["loss"]], tol=3e-2)
keras.config.set_dtype_policy("float32")
