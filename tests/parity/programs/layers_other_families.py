"""Each recurrent, merging, normalizing, attention, regularizing and reshaping layer once."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers as L
from parity import check

x = np.sin(np.arange(2 * 5 * 4)).reshape(2, 5, 4).astype("float32")
im = np.cos(np.arange(2 * 4 * 4 * 4)).reshape(2, 4, 4, 4).astype("float32")
ids = np.array([[1, 2, 0], [3, 1, 4]])
cases = [
    (L.SimpleRNN(3, return_sequences=True), x), (L.LSTM(3), x), (L.GRU(3, return_sequences=True), x), (L.Bidirectional(L.GRU(2)), x),
    (L.RNN(L.SimpleRNNCell(3)), x), (L.RNN(L.StackedRNNCells([L.GRUCell(2), L.LSTMCell(3)])), x), (L.TimeDistributed(L.Dense(2)), x),
    (L.ConvLSTM1D(2, 2), im), (L.Dense(3, activation="selu"), x), (L.EinsumDense("abc,cd->abd", output_shape=(None, 3)), x), (L.Embedding(6, 2), ids),
    (L.BatchNormalization(), im), (L.LayerNormalization(), x), (L.GroupNormalization(2), im), (L.UnitNormalization(), x), (L.RMSNormalization(), x),
    (L.SpectralNormalization(L.Dense(2)), x[:, 0]), (L.ReLU(), x), (L.LeakyReLU(), x), (L.PReLU(), x), (L.ELU(alpha=0.5), x), (L.Softmax(), x),
    (L.Activation("gelu"), x), (L.Flatten(), im), (L.Reshape((10, 2)), x), (L.Permute((2, 1)), x), (L.RepeatVector(3), x[:, 0]), (L.Identity(), x),
    (L.Masking(), x), (L.Rescaling(2.0, 1.0), x), (L.Lambda(lambda t: t * t), x), (L.Dropout(0.5), x), (L.SpatialDropout1D(0.5), x), (L.SpatialDropout2D(0.5), im),
    (L.GaussianNoise(0.1), x), (L.GaussianDropout(0.1), x), (L.AlphaDropout(0.1), x), (L.ActivityRegularization(l2=0.1), x), (L.Resizing(2, 2), im),
    (L.CenterCrop(2, 2), im), (L.Discretization([-0.5, 0.0, 0.5]), x), (L.CategoryEncoding(5, output_mode="multi_hot"), ids),
]
for i, (layer, data) in enumerate(cases):
    layer(data)
    weights = [np.cos(np.arange(w.size)).reshape(w.shape) * 0.4 + 0.5 * (w.ndim == 1) for w in layer.get_weights()]
    if not isinstance(layer, L.SpectralNormalization):
        layer.set_weights(weights)
        y = tf.cast(layer(data), tf.float32)
        check(f"{i} {type(layer).__name__}", [y.shape, tf.reduce_sum(y), tf.reduce_sum(y * y)], tol=2e-4)
    check(f"{i} weights", sorted(w.shape for w in layer.get_weights()))
for layer in (L.Add(), L.Subtract(), L.Multiply(), L.Average(), L.Maximum(), L.Minimum(), L.Concatenate(axis=1), L.Dot(axes=2, normalize=True)):
    check(type(layer).__name__, tf.reduce_sum(layer([x, x * 0.5 + 0.1])), tol=2e-4)
for layer in (L.Attention(use_scale=True), L.AdditiveAttention()):
    check(type(layer).__name__, tf.reduce_sum(layer([x, x * 0.5])).shape)
