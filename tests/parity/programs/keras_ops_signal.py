"""keras.ops on pairs of real and imaginary parts."""
import numpy as np
from keras import ops
from parity import check

r = np.random.RandomState(0)
x, y = r.randn(2, 8).astype("float32"), r.randn(2, 8).astype("float32")
check("fft", list(ops.fft((x, y))), 1e-4)
check("fft2", list(ops.fft2((x, y))), 1e-4)
check("ifft2", list(ops.ifft2(ops.fft2((x, y)))), 1e-4)
check("rfft", list(ops.rfft(x)), 1e-4)
check("rfft of more", list(ops.rfft(x, fft_length=12)), 1e-4)
check("irfft", ops.irfft(ops.rfft(x)), 1e-4)
series = r.randn(2, 64).astype("float32")
check("stft", list(ops.stft(series, 16, 8, 16)), 1e-4)
check("stft of short windows", list(ops.stft(series, 12, 8, 16, window="hamming", center=False)), 1e-4)
check("sequences", ops.extract_sequences(series[:, :10], 4, 3))
check("blocks", ops.fft2((ops.zeros((1, 4, 4)), ops.ones((1, 4, 4))))[1], 1e-4)
