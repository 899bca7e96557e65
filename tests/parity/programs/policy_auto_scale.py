"""compile(auto_scale_loss=): which optimizers are wrapped, under which policies, and what they then are."""
import keras
import numpy as np
from keras import layers as L
from parity import check

x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")


class Own(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = L.Dense(1, kernel_initializer="ones")

    def call(self, inputs):
        return self.dense(inputs)


def wrapped(model):
    return [type(model.optimizer).__name__, hasattr(model.optimizer, "inner_optimizer")]


for policy in ("float32", "mixed_float16", "mixed_bfloat16", "float16", "bfloat16"):
    keras.config.set_dtype_policy(policy)
    sequential = keras.Sequential([L.Input((3,)), L.Dense(1)])
    for name, model in (("sequential", sequential), ("own", Own())):
        model.compile("adam", "mse")
        check(f"{policy} {name}", wrapped(model))
        model.compile(keras.optimizers.SGD(0.1), "mse", auto_scale_loss=True)
        check(f"{policy} {name}: asked for", wrapped(model))
        model.compile(keras.optimizers.SGD(0.1), "mse", auto_scale_loss=False)
        check(f"{policy} {name}: not wanted", wrapped(model))
    model = Own()
    model.compile("sgd", "mse")
    losses = [float(model.train_on_batch(x, y)) for _ in range(3)]
    check(f"{policy}: losses", losses, tol=2e-2)
keras.config.set_dtype_policy("float32")
mixed = keras.Sequential([L.Input((3,)), L.Dense(1, dtype="mixed_float16")])
mixed.compile("sgd", "mse")
check("a layer alone", wrapped(mixed))
named = Own(dtype="mixed_float16")
named.compile("sgd", "mse")
check("the model's own policy", [*wrapped(named), named.dtype_policy.name, named.dense.dtype_policy.name])
