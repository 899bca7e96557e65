"""tf.signal: frames, windows and Fourier transforms. A transform of n = a b numbers is a products of b and b of a, by matrices of
cosines and sines; so its gradients are the table's."""
import math

from snug._complex import ComplexTensor, is_complex
from snug._lazy import tf


# --- transforms -----------------------------------------------------------------------------------------
def _waves(rows, columns, period, sign, dtype):
    """cos and sin of 2 pi i k / period; i k by its remainder, so that no digits are lost."""
    i, k = tf.range(rows, dtype=tf.int64)[:, None], tf.range(columns, dtype=tf.int64)[None, :]
    at = tf.cast(tf.math.floormod(i * k, period), tf.float64) * (sign * 2 * math.pi / period)
    return ComplexTensor(tf.cast(tf.cos(at), dtype), tf.cast(tf.sin(at), dtype))


def _product(x, matrix):
    """Of rows, or of one."""
    return x @ matrix if len(x.shape) > 1 else tf.linalg.matvec(matrix, x, transpose_a=True)


def _times(x, waves):
    """The product of rows with a matrix of waves."""
    times = lambda a, b: _product(getattr(x, a), getattr(waves, b))
    return ComplexTensor(times("real", "real") - times("imag", "imag"), times("real", "imag") + times("imag", "real"))


def _factor(n):
    return next((d for d in range(math.isqrt(n), 1, -1) if n % d == 0), 1) if n > 64 else 1


def _transform(x, sign):
    """Along the last axis, of a ComplexTensor."""
    n, dtype = x.shape[-1], x.real.dtype
    a = _factor(n)
    if a == 1:
        return _times(x, _waves(n, n, n, sign, dtype))
    b, head = n // a, list(x.shape[:-1])
    turn = lambda t: tf.linalg.matrix_transpose(t)
    x = x.each(lambda t: turn(tf.reshape(t, head + [a, b])))
    x = _times(x, _waves(a, a, a, sign, dtype)) * _waves(b, a, n, sign, dtype)
    x = _times(x.each(turn), _waves(b, b, b, sign, dtype))
    return x.each(lambda t: tf.reshape(turn(t), head + [n]))


def _of(x):
    if isinstance(x, ComplexTensor):
        return x
    if is_complex(x):
        import numpy as np
        x = np.asarray(x)
        return tf.complex(np.ascontiguousarray(x.real), np.ascontiguousarray(x.imag))
    x = tf.convert_to_tensor(x)
    x = x if x.dtype.is_floating else tf.cast(x, tf.float32)
    return ComplexTensor(x, tf.zeros_like(x))


def _along(x, axes, sign):
    """Over the last `axes` axes; the inverse is divided by how many there are."""
    x, rank = _of(x), len(x.shape)
    for axis in range(rank - axes, rank):
        swap = [*range(rank)]
        swap[axis], swap[-1] = rank - 1, axis
        move = (lambda t: t) if axis == rank - 1 else (lambda t: tf.transpose(t, swap))
        x = _transform(x.each(move), sign).each(move)
        x = x.each(lambda t: t / t.shape[axis]) if sign > 0 else x
    return x


def fft(input, name=None):  # noqa: A002
    return _along(input, 1, -1)


def ifft(input, name=None):  # noqa: A002
    return _along(input, 1, 1)


def fft2d(input, name=None):  # noqa: A002
    return _along(input, 2, -1)


def ifft2d(input, name=None):  # noqa: A002
    return _along(input, 2, 1)


def fft3d(input, name=None):  # noqa: A002
    return _along(input, 3, -1)


def ifft3d(input, name=None):  # noqa: A002
    return _along(input, 3, 1)


def _fitted(x, n):
    """So many along the last axis: cut, or zeros added."""
    have = x.shape[-1]
    if n is None or n == have:
        return x
    return x[..., :n] if have > n else tf.pad(x, [[0, 0]] * (len(x.shape) - 1) + [[0, n - have]])


def _length(value):
    if value is None:
        return None
    value = value.numpy() if hasattr(value, "numpy") else value
    return int(value[-1]) if hasattr(value, "__len__") else int(value)


def rfft(input_tensor, fft_length=None, name=None):
    x = _fitted(tf.convert_to_tensor(input_tensor), _length(fft_length))
    return fft(x)[..., :x.shape[-1] // 2 + 1]


def irfft(input_tensor, fft_length=None, name=None):
    """The upper half follows from the lower one: conjugate, in the other order."""
    x = _of(input_tensor)
    n = _length(fft_length) or 2 * (x.shape[-1] - 1)
    half = x.each(lambda t: _fitted(t, n // 2 + 1))
    rest = half[..., 1:(n + 1) // 2].conj()
    whole = ComplexTensor(*(tf.concat([a, tf.reverse(b, [-1])], -1) for a, b in ((half.real, rest.real), (half.imag, rest.imag))))
    return ifft(whole).real


def rfft2d(input_tensor, fft_length=None, name=None):
    lines = rfft(input_tensor, fft_length)
    turn = lambda t: tf.linalg.matrix_transpose(t)
    rows = None if fft_length is None else _length(fft_length[:1])
    return fft(lines.each(lambda t: _fitted(turn(t), rows))).each(turn)


def fftshift(x, axes=None, name=None):
    return _shifted(x, axes, lambda n: n // 2)


def ifftshift(x, axes=None, name=None):
    return _shifted(x, axes, lambda n: -(n // 2))


def _shifted(x, axes, by):
    if isinstance(x, ComplexTensor):
        return x.each(lambda t: _shifted(t, axes, by))
    x = tf.convert_to_tensor(x)
    axes = range(len(x.shape)) if axes is None else [axes] if isinstance(axes, int) else axes
    return tf.roll(x, [by(x.shape[a]) for a in axes], list(axes))


# --- windows and frames ---------------------------------------------------------------------------------
def _cosine_window(length, periodic, a, b, dtype):
    length = int(length)
    if length == 1:
        return tf.ones((1,), dtype=dtype)
    even = 1 - length % 2
    n = length + int(bool(periodic)) * even - 1
    return a - b * tf.cos(2 * math.pi / n * tf.range(length, dtype=dtype))


def hann_window(window_length, periodic=True, dtype="float32", name=None):
    return _cosine_window(window_length, periodic, 0.5, 0.5, dtype)


def hamming_window(window_length, periodic=True, dtype="float32", name=None):
    return _cosine_window(window_length, periodic, 0.54, 0.46, dtype)


def frame(signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1, name=None):
    """Windows along an axis, which becomes two."""
    x, size, step = tf.convert_to_tensor(signal), int(frame_length), int(frame_step)
    axis %= len(x.shape)
    n = x.shape[axis]
    if pad_end:
        count = -(-n // step)
        more = max(0, (count - 1) * step + size - n)
        x = tf.pad(x, [[0, more if a == axis else 0] for a in range(len(x.shape))], constant_values=pad_value)
    else:
        count = max(0, 1 + (n - size) // step)
    places = tf.range(count)[:, None] * step + tf.range(size)[None, :]
    return tf.gather(x, places, axis=axis)


def overlap_and_add(signal, frame_step, name=None):
    """Frames laid over each other, each so many places after the last."""
    x, step = tf.convert_to_tensor(signal), int(frame_step)
    count, size = x.shape[-2:]
    places = tf.reshape(tf.range(count)[:, None] * step + tf.range(size)[None, :], (-1,))
    head = list(x.shape[:-2])
    rows = tf.transpose(tf.reshape(x, (-1, count * size)))
    made = tf.math.unsorted_segment_sum(rows, places, (count - 1) * step + size)
    return tf.reshape(tf.transpose(made), head + [(count - 1) * step + size])


def _enclosing(n):
    return 1 << max(n - 1, 0).bit_length()


def stft(signals, frame_length, frame_step, fft_length=None, window_fn=hann_window, pad_end=False, name=None):
    x = tf.convert_to_tensor(signals)
    n = _length(fft_length) or _enclosing(int(frame_length))
    frames = frame(x, frame_length, frame_step, pad_end)
    if window_fn is not None:
        frames = frames * window_fn(frame_length, dtype=x.dtype)
    return rfft(frames, [n])


def inverse_stft(stfts, frame_length, frame_step, fft_length=None, window_fn=hann_window, name=None):
    n = _length(fft_length) or _enclosing(int(frame_length))
    frames = _fitted(irfft(stfts, [n]), int(frame_length))
    if window_fn is not None:
        frames = frames * window_fn(frame_length, dtype=frames.dtype)
    return overlap_and_add(frames, frame_step)


def inverse_stft_window_fn(frame_step, forward_window_fn=hann_window, name=None):
    """The window that undoes another: over the sum of its squares where frames overlap."""
    def window(frame_length, dtype="float32"):
        size, step = int(frame_length), int(frame_step)
        forward = forward_window_fn(size, dtype=dtype)
        parts = -(-size // step)
        squares = tf.reshape(tf.pad(tf.square(forward), [[0, parts * step - size]]), (parts, step))
        return forward / tf.tile(tf.reduce_sum(squares, 0), (parts,))[:size]
    return window


# --- cosine transforms, mel -----------------------------------------------------------------------------
def dct(input, type=2, n=None, axis=-1, norm=None, name=None):  # noqa: A002
    """Type 2 and its inverse up to a factor, type 3."""
    if type not in (2, 3) or axis != -1:
        raise NotImplementedError("tf.signal.dct: Snug has types 2 and 3 along the last axis")
    x = _fitted(tf.convert_to_tensor(input), n)
    n = x.shape[-1]
    i, k = tf.range(n, dtype=x.dtype)[:, None], tf.range(n, dtype=x.dtype)[None, :]
    first = tf.cast(tf.range(n) == 0, x.dtype)
    if type == 2:
        made = 2.0 * _product(x, tf.cos(math.pi / n * (i + 0.5) * k))
        return made * (first * math.sqrt(1 / (4 * n)) + (1.0 - first) * math.sqrt(1 / (2 * n))) if norm == "ortho" else made
    x = x * (first * math.sqrt(n) * 2 + (1.0 - first) * math.sqrt(n / 2) * 2) / (2 * n) if norm == "ortho" else x
    return _product(x * (2.0 - first), tf.cos(math.pi / n * i * (k + 0.5)))


def idct(input, type=2, n=None, axis=-1, norm=None, name=None):  # noqa: A002
    return dct(input, {2: 3, 3: 2}[type], n, axis, norm)


def _mel(hertz):
    return 1127.0 * tf.math.log(1.0 + hertz / 700.0)


def linear_to_mel_weight_matrix(num_mel_bins=20, num_spectrogram_bins=129, sample_rate=8000, lower_edge_hertz=125.0, upper_edge_hertz=3800.0,
                                dtype="float32", name=None):
    """Triangles that stand evenly on the mel scale, over the bins of a spectrum; the bin of 0 hertz has none."""
    step = float(sample_rate) / 2 / (num_spectrogram_bins - 1)
    bins = _mel(tf.range(1, num_spectrogram_bins, dtype=dtype) * step)[:, None]
    first, last = _mel(tf.constant(lower_edge_hertz, dtype)), _mel(tf.constant(upper_edge_hertz, dtype))
    edges = first + (last - first) / (num_mel_bins + 1) * tf.range(num_mel_bins + 2, dtype=dtype)
    lower, centre, upper = edges[:-2][None], edges[1:-1][None], edges[2:][None]
    weights = tf.maximum(0.0, tf.minimum((bins - lower) / (centre - lower), (upper - bins) / (upper - centre)))
    return tf.pad(weights, [[1, 0], [0, 0]])


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms, name=None):
    x = tf.convert_to_tensor(log_mel_spectrograms)
    return dct(x) / math.sqrt(2.0 * x.shape[-1])
