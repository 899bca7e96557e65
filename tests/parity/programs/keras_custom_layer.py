"""Custom layers: build, call, add_weight, get_config, training, nested layers, losses."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check, raises


class Linear(keras.layers.Layer):
    def __init__(self, units=32, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer="ones", trainable=True, name="w")
        self.b = self.add_weight(shape=(self.units,), initializer="zeros", trainable=True)
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, name="calls")

    def call(self, inputs, training=None):
        if training:
            self.calls.assign_add(1.0)
        return tf.matmul(inputs, self.w) + self.b

    def get_config(self):
        config = super().get_config()
        config.update({"units": self.units})
        return config


class Block(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.one = Linear(4)
        self.two = Linear(1)

    def call(self, inputs):
        x = tf.nn.relu(self.one(inputs))
        self.add_loss(1e-2 * tf.reduce_sum(x))
        return self.two(x)


layer = Linear(3, name="mine")
check("not built", layer.built)
check("output", layer(tf.ones((2, 2))))
check("built", layer.built)
check("weights", [(w.name, tuple(w.shape)) for w in layer.weights])
check("trainable", [len(layer.trainable_weights), len(layer.non_trainable_weights)])
layer(tf.ones((2, 2)), training=True)
check("counted", layer.calls)
check("config", {k: layer.get_config()[k] for k in ("name", "trainable", "units")})
check("from_config", Linear.from_config(layer.get_config()).units)
block = Block()
check("block", block(tf.ones((3, 4))))
check("losses", block.losses)
block(tf.ones((1, 4)))
check("losses of the last call", len(block.losses))
check("weights of both", len(block.weights))
model = keras.Sequential([keras.Input((4,)), block])
check("in a model", model(np.ones((2, 4), "float32")))
model.compile("sgd", "mse")
check("loss is added", model.evaluate(np.ones((2, 4)), np.zeros((2, 1)), verbose=0), tol=1e-4)
regular = keras.layers.Dense(2, kernel_regularizer=keras.regularizers.L2(0.1), kernel_initializer="ones")
regular(tf.ones((1, 3)))
check("regularizer", regular.losses)


class Places(keras.layers.Layer):
    """Says its own shape; its inner layers are built by the symbolic call all the same."""
    def __init__(self, words):
        super().__init__(name="places")
        self.words = keras.layers.StringLookup(vocabulary=words, mask_token=None, num_oov_indices=0)
        self.table = keras.layers.Embedding(4, 3, embeddings_initializer="ones")
        self.shift = keras.Variable(np.arange(3), shape=(3,), dtype="int", trainable=False, name="shift")

    def call(self, x):
        return self.table(self.words(x)) + keras.ops.cast(self.shift, "float32")

    def compute_output_shape(self, input_shape):
        return (*input_shape, 3)


i = keras.Input((2,), dtype="string")
m = keras.Model(i, Places(["a", "b", "c"])(i))
check("inner layers of who says its shape", [[w.path for w in m.weights], m.count_params(), m.output_shape])
check("and they work", [m(tf.constant([["a", "c"]])), m.weights[-1].dtype, m.layers[-1].shift.dtype])
windows = keras.ops.reshape(keras.ops.reshape(keras.Input((4, 4, 3)), (-1, 2, 2, 3)), (-1, 2, 2, 2, 2, 3))
check("a batch that is a multiple", windows.shape)
