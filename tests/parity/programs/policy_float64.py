"""Whole models in float64: types of everything, a fit, a custom loop, metrics, files."""
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

tf.keras.backend.set_floatx("float64")
R = np.random.RandomState(0)
x, y = R.normal(size=(12, 3)), R.randint(0, 2, size=(12,))
inputs = keras.Input((3,))
hidden = L.LayerNormalization()(L.Dense(5, activation="gelu")(inputs))
model = keras.Model(inputs, L.Dense(2)(hidden))
rng = np.random.RandomState(1)
model.set_weights([rng.uniform(-0.5, 0.5, size=w.shape) for w in model.get_weights()])
check("types", [[str(v.dtype) for v in model.weights], [str(layer.output.dtype) for layer in model.layers], model(x).dtype.name, model(x.astype("float32")).dtype.name])
model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
history = model.fit(x, y, batch_size=4, epochs=3, shuffle=False, verbose=0).history
check("losses", [float(v) for v in history["loss"] + history["accuracy"]], tol=1e-6)
check("weights", model.get_weights(), tol=1e-6)
check("predicted", model.predict(x[:3], verbose=0), tol=1e-6)
check("slots", sorted({str(v.dtype) for v in model.optimizer.variables}))
with tf.GradientTape() as tape:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(y, model(x))
check("a loop", [loss.dtype.name, [g.dtype.name for g in tape.gradient(loss, model.trainable_weights)]])
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "m.keras")
    model.save(path)
    tf.keras.backend.set_floatx("float32")
    read = keras.models.load_model(path)
check("read", [[str(v.dtype) for v in read.weights], str(read.predict(x[:3], verbose=0).dtype)])
keras.config.set_dtype_policy("float64")
check("by policy", [L.Dense(1).compute_dtype, keras.config.floatx(), L.Dense(1)(np.ones((1, 2), "float32")).dtype.name])
keras.config.set_dtype_policy("float32")
