"""Built-in layers with activations, regularisers and constraints of the user's; models inside TimeDistributed."""
import numpy as np
import tensorflow as tf
from parity import check
from tensorflow import keras
from tensorflow.keras import layers

r = np.random.RandomState(0)
x = r.randn(4, 3).astype("float32")


def set_weights(model):
    model.set_weights([r.uniform(-1, 1, w.shape).astype("float32") for w in model.get_weights()])


class Shift(keras.constraints.Constraint):
    def __call__(self, w):
        return w - tf.reduce_mean(w) + 0.5


class Cubes(keras.regularizers.Regularizer):
    def __call__(self, w):
        return 0.1 * tf.reduce_sum(tf.abs(w) ** 3)


dense = layers.Dense(2, activation=lambda t: tf.sin(t) * 2)
model = keras.Sequential([keras.Input((3,)), dense, layers.Dense(1, kernel_regularizer=Cubes(), kernel_constraint=Shift(),
                                                                 bias_regularizer=lambda b: tf.reduce_sum(b))])
set_weights(model)
check("activation", dense(x))
check("losses", [float(v) for v in model.losses], 1e-5)
model.compile("sgd", "mse")
model.fit(x, x[:, :1], epochs=2, batch_size=2, shuffle=False, verbose=0)
check("constrained", float(tf.reduce_mean(model.layers[1].kernel)), 1e-5)
check("weights", model.get_weights(), 1e-5)

with tf.GradientTape() as tape:
    loss = tf.reduce_mean(model(x)) + sum(model.losses)
model.optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
check("constrained by apply", float(tf.reduce_mean(model.layers[1].kernel)), 1e-5)

inner = keras.Sequential([keras.Input((3,)), layers.Dense(2, activation="tanh")])
outer = keras.Sequential([keras.Input((5, 3)), layers.TimeDistributed(inner), layers.GRU(2)])
set_weights(outer)
series = r.randn(2, 5, 3).astype("float32")
check("model per step", outer(series), 1e-5)
check("layer per step", layers.TimeDistributed(layers.Lambda(lambda t: t * t))(series))
check("shape", outer.output_shape)

for kind in (layers.LSTM, layers.GRU, layers.SimpleRNN):
    layer = kind(2, activation=lambda t: t / (1 + tf.abs(t)), return_sequences=True)
    layer.build((None, 5, 3))
    set_weights(layer)
    check(kind.__name__, layer(series), 1e-5)
check("activation layer", layers.Dense(2, activation=layers.LeakyReLU(negative_slope=0.5), kernel_initializer="ones")(x))

steps = np.array([[True, True, False, True, False], [False, True, True, False, False]])
for kind in (layers.LSTM, layers.GRU, layers.SimpleRNN):
    layer = kind(2, activation=lambda t: t / (1 + tf.abs(t)), return_sequences=True, return_state=True, go_backwards=kind is layers.GRU)
    layer.build((None, 5, 3))
    set_weights(layer)
    check(f"{kind.__name__} masked", list(layer(series, mask=tf.constant(steps))), 1e-5)

words = np.array([[1, 2, 0, 3], [4, 0, 0, 0]])
model = keras.Sequential([keras.Input((4,), dtype="int32"), layers.Embedding(5, 3, mask_zero=True),
                          layers.LSTM(2, activation=lambda t: tf.sin(t), return_sequences=True), layers.GRU(2)])
set_weights(model)
check("masks go through", model(words), 1e-5)


class Adds(layers.Layer):
    state_size = output_size = 3

    def call(self, inputs, states):
        return inputs + states[0], [inputs + states[0]]


for hides in (False, True):
    rnn = layers.RNN(Adds(), return_sequences=True, zero_output_for_mask=hides)
    check(f"a cell, masked {hides}", rnn(series, mask=tf.constant(steps)), 1e-5)

for kind in (layers.LSTM, layers.GRU, layers.SimpleRNN):
    layer = kind(2, return_sequences=True, zero_output_for_mask=True)
    layer = kind.from_config(layer.get_config())
    layer.build((None, 5, 3))
    set_weights(layer)
    check(f"{kind.__name__}, zeros where masked", layer(series, mask=tf.constant(steps)), 1e-5)


class Tells(layers.Layer):
    """Rows that are masked are 0."""
    def call(self, inputs, mask=None):
        return inputs if mask is None else inputs * tf.cast(mask, "float32")[:, None]


check("mask per step", layers.TimeDistributed(Tells())(series, mask=tf.constant(steps)))
check("no mask per step", layers.TimeDistributed(Tells())(series))
