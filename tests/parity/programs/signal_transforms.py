"""Fourier and cosine transforms, frames, spectrograms; complex numbers in between."""
import numpy as np
import tensorflow as tf
from parity import check

r = np.random.RandomState(0)
x = r.randn(2, 12).astype("float32")


def parts(z):
    return [tf.math.real(z), tf.math.imag(z)]


check("rfft", parts(tf.signal.rfft(x)), 1e-4)
check("rfft of more", parts(tf.signal.rfft(x, [16])), 1e-4)
check("irfft", tf.signal.irfft(tf.signal.rfft(x)), 1e-4)
z = tf.signal.fft(tf.cast(x, tf.complex64))
check("fft", parts(z), 1e-4)
check("dtype", [z.dtype, z.shape])
check("ifft", tf.math.real(tf.signal.ifft(z)), 1e-4)
check("abs", tf.abs(z), 1e-4)
check("angle", tf.math.angle(tf.complex([1.0, -2.0], [1.0, 0.5])), 1e-5)
check("arithmetic", parts((z * tf.complex(0.5, 1.0) + z) / tf.complex(2.0, -1.0)), 1e-4)
check("fft2d", parts(tf.signal.fft2d(tf.cast(r.randn(3, 4).astype("float32"), tf.complex64))), 1e-4)
long = r.randn(400).astype("float32")
check("of 400", tf.abs(tf.signal.rfft(long))[:60], 1e-3)
check("shift", tf.signal.fftshift(tf.constant([0.0, 1.0, 2.0, 3.0, 4.0])))

check("hann", tf.signal.hann_window(8), 1e-5)
check("hamming", tf.signal.hamming_window(7, periodic=False), 1e-5)
check("frames", tf.signal.frame(tf.range(10), 4, 3))
check("frames padded", tf.signal.frame(tf.range(10), 4, 3, pad_end=True))
check("overlap", tf.signal.overlap_and_add(tf.ones((3, 4)), 2))
s = tf.signal.stft(long, frame_length=64, frame_step=32)
check("stft", [s.shape, tf.abs(s)[3, :10]], 1e-3)
back = tf.signal.inverse_stft(s, 64, 32, window_fn=tf.signal.inverse_stft_window_fn(32))
check("back", back[64:100] - long[64:100], 1e-3)
mel = tf.signal.linear_to_mel_weight_matrix(6, 33, 8000, 80.0, 3600.0)
check("mel", mel, 1e-3)
check("mfcc", tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(tf.abs(s)[:2] @ mel + 1e-3)), 1e-2)
check("dct", tf.signal.dct(x), 1e-4)
check("dct ortho", tf.signal.dct(x, norm="ortho"), 1e-4)
check("idct ortho", tf.signal.idct(tf.signal.dct(x, norm="ortho"), norm="ortho"), 1e-4)
v = tf.Variable(x)
with tf.GradientTape() as tape:
    y = tf.reduce_sum(tf.abs(tf.signal.rfft(v)) ** 2)
check("gradient", tape.gradient(y, v), 1e-2)
