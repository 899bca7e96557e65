"""training= is passed on, learning phase of Dropout and BatchNormalization in fit, predict, call."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from parity import check

seen = []


class Probe(layers.Layer):
    def call(self, x, training=None):
        seen.append(training)
        return x + 1.0 if training else x


class Outer(layers.Layer):
    def __init__(self):
        super().__init__()
        self.probe = Probe()

    def call(self, x):
        return self.probe(x)


x = np.zeros((4, 2), "float32")
model = keras.Sequential([keras.Input((2,)), Outer()])
del seen[:]
check("call", model(x)[0])
check("training", model(x, training=True)[0])
check("inference", model(x, training=False)[0])
check("seen", [bool(s) for s in seen])
check("predict", model.predict(x, verbose=0)[0])
model.compile("sgd", "mse")
check("evaluate", model.evaluate(x, x, verbose=0))
d = layers.Dropout(0.5)
check("dropout by default", d(tf.ones((2, 3))))
check("dropout changes", bool(tf.reduce_any(d(tf.ones((50, 50)), training=True) != 1.0)))
m = keras.Sequential([keras.Input((2,)), layers.BatchNormalization(momentum=0.5), layers.Dropout(0.3), layers.Dense(1, kernel_initializer="ones")])
m.compile(keras.optimizers.SGD(0.0), "mse")
data = np.array([[1.0, 2.0], [3.0, 6.0]], "float32")
m.fit(data, np.zeros((2, 1)), epochs=2, verbose=0)
check("moving mean after fit", m.layers[0].moving_mean)
first = m.predict(data, verbose=0)
check("predict is repeatable", bool(np.array_equal(first, m.predict(data, verbose=0))))
check("values", first, tol=1e-4)
noise = layers.GaussianNoise(0.5)
check("noise in training", bool(tf.reduce_any(noise(tf.ones((10,)), training=True) != 1.0)))
check("spatial", layers.SpatialDropout1D(0.5)(tf.ones((1, 4, 6)), training=True).shape)
