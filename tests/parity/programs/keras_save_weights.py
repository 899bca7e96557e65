"""get/set/save/load weights, to_json, from_json, clone_model, get_config."""
import json
import os
import tempfile
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers
from parity import check, raises


def build():
    return keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="relu", name="one"), layers.BatchNormalization(name="bn"),
                             layers.Dense(2, name="two")], name="small")


a, b = build(), build()
r = np.random.RandomState(0)
a.set_weights([r.uniform(0.1, 1, w.shape).astype("float32") for w in a.get_weights()])
x = r.rand(3, 4).astype("float32")
expected = a(x)
check("output", expected)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.weights.h5")
    a.save_weights(path)
    b.load_weights(path)
    check("loaded", b(x))
    check("all equal", all(np.array_equal(p, q) for p, q in zip(a.get_weights(), b.get_weights())))
    raises((ValueError, TypeError), lambda: a.save_weights(os.path.join(folder, "wrong.txt")))
    raises((OSError, ValueError, FileNotFoundError), lambda: b.load_weights(os.path.join(folder, "none.weights.h5")))
c = keras.models.model_from_json(a.to_json())
c.set_weights(a.get_weights())
check("from json", c(x))
check("json names", [l["config"]["name"] for l in json.loads(a.to_json())["config"]["layers"]][1:])
d = keras.models.clone_model(a)
check("clone has other weights", [w.shape for w in d.get_weights()])
d.set_weights(a.get_weights())
check("clone", d(x))
i = keras.Input((4,), name="in")
o = layers.Dense(2, name="d")(layers.Dropout(0.5, name="drop")(i))
f = keras.Model(i, o, name="f")
g = keras.Model.from_config(f.get_config())
g.set_weights(f.get_weights())
check("functional config", bool(np.allclose(f(x), g(x))))
check("layer names", [l.name for l in g.layers])
a.get_layer("one").set_weights([np.ones((4, 3)), np.zeros(3)])
check("set on a layer", a.get_layer("one").get_weights())
check("json of a functional model", [list(json.loads(f.to_json())), json.loads(f.to_json())["build_config"]])
check("json of a sequential one", [list(json.loads(a.to_json())), list(json.loads(a.to_json())["config"]), json.loads(a.to_json())["build_config"]])
a.compile(keras.optimizers.Adam(0.25, name="adam"), "mse", metrics=["mae"])
check("json when compiled", json.loads(a.to_json())["compile_config"])
again = keras.models.model_from_json(a.to_json())
check("compiled again", [again.compiled, again.optimizer.name, float(again.optimizer.learning_rate), again.loss])
check("not compiled", keras.models.model_from_json(f.to_json()).compiled)
