"""Initialisers that are functions, classes of the user's or arrays, on Keras' own layers."""
import numpy as np
import tensorflow as tf
from parity import check
from tensorflow import keras

layers = keras.layers


def threes(shape, dtype=None):
    return tf.ones(shape, dtype=dtype) * 3


class Ramp(keras.initializers.Initializer):
    def __init__(self, step=0.5):
        self.step = step

    def __call__(self, shape, dtype=None, **kwargs):
        return tf.reshape(tf.range(np.prod(shape), dtype=dtype) * self.step, shape)

    def get_config(self):
        return {"step": self.step}


def dense():
    return layers.Dense(2, kernel_initializer=threes, bias_initializer=keras.initializers.Constant([1.0, 2.0]))


x = tf.constant([[1.0, 2.0]])
built = dense()
built.build((None, 2))
check("built", [built.kernel.numpy(), built.bias.numpy()])
called = dense()
check("called", called(x))
traced = dense()
function = tf.function(lambda v: traced(v))
check("traced", function(x))
traced.kernel.assign(tf.zeros((2, 2)))
check("set once only", function(x))
symbolic = keras.Sequential([keras.Input((2,)), dense()])
check("symbolic", symbolic(x))
prior = layers.Dense(1, bias_initializer=keras.initializers.Constant(np.log([0.25])), kernel_initializer="ones")
check("an array of one", prior(x), 1e-6)
check("embedding", layers.Embedding(3, 2, embeddings_initializer=Ramp())(tf.constant([2, 0])))
lstm = layers.LSTM(2, kernel_initializer=Ramp(0.01), recurrent_initializer=threes, bias_initializer="zeros")
check("recurrent", lstm(tf.ones((1, 3, 2))), 1e-5)
check("recurrent weights", lstm.get_weights()[1])
conv = layers.Conv2D(1, 2, kernel_initializer=Ramp(), bias_initializer=lambda shape, dtype=None: tf.zeros(shape, dtype) - 1)
check("convolution", conv(tf.ones((1, 3, 3, 1))))
norm = layers.BatchNormalization(gamma_initializer=threes)
check("normalisation", norm(x), 1e-5)
model = keras.Sequential([keras.Input((2,)), layers.Dense(1, kernel_initializer=Ramp())])
model.compile("sgd", "mse")
check("fit", model.fit(np.ones((4, 2), "float32"), np.zeros((4, 1), "float32"), verbose=0).history["loss"], 1e-5)
check("config", layers.Dense(2, kernel_initializer=Ramp(2.0)).kernel_initializer.step)
