"""SimpleRNN, LSTM, GRU, Bidirectional, TimeDistributed, states, masks."""
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers
from parity import check

r = np.random.RandomState(2)
x = r.uniform(-1, 1, (3, 5, 4)).astype("float32")


def run(layer, data=x, **more):
    if not layer.built:
        layer.build(data.shape)
        layer.set_weights([r.uniform(-0.5, 0.5, w.shape).astype("float32") for w in layer.get_weights()])
    return layer(data, **more)


check("simple", run(layers.SimpleRNN(3)), tol=2e-5)
check("lstm", run(layers.LSTM(3)), tol=2e-5)
check("lstm sequences", run(layers.LSTM(3, return_sequences=True)), tol=2e-5)
check("lstm state", list(run(layers.LSTM(3, return_state=True))), tol=2e-5)
check("gru", run(layers.GRU(3)), tol=2e-5)
check("gru not reset_after", run(layers.GRU(3, reset_after=False)), tol=2e-5)
check("backwards", run(layers.LSTM(3, go_backwards=True)), tol=2e-5)
check("bidirectional", run(layers.Bidirectional(layers.LSTM(2, return_sequences=True))), tol=2e-5)
check("bidirectional sum", run(layers.Bidirectional(layers.GRU(2), merge_mode="sum")), tol=2e-5)
check("time distributed", run(layers.TimeDistributed(layers.Dense(2))), tol=2e-5)
state = [np.full((3, 3), 0.5, "float32"), np.full((3, 3), -0.5, "float32")]
check("initial state", run(layers.LSTM(3), initial_state=state), tol=2e-5)
check("rnn of cells", run(layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)])), tol=2e-5)
mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]], bool)
check("mask", run(layers.LSTM(3), mask=mask), tol=2e-5)
model = keras.Sequential([keras.Input((None,), dtype="int32"), layers.Embedding(7, 4, mask_zero=True), layers.LSTM(3), layers.Dense(1)])
model.set_weights([r.uniform(-0.5, 0.5, w.shape).astype("float32") for w in model.get_weights()])
check("embedding masks", model(np.array([[1, 2, 0, 0], [3, 4, 5, 6]])), tol=2e-5)
check("same without the padding", model(np.array([[1, 2]])), tol=2e-5)
cell = layers.LSTMCell(3)
out, states = run(cell, x[:, 0], states=[np.zeros((3, 3), "float32")] * 2)
check("cell", out, tol=2e-5)
