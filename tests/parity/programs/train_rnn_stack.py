"""Stacked GRU and bidirectional LSTM on a series, sequence to sequence."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from parity import check

t = np.linspace(0, 12, 160)
series = np.sin(t) + 0.1 * np.cos(5 * t)
x = np.stack([series[i:i + 10] for i in range(64)])[..., None].astype("float32")
y = np.stack([series[i + 1:i + 11] for i in range(64)])[..., None].astype("float32")
model = keras.Sequential([
    keras.Input((10, 1)),
    layers.Bidirectional(layers.LSTM(4, return_sequences=True)),
    layers.GRU(5, return_sequences=True),
    layers.TimeDistributed(layers.Dense(1)),
])
r = np.random.RandomState(0)
model.set_weights([r.uniform(-0.4, 0.4, w.shape).astype("float32") for w in model.get_weights()])
opt = keras.optimizers.Adam(0.01)


@tf.function
def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(a, training=True) - b) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    grads, norm = tf.clip_by_global_norm(grads, 1.0)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    return loss, norm


out = [[float(v) for v in step(x[i:i + 16], y[i:i + 16])] for i in (0, 16, 32, 48)]
check("loss and norm", out, tol=5e-4)
check("predict", model(x[:1])[0, :, 0], tol=1e-3)
