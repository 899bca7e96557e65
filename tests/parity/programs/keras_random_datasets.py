"""keras.random by properties, SeedGenerator; Sequence/PyDataset and generators in fit."""
import math
import numpy as np
from tensorflow import keras
from parity import check

n = keras.random.normal((100, 100), mean=1.0, stddev=2.0, seed=1)
check("normal", [n.shape, abs(float(keras.ops.mean(n)) - 1.0) < 0.1, abs(float(keras.ops.std(n)) - 2.0) < 0.1])
check("same seed", bool(np.array_equal(keras.random.uniform((3,), seed=2), keras.random.uniform((3,), seed=2))))
u = keras.random.uniform((1000,), -1.0, 1.0, seed=3)
check("uniform", [float(keras.ops.min(u)) >= -1.0, float(keras.ops.max(u)) <= 1.0])
check("randint", sorted(set(np.asarray(keras.random.randint((200,), 0, 4, seed=1)).tolist())))
g = keras.random.SeedGenerator(7)
check("generator", bool(np.array_equal(keras.random.normal((3,), seed=g), keras.random.normal((3,), seed=g))))
check("dropout", abs(float(keras.ops.mean(keras.random.dropout(keras.ops.ones((100, 100)), 0.3, seed=1))) - 1.0) < 0.05)
check("shuffle", sorted(np.asarray(keras.random.shuffle(np.arange(10), seed=1)).tolist()))
check("categorical", keras.random.categorical(np.zeros((2, 3), "float32"), 4, seed=1).shape)
check("truncated", float(keras.ops.max(keras.ops.abs(keras.random.truncated_normal((1000,), seed=1)))) <= 2.0)
x = np.linspace(-1, 1, 40).reshape(20, 2).astype("float32")
y = (x @ np.array([[1.0], [2.0]], "float32")).astype("float32")


class Batches(keras.utils.PyDataset):
    def __init__(self, size, **kwargs):
        super().__init__(**kwargs)
        self.size = size

    def __len__(self):
        return math.ceil(len(x) / self.size)

    def __getitem__(self, i):
        return x[i * self.size:(i + 1) * self.size], y[i * self.size:(i + 1) * self.size]


def generator():
    while True:
        for i in range(0, 20, 5):
            yield x[i:i + 5], y[i:i + 5]


def build():
    m = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, kernel_initializer="ones")])
    m.compile(keras.optimizers.SGD(0.1), "mse")
    return m


check("dataset", build().fit(Batches(8), epochs=2, shuffle=False, verbose=0).history["loss"], tol=1e-4)
check("generator", build().fit(generator(), steps_per_epoch=4, epochs=2, verbose=0).history["loss"], tol=1e-4)
check("evaluate", build().evaluate(Batches(8), verbose=0), tol=1e-4)
check("predict", build().predict(Batches(8), verbose=0).shape)
check("arrays", build().fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0).history["loss"], tol=1e-4)
m = build()
m.fit(x, y, batch_size=4, epochs=30, verbose=0)
check("shuffled training converges", float(m.evaluate(x, y, verbose=0)) < 0.02)
