"""States of recurrent layers, cells of the user's in stacks, masks of symbolic tensors, pictures of open extents."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers
from parity import check

r = np.random.RandomState(0)
series = r.randn(2, 4, 3).astype("float32")


def filled(layer, shape):
    layer.build(shape)
    layer.set_weights([r.uniform(-1, 1, w.shape).astype("float32") for w in layer.get_weights()])
    return layer


lstm = filled(layers.LSTM(2, stateful=True), (2, 4, 3))
first, second = lstm(series), lstm(series)
check("goes on", second, 1e-5)
check("states", [tf.convert_to_tensor(s) for s in lstm.states], 1e-5)
check("weights", len(lstm.weights))
lstm.reset_state()
check("anew", bool(np.allclose(lstm(series), first, atol=1e-6)))
check("zeros", [s.shape for s in layers.LSTM(2).get_initial_state(3)])


class Cell(keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = self.state_size = units

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], self.units), initializer="ones", name="kernel")

    def call(self, inputs, states):
        output = tf.tanh(tf.matmul(inputs, self.kernel) * 0.3 + states[0])
        return output, [output]


check("stack", layers.RNN([Cell(3), Cell(2)], return_sequences=True)(series), 1e-5)


class Halves(keras.layers.Layer):
    def call(self, inputs):
        return keras.ops.split(inputs, 2, axis=1)

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else keras.ops.split(mask, 2, axis=1)


ids = np.array([[1, 2, 0, 0], [3, 0, 4, 0]])
a, b = Halves()(layers.Embedding(5, 2, mask_zero=True)(ids))
check("halves of a mask", [a._keras_mask, b._keras_mask])


class Share(keras.layers.Layer):
    def call(self, inputs, mask=None):
        weights = keras.ops.exp(inputs) * keras.ops.cast(keras.ops.expand_dims(mask, -1), "float32")
        return weights / keras.ops.sum(weights, axis=1, keepdims=True)


inputs = keras.Input((None,), dtype="int32")
hidden = layers.Embedding(5, 2, mask_zero=True)(inputs)
check("symbolic mask", [hidden._keras_mask is not None, layers.Dense(3)(hidden)._keras_mask is not None])
model = keras.Model(inputs, Share()(layers.Dense(1)(hidden)))
check("sums", tf.reduce_sum(model(ids), 1), 1e-5)

x = keras.Input((None, None, 3))
y = layers.Conv2D(4, 3, strides=2, padding="same")(x)
y = layers.Conv2DTranspose(2, 3, strides=2, padding="same")(layers.UpSampling2D()(y))
model = keras.Model(x, [y, layers.Flatten()(y)])
check("open", [tuple(t.shape) for t in model.outputs])
check("known", [t.shape for t in model(np.ones((1, 8, 6, 3), "float32"))])

one = keras.Input((2,), name="one")
model = keras.Model(one, [layers.Dense(1, name="p")(one), layers.Dense(2, name="q")(one)])
model.compile("sgd", ["mse", "mae"], metrics=[[keras.metrics.MeanAbsoluteError()], [keras.metrics.MeanSquaredError()]])
history = model.fit(np.ones((4, 2)), [np.ones((4, 1)), np.ones((4, 2))], verbose=0)
check("names of metrics", sorted(history.history))
model.compile("sgd", "mse", metrics={"q": ["mae"]})
check("names after compile", sorted(model.fit(np.ones((4, 2)), [np.ones((4, 1)), np.ones((4, 2))], verbose=0).history))
