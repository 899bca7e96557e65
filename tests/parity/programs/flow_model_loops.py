"""Loops and conditions inside Keras layers and models."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check


class Repeat(keras.layers.Layer):
    def __init__(self, times):
        super().__init__()
        self.times = times
        self.dense = keras.layers.Dense(3, activation="tanh", kernel_initializer=keras.initializers.Constant(0.2))

    def call(self, x):
        for _ in range(self.times):
            x = self.dense(x) + x
        return x


class Gate(keras.layers.Layer):
    def call(self, x, training=None):
        return tf.where(tf.reduce_mean(x, axis=-1, keepdims=True) > 0, x, tf.zeros_like(x))


x = np.array([[1.0, -0.5, 0.25], [-1.0, -2.0, 0.5]], "float32")
check("repeat", Repeat(3)(x))
model = keras.Sequential([keras.Input((3,)), Repeat(2), Gate()])
check("model", model(x))
check("predict", model.predict(x, verbose=0))


class Accumulate(keras.Model):
    def __init__(self):
        super().__init__()
        self.cell = keras.layers.Dense(2, kernel_initializer="ones", activation="sigmoid")

    def call(self, sequence):
        state = tf.zeros((tf.shape(sequence)[0], 2))
        outputs = []
        for t in range(sequence.shape[1]):
            state = self.cell(tf.concat([sequence[:, t], state], axis=-1))
            outputs.append(state)
        return tf.stack(outputs, axis=1), state


m = Accumulate()
seq = np.linspace(-1, 1, 24).reshape(2, 4, 3).astype("float32")
outs, last = m(seq)
check("outputs", outs)
check("last", last)
with tf.GradientTape() as tape:
    outs, last = m(seq)
    loss = tf.reduce_sum(last ** 2)
check("gradient", tape.gradient(loss, m.trainable_variables))
fn = tf.function(m)
check("as a function", fn(tf.constant(seq))[1])
