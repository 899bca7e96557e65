"""keras.layers.STFTSpectrogram and MelSpectrogram: modes, shapes and what learns. Windows are given by their values: names need SciPy."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check, raises

rng = np.random.default_rng(5)
x = rng.normal(size=(2, 64, 2)).astype("float32")
hann = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 15)).tolist()
for mode in ("log", "magnitude", "psd", "real", "imag", "stft"):
    layer = keras.layers.STFTSpectrogram(mode=mode, frame_length=16, frame_step=8, window=hann)
    check(mode, layer(x))
for name, settings in (("no window", {"window": None, "scaling": None}),
                       ("spectrum, longer", {"scaling": "spectrum", "fft_length": 32}), ("same", {"padding": "same", "expand_dims": True}),
                       ("odd", {"frame_length": 15, "window": hann[:15]}), ("own window", {"window": list(np.linspace(0.1, 1.0, 16))})):
    layer = keras.layers.STFTSpectrogram(**{"mode": "magnitude", "frame_length": 16, "window": hann, **settings})
    check(name, layer(x))
    check(f"{name} shape", list(layer.compute_output_shape((None, 64, 2))))
layer = keras.layers.STFTSpectrogram(frame_length=16, window=hann)
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(layer(x) ** 2)
check("weights learn", tape.gradient(loss, layer.trainable_variables), tol=1e-4)  # of logarithms: a magnitude is 0.002
check("config", {k: v for k, v in layer.get_config().items() if k not in ("name", "dtype", "trainable")})
raises(ValueError, lambda: keras.layers.STFTSpectrogram(mode="colour", window=hann))
raises(ValueError, lambda: keras.layers.STFTSpectrogram(frame_length=8, frame_step=9, window=hann))

signal = np.sin(np.arange(400) * 0.3).astype("float32") + 0.1 * rng.normal(size=(2, 400)).astype("float32")
mel = dict(fft_length=64, sequence_stride=32, sampling_rate=1000, num_mel_bins=8)
for name, settings in (("mel", {}), ("mel power", {"power_to_db": False}), ("mel of short windows", {"sequence_length": 48, "window": "hamming"}),
                       ("mel of few decibels", {"top_db": 10.0, "ref_power": 3.0, "min_freq": 50.0, "max_freq": 400})):
    layer = keras.layers.MelSpectrogram(**mel, **settings)
    check(name, layer(signal), tol=1e-4)  # decibels beside a tone 300 times as strong
check("mel of one", keras.layers.MelSpectrogram(**mel)(signal[0]), tol=1e-4)
check("mel config", {k: v for k, v in layer.get_config().items() if k not in ("name", "dtype", "trainable")})
model = keras.Sequential([keras.Input((400,)), keras.layers.MelSpectrogram(**mel), keras.layers.Reshape((-1,)),
                          keras.layers.Dense(2, kernel_initializer="ones")])
check("mel in a model", model.predict(signal, verbose=0), tol=1e-4)
check("mel in a model, shape", list(model.output_shape))
