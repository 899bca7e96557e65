"""Recurrent cells called by themselves, and one that an RNN layer shares (an autoregressive forecaster)."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from parity import check

r = np.random.RandomState(0)
x = r.rand(2, 4, 3).astype("float32")


def fill(layer):
    layer.set_weights([r.uniform(-0.5, 0.5, w.shape).astype("float32") for w in layer.get_weights()])


class FeedBack(keras.Model):
    def __init__(self, units, out_steps):
        super().__init__()
        self.out_steps = out_steps
        self.lstm_cell = layers.LSTMCell(units)
        self.lstm_rnn = layers.RNN(self.lstm_cell, return_state=True)
        self.dense = layers.Dense(3)

    def call(self, inputs, training=None):
        h, *state = self.lstm_rnn(inputs)
        prediction = self.dense(h)
        predictions = [prediction]
        for _ in range(1, self.out_steps):
            h, state = self.lstm_cell(prediction, states=state, training=training)
            prediction = self.dense(h)
            predictions.append(prediction)
        return tf.transpose(tf.stack(predictions), [1, 0, 2])


model = FeedBack(4, 3)
model(x)
fill(model)
check("weights", [w.shape for w in model.get_weights()])
check("forecast", model(x))
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(model(x) ** 2)
check("gradients", tape.gradient(loss, model.trainable_variables), tol=1e-4)
for cell in (layers.LSTMCell(3), layers.GRUCell(3), layers.SimpleRNNCell(3), layers.GRUCell(3, reset_after=False), layers.LSTMCell(3, use_bias=False)):
    cell.build((None, 3))
    fill(cell)
    states = [np.full((2, 3), 0.2, "float32")] * (2 if isinstance(cell, layers.LSTMCell) else 1)
    out, new = cell(x[:, 0], states)
    check(type(cell).__name__, out)
    check("state", [tf.convert_to_tensor(s) for s in tf.nest.flatten(new)])
    check("sizes", cell.state_size if isinstance(cell.state_size, int) else list(cell.state_size))
mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool)
e = layers.Embedding(5, 3, mask_zero=True)
e.build((None,))
fill(e)
ids = np.array([[1, 2, 0, 0], [3, 4, 1, 2]])
lstm = layers.LSTM(2)
lstm.build((None, 4, 3))
fill(lstm)
check("mask by hand", lstm(e(ids), mask=e.compute_mask(ids)))
check("mask as an array", lstm(x, mask=mask))
