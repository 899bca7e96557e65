"""Files of models under policies: .keras, .weights.h5, JSON and configurations, read under another global policy."""
import json
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

data = np.random.RandomState(0).normal(size=(3, 4)).astype("float32")


@keras.saving.register_keras_serializable("policies")
class Own(L.Layer):
    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1],), initializer="ones", name="w")

    def call(self, x):
        return x * self.w


def make():
    model = keras.Sequential([L.Input((4,)), L.Dense(3, activation="relu", name="a"), Own(name="own"), L.BatchNormalization(name="n"), L.Dense(2, dtype="float32", name="out")])
    rng = np.random.RandomState(1)
    model.set_weights([rng.uniform(0.1, 0.6, size=w.shape).astype("float32") for w in model.get_weights()])
    return model


f32 = lambda arrays: [np.asarray(a, "float32") for a in arrays]
types = lambda m: [[layer.dtype_policy.name for layer in m.layers], [str(v.dtype) for v in m.weights]]
with tempfile.TemporaryDirectory() as folder:
    for policy in ("mixed_float16", "mixed_bfloat16", "float16", "bfloat16", "float64"):
        path = os.path.join(folder, policy)
        keras.config.set_dtype_policy(policy)
        model = make()
        wanted = f32([model.predict(data, verbose=0)])[0]
        model.save(path + ".keras")
        model.save_weights(path + ".weights.h5")
        text = model.to_json()
        keras.config.set_dtype_policy("float32")
        read = keras.models.load_model(path + ".keras")
        check(f"{policy}: read", types(read))
        check(f"{policy}: the same", bool((f32([read.predict(data, verbose=0)])[0] == wanted).all()))
        again = keras.models.model_from_json(text)
        again.load_weights(path + ".weights.h5")
        check(f"{policy}: from JSON", [types(again)[0] == types(read)[0], bool((f32([again.predict(data, verbose=0)])[0] == wanted).all())])
        plain = make()
        plain.load_weights(path + ".weights.h5")
        check(f"{policy}: weights into float32", [types(plain)[1], all((a == b).all() for a, b in zip(f32(plain.get_weights()), f32(model.get_weights())))])
        rows = json.loads(text)["config"]["layers"]
        check(f"{policy}: said", [row["config"]["dtype"]["config"]["name"] for row in rows if isinstance(row["config"].get("dtype"), dict)])
    keras.config.set_dtype_policy("mixed_float16")
    model = make()
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    model.fit(data, np.ones((3, 2), "float32"), epochs=2, verbose=0)
    model.save(os.path.join(folder, "trained.keras"))
    keras.config.set_dtype_policy("mixed_float16")
    read = keras.models.load_model(os.path.join(folder, "trained.keras"))
    check("with an optimizer", [type(read.optimizer).__name__, type(read.optimizer.inner_optimizer).__name__, float(read.optimizer.dynamic_scale.numpy()),
                                int(read.optimizer.iterations.numpy()), int(read.optimizer.step_counter.numpy())])
    keras.config.set_dtype_policy("float32")
    copy = keras.models.clone_model(model)
    check("cloned", types(copy))
