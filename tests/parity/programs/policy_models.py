"""Models under policies: graphs, configurations, files, and what predict gives."""
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)


def fill(model):
    rng = np.random.RandomState(2)
    model.set_weights([rng.uniform(-0.4, 0.6, size=w.shape).astype("float32") for w in model.get_weights()])
    return model


def make():
    x = L.Input((6,), name="x")
    y = L.Dense(5, activation="relu", name="a")(x)
    y = L.Concatenate(name="c")([y, L.Dense(3, name="b")(x)])
    return keras.Model(x, L.Dense(2, activation="softmax", dtype="float32", name="out")(y * 2 + 1), name="m")


data = np.random.RandomState(0).normal(size=(4, 6)).astype("float32")
for policy, eps in (("mixed_bfloat16", 2.0 ** -8), ("mixed_float16", 2.0 ** -11), ("float16", 2.0 ** -11), ("bfloat16", 2.0 ** -8)):
    keras.config.set_dtype_policy(policy)
    model = fill(make())
    check(f"{policy}: types", [[str(layer.output.dtype) for layer in model.layers], [str(w.dtype) for w in model.weights], model.dtype_policy.name])
    check(f"{policy}: predicted", model.predict(data, verbose=0), tol=8 * eps)
    rows = {row["config"]["name"]: row["config"].get("dtype") for row in model.get_config()["layers"]}
    check(f"{policy}: policies in the configuration", [rows["a"]["config"]["name"], rows["out"]["config"]["name"]])
    keras.config.set_dtype_policy("float32")
    again = keras.Model.from_config(model.get_config())
    check(f"{policy}: made again", [[str(layer.output.dtype) for layer in again.layers], again.get_layer("a").dtype_policy.name])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.keras")
        model.save(path)
        read = keras.models.load_model(path)
    check(f"{policy}: read", [[str(w.dtype) for w in read.weights], read.get_layer("a").compute_dtype, read.get_layer("out").compute_dtype])
    check(f"{policy}: predicts the same", bool((read.predict(data, verbose=0) == model.predict(data, verbose=0)).all()))
keras.config.set_dtype_policy("mixed_float16")
plain = keras.Sequential([L.Dense(3, activation="relu"), L.Dense(1)])
check("of a Sequential without an input", [name(plain(tf.ones((2, 3)))), [str(t.dtype) for t in plain.inputs]])
keras.config.set_dtype_policy("float32")
