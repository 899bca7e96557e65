"""Functional models: branches, merges, shared layers, several inputs and outputs."""
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers
from parity import check, raises

r = np.random.RandomState(1)


def fill(model):
    model.set_weights([r.uniform(-0.7, 0.7, w.shape).astype("float32") for w in model.get_weights()])


a = keras.Input(shape=(4,), name="a")
b = keras.Input(shape=(2,), name="b")
shared = layers.Dense(3, activation="tanh", name="shared")
h = shared(a)
g = shared(layers.Dense(4, name="widen")(b))
merged = layers.Concatenate()([h, g])
added = layers.add([h, g])
score = layers.Dense(1, activation="sigmoid", name="score")(merged)
kind = layers.Dense(3, activation="softmax", name="kind")(added)
model = keras.Model(inputs=[a, b], outputs=[score, kind])
fill(model)
xa, xb = r.rand(5, 4).astype("float32"), r.rand(5, 2).astype("float32")
check("list", model([xa, xb]))
check("predict", model.predict([xa, xb], verbose=0))
check("dict", model({"a": xa, "b": xb}))
check("count", model.count_params())
check("names", [l.name for l in model.layers][-2:])
check("output names", model.output_names)
check("input shapes", [tuple(i.shape) for i in model.inputs])

i = keras.Input((3,))
x = layers.Dense(3, activation="relu")(i)
x = layers.Add()([x, i])
x = layers.Multiply()([x, x * 2.0 + 1.0])
x = layers.LayerNormalization()(x)
residual = keras.Model(i, x, name="residual")
fill(residual)
check("residual", residual(r.rand(4, 3).astype("float32")))
middle = keras.Model(i, residual.layers[1].output)
check("features", middle(np.ones((1, 3), "float32")))
check("operators on keras tensors", keras.Model(i, (i + 1.0) / 2.0 - i ** 2)(np.array([[1.0, 2.0, 3.0]], "float32")))
nested = keras.Sequential([keras.Input((3,)), residual, layers.Dense(1)])
fill(nested)
check("nested", nested(np.ones((2, 3), "float32")))

# --- inputs by name -------------------------------------------------------------------------------------
a, b = keras.Input((2,), name="a"), keras.Input((2,), name="b")
two = keras.Model([a, b], a - b)
check("by name", two({"b": np.ones((1, 2), "float32"), "a": np.zeros((1, 2), "float32")}))
raises(ValueError, lambda: two({"a": np.zeros((1, 2), "float32")}))
