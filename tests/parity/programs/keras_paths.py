"""Names of layers, variables and what optimizers keep of them; text of variables; whole shapes in summaries."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras.layers import *          # noqa: F403
from tensorflow.keras import layers
from tensorflow.keras.optimizers.schedules import ExponentialDecay
from parity import check

check("star", [LSTM.__name__, Dense.__name__, concatenate.__name__])      # noqa: F405
check("schedules", ExponentialDecay(0.1, 10, 0.5)(10))


class Block(layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.inner, self.norm = layers.Dense(units), layers.LayerNormalization()

    def build(self, shape):
        self.scale = self.add_weight(name="scale", shape=(shape[-1],), initializer="ones")
        super().build(shape)

    def call(self, x):
        return self.norm(self.inner(x * self.scale))


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.head = Block(4), layers.Dense(2)

    def call(self, x):
        return self.head(self.first(x))


net = Net()
net.compile("adam", "mse")
net.fit(np.ones((4, 4)), np.ones((4, 2)), verbose=0)
check("model's", [w.path for w in net.weights])
check("adam's", [v.path for v in net.optimizer.variables])
i = keras.Input((4,))
check("functional", [w.path for w in keras.Model(i, layers.Dense(1, name="out")(Block(4, name="block")(i))).weights])
inner = keras.Sequential([keras.Input((4,)), layers.Dense(3)], name="inner")
check("nested", [w.path for w in keras.Sequential([keras.Input((4,)), inner, layers.Dense(1)], name="outer").weights])
late = keras.Sequential([layers.Dense(3)], name="late")
late(np.ones((1, 2)))
check("late", [w.path for w in late.weights])
check("snake", [layers.ConvLSTM2D(1, 1).name, layers.ReLU().name, layers.GRU(1).name, layers.PReLU().name])
d = layers.Dense(2, kernel_initializer="ones", name="d")
d.build((None, 1))
check("text", [repr(d.kernel), str(d.bias), str(d.kernel.dtype), repr(d), repr(layers.Dropout(0.1, name="drop"))])


def shapes(model):
    lines = []
    model.summary(print_fn=lambda text, line_break=False: lines.extend(text.splitlines()))
    return [row.split("│")[2].strip() for row in lines if row.startswith("│")]


def small():
    return keras.Sequential([layers.Dense(4), layers.Dropout(0.5), layers.Dense(1)])


x, y = np.ones((10, 4), "float32"), np.ones((10, 1), "float32")
model = small()
check("unbuilt", shapes(model))
model(x)
check("called", shapes(model))
model = small()
model.compile("sgd", "mse")
model.fit(x, y, verbose=0)
check("fitted", shapes(model))
norm = layers.Normalization()
norm.adapt(np.arange(12.0).reshape(4, 3))
check("weights of normalization", [(w.name, tuple(w.shape), w.dtype, w.numpy()) for w in norm.weights])
norm.adapt(tf.data.Dataset.from_tensor_slices(np.arange(24.0).reshape(8, 3) ** 2).batch(3))
check("in batches", [norm.mean, norm.variance, int(norm.count)], tol=1e-4)
check("normalized", norm(np.ones((2, 3))))
p, q = keras.Input((2,), name="p"), keras.Input((3,), name="q")
both = layers.Concatenate(name="c")([layers.Dense(2, name="h")(q), p])
check("two inputs", [layer.name for layer in keras.Model([p, q], layers.Dense(1, name="o")(both)).layers])
e = layers.Embedding(3, 2, weights=[np.arange(6.0).reshape(3, 2)], trainable=False)
check("given weights", e(np.array([[0, 2]])))
a = keras.initializers.RandomNormal()
check("one initializer", bool(np.array_equal(a((3, 2)), a((3, 2)))))
