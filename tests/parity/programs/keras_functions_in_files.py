"""Functional models with functions in them, lambdas, models and layers of one's own: listed, saved, read again."""
import copy
import os
import pickle
import tempfile

import numpy as np
import keras
from keras import layers, ops
from parity import check, raises

folder = tempfile.mkdtemp()
x = np.linspace(-1, 1, 20).reshape(5, 4).astype("float32")
i = keras.Input((4,), name="in")
h = i / 2.0 - 1.0
m = ops.mean(h, axis=-1, keepdims=True)
z = ops.concatenate([h, m], axis=-1)
z = layers.Dense(3, kernel_initializer="ones", name="dense")(z[:, 1:])
out = ops.relu(-z) * 2 + ops.reshape(ops.max(z, axis=1), (-1, 1))
model = keras.Model(i, out)
rows = model.get_config()["layers"]
check("rows", [[r["module"], r["class_name"], r["name"]] for r in rows])
check("settings", [r["config"] for r in rows if r["class_name"] in ("Mean", "Concatenate", "GetItem", "Relu")])
check("layers", [layer.name for layer in model.layers])
path = os.path.join(folder, "m.keras")
model.save(path)
check("same", bool(np.allclose(keras.models.load_model(path)(x), model(x))))
check("values", model(x))
check("clone", keras.models.model_from_json(model.to_json())(x).shape)
lam = keras.Sequential([keras.Input((4,)), layers.Lambda(lambda t: t * 3.0), layers.Dense(1, kernel_initializer="ones")])
lam.save(os.path.join(folder, "l.keras"))
raises(ValueError, lambda: keras.models.load_model(os.path.join(folder, "l.keras")))
check("trusted", keras.models.load_model(os.path.join(folder, "l.keras"), safe_mode=False)(x))


@keras.saving.register_keras_serializable(package="Mine", name="square")
def square(t):
    return t * t


@keras.saving.register_keras_serializable()
class Scaled(layers.Layer):
    def __init__(self, factor, activation=None, **kwargs):
        super().__init__(**kwargs)
        self.factor, self.activation = factor, keras.activations.get(activation)

    def build(self, shape):
        self.w = self.add_weight(name="w", shape=(shape[-1],), initializer="ones")

    def call(self, t):
        return self.activation(t * self.w * self.factor)

    def get_config(self):
        return {**super().get_config(), "factor": self.factor, "activation": keras.activations.serialize(self.activation)}


@keras.saving.register_keras_serializable()
class Net(keras.Model):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units, self.a, self.b = units, Scaled(2.0, square), layers.Dense(units)

    def call(self, t):
        return self.b(self.a(t))

    def get_config(self):
        return {**super().get_config(), "units": self.units}


net = Net(2)
net.compile("adam", "mse")
net.fit(x, np.ones((5, 2)), verbose=0)
path = os.path.join(folder, "n.keras")
net.save(path)
again = keras.models.load_model(path)
check("own model", [type(again).__name__, bool(np.allclose(again(x), net(x))), len(again.weights)])
row = keras.saving.serialize_keras_object(Scaled(1.0, square, name="s"))
check("registered", [row["module"], row["class_name"], row["registered_name"], row["config"]["activation"]["registered_name"]])
raises(ValueError, lambda: Net(2).load_weights(os.path.join(folder, "none.weights.h5")))


class Plain(layers.Layer):
    def __init__(self, units, thing=None):
        super().__init__()
        self.units = units

    def call(self, t):
        return t


check("untold", {k: v for k, v in Plain(4).get_config().items() if k != "dtype"})
raises(NotImplementedError, lambda: Plain(4, thing=object()).get_config())
copied = copy.deepcopy(model)
check("copied", bool(np.allclose(copied(x), model(x))))
check("pickled", bool(np.allclose(pickle.loads(pickle.dumps(model))(x), model(x))))
check("operations", [operation.name for operation in model.operations])
doubling = keras.Sequential([keras.Input((3,)), keras.layers.Lambda(lambda t: t * 2.0), keras.layers.Dense(1)])
check("a lambda copied", bool(np.allclose(copy.deepcopy(doubling)(np.ones((1, 3))), doubling(np.ones((1, 3))))))
check("copied before it is built", copy.deepcopy(keras.Sequential([keras.layers.Dense(1)])).built)
