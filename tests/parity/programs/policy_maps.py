"""DTypePolicyMap: layers and models that take their policies by their paths, their files, and the map as it is written."""
import os
import tempfile

import keras
import numpy as np
from keras import layers as L
from parity import check, raises

Map = keras.dtype_policies.DTypePolicyMap


class Block(L.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.first = L.Dense(units, name="first", dtype=kwargs.get("dtype"))
        self.second = L.Dense(units, name="second", dtype=kwargs.get("dtype"))

    def call(self, x):
        return self.second(self.first(x))


policies = Map(default_policy="mixed_bfloat16")
policies["block/second"] = "float32"
policies["head"] = keras.DTypePolicy("float64")
block, head, other = Block(2, dtype=policies, name="block"), L.Dense(1, dtype=policies, name="head"), L.Dense(1, dtype=policies, name="other")
for layer in (block, head, other):
    layer(np.ones((1, 3), "float32"))
check("by path", [[layer.path, layer.compute_dtype, layer.variable_dtype] for layer in (block.first, block.second, head, other)])
check("as text", [policies.name, policies.default_policy.name, [[k, policies[k].name] for k in policies]])
config = policies.get_config()
check("written", [sorted(config), sorted(config["policy_map"])])
again = Map.from_config(config)
check("read", [again.default_policy.name, again["head"].name, again["block/second"].name, again["elsewhere"].name])
both = keras.dtype_policies.deserialize(keras.dtype_policies.serialize(policies))
check("by name", [type(both).__name__, both["head"].name])
inputs = keras.Input((3,))
model = keras.Model(inputs, L.Dense(1, dtype=policies, name="head")(L.Dense(2, dtype=policies, name="body")(inputs)))
check("a model", [[layer.compute_dtype for layer in model.layers], [str(layer.output.dtype) for layer in model.layers]])
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "m.keras")
    model.save(path)
    read = keras.models.load_model(path)
check("its file", [[layer.compute_dtype for layer in read.layers], [str(v.dtype) for v in read.weights]])
keras.config.set_dtype_policy(policies)
check("as the global one", [keras.config.dtype_policy().name, L.Dense(1, name="head").compute_dtype, L.Dense(1, name="free").compute_dtype])
keras.config.set_dtype_policy("float32")
raises(ValueError, lambda: Map(default_policy=policies))
raises(ValueError, lambda: policies.__setitem__("head", "float16"))
raises((ValueError, TypeError), lambda: Map(default_policy="nothing"))
