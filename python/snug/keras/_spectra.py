"""keras.layers.STFTSpectrogram, a convolution with waves that may learn, and MelSpectrogram, of tf.signal's functions."""
import math
import warnings

from snug._lazy import tf
from snug.keras import backend
from snug.keras._layer import Layer
from snug.keras.initializers import Initializer

_EPSILON = 1e-7
_MODES = ("log", "magnitude", "psd", "real", "imag", "angle", "stft")
NAMES = ["MelSpectrogram", "STFTSpectrogram"]


def _window(window, length, periodic, dtype):
    if not isinstance(window, str):
        made = tf.convert_to_tensor(window, dtype=dtype)
        if tuple(made.shape) != (length,):
            raise ValueError(f"The shape of `window` must be equal to [frame_length].Received: window shape={made.shape}")
        return made
    of = {"hann": tf.signal.hann_window, "hamming": tf.signal.hamming_window}.get(window)
    if of is None:
        raise NotImplementedError(f"the window {window!r} is not in Snug; give 'hann', 'hamming' or its values")
    return of(length + 1 if periodic else length, periodic=False, dtype=dtype)[:length]


class STFT(Initializer):
    """Kernels of (frame length, 1, frequencies) that make a convolution one side of a Fourier transform."""

    def __init__(self, side="real", window="hann", scaling="density", periodic=False):
        if side not in ("real", "imag"):
            raise ValueError(f"side should be 'real' or 'imag', not {side}")
        _check_scaling(scaling)
        self.side, self.window, self.scaling, self.periodic = side, window, scaling, periodic

    def __call__(self, shape, dtype=None):
        dtype = dtype or backend.floatx()
        length, _, n = shape
        time, wave = tf.range(length, dtype=dtype)[:, None, None], tf.range(n, dtype=dtype)[None, None, :]
        turn = -2.0 * time * (wave / (2 * (n - 1))) * math.pi          # rounded as Keras' is
        kernel = tf.cos(turn) if self.side == "real" else tf.sin(turn)
        if self.window is None:
            return kernel
        window = _window(self.window, length, self.periodic, dtype)
        scale = {"density": lambda: tf.sqrt(tf.reduce_sum(window * window)), "spectrum": lambda: tf.reduce_sum(tf.abs(window)),
                 None: lambda: 1.0}[self.scaling]()
        return kernel * window[:, None, None] / scale

    def get_config(self):
        return {"side": self.side, "window": self.window, "periodic": self.periodic, "scaling": self.scaling}


def _check_scaling(scaling):
    if scaling not in (None, "density", "spectrum"):
        raise ValueError(f"Scaling is invalid, it must be `None`, 'density' or 'spectrum'. Received scaling={scaling}")


class STFTSpectrogram(Layer):
    _keras_module = "keras.layers"

    def __init__(self, mode="log", frame_length=256, frame_step=None, fft_length=None, window="hann", periodic=False,
                 scaling="density", padding="valid", expand_dims=False, data_format=None, **kwargs):
        if frame_step is not None and not 1 <= frame_step <= frame_length:
            raise ValueError("`frame_step` should be a positive integer not greater than `frame_length`. Received"
                             f" frame_step={frame_step}, frame_length={frame_length}")
        if fft_length is not None and fft_length < frame_length:
            raise ValueError("`fft_length` should be not less than `frame_length`. Received"
                             f" fft_length={fft_length}, frame_length={frame_length}")
        if fft_length is not None and fft_length & -fft_length != fft_length:
            warnings.warn(f"`fft_length` is recommended to be a power of two. Received fft_length={fft_length}", stacklevel=2)
        if mode not in _MODES:
            raise ValueError(f"Output mode is invalid, it must be one of {', '.join(_MODES)}. Received: mode={mode}")
        _check_scaling(scaling)
        if padding not in ("valid", "same"):
            raise ValueError(f"Padding is invalid, it should be 'valid', 'same'. Received: padding={padding}")
        super().__init__(**kwargs)
        self.mode, self.frame_length, self.frame_step, self.fft_length = mode, frame_length, frame_step, fft_length
        self.window, self.periodic, self.scaling, self.padding = window, periodic, scaling, padding
        self.expand_dims, self.data_format = expand_dims, data_format or "channels_last"

    def build(self, input_shape):
        length = self.fft_length or 2 ** math.ceil(math.log2(self.frame_length))
        for side, other in (("real", "imag"), ("imag", "real")):
            if self.mode != other:
                made = STFT(side, self.window, self.scaling, self.periodic)
                setattr(self, f"{side}_kernel", self.add_weight(name=f"{side}_kernel", shape=(self.frame_length, 1, length // 2 + 1),
                                                                initializer=made))
        self.built = True

    def _side(self, signals, kernel):
        """(batch, time, channels) to (batch, time, frequencies, channels)."""
        channels = signals.shape[2]
        rows = tf.reshape(tf.transpose(signals, [0, 2, 1]), [-1, signals.shape[1], 1])
        made = tf.nn.conv1d(rows, tf.cast(kernel, signals.dtype), self.frame_step or self.frame_length // 2, self.padding.upper())
        return tf.transpose(tf.reshape(made, [-1, channels, *made.shape[1:]]), [0, 2, 3, 1])

    def _spectrum(self, signals):
        real = self._side(signals, self.real_kernel) if self.mode != "imag" else None
        imag = self._side(signals, self.imag_kernel) if self.mode != "real" else None
        if real is None or imag is None:
            return imag if real is None else real
        if self.mode == "angle":
            return tf.atan2(imag, real)
        if self.mode == "stft":
            return tf.concat([real, imag], 2)
        power = real * real + imag * imag
        if self.mode == "psd":
            return power + tf.pad(power[:, :, 1:-1], [[0, 0], [0, 0], [1, 1], [0, 0]])
        size = tf.sqrt(tf.maximum(power, _EPSILON))
        return size if self.mode == "magnitude" else tf.math.log(tf.maximum(size, _EPSILON))

    def call(self, inputs):
        first = self.data_format == "channels_first"
        made = self._spectrum(tf.transpose(inputs, [0, 2, 1]) if first else inputs)
        if self.expand_dims:
            return tf.transpose(made, [0, 3, 1, 2]) if first else made
        flat = tf.reshape(tf.transpose(made, [0, 1, 3, 2]), [-1, made.shape[1], made.shape[2] * made.shape[3]])
        return tf.transpose(flat, [0, 2, 1]) if first else flat

    def get_config(self):
        words = "mode frame_length frame_step fft_length window periodic scaling padding data_format expand_dims"
        return {**super().get_config(), **{word: getattr(self, word) for word in words.split()}}


class MelSpectrogram(Layer):
    _keras_module = "keras.layers"

    def __init__(self, fft_length=2048, sequence_stride=512, sequence_length=None, window="hann", sampling_rate=16000, num_mel_bins=128,
                 min_freq=20.0, max_freq=None, power_to_db=True, top_db=80.0, mag_exp=2.0, min_power=1e-10, ref_power=1.0, **kwargs):
        sequence_length = sequence_length or fft_length
        if fft_length < sequence_length:
            raise ValueError("`fft_length` must be greater than or equal to   `sequence_length`. Received: `sequence_length`="
                             f"{sequence_length}, `fft_length`={fft_length}.")
        super().__init__(**kwargs)
        self.fft_length, self.sequence_stride, self.sequence_length, self.window = fft_length, sequence_stride, sequence_length, window
        self.sampling_rate, self.num_mel_bins, self.min_freq = sampling_rate, num_mel_bins, min_freq
        self.max_freq = max_freq or int(sampling_rate / 2)
        self.power_to_db, self.top_db, self.mag_exp, self.min_power, self.ref_power = power_to_db, top_db, mag_exp, min_power, ref_power

    def build(self, input_shape=None):
        self.built = True

    def call(self, inputs):
        from snug.keras import ops
        x = tf.convert_to_tensor(inputs)
        kind = tf.as_dtype(self.compute_dtype)
        real, imag = ops.stft(tf.cast(x, kind if kind.name == "float64" else tf.float32), self.sequence_length, self.sequence_stride,
                              self.fft_length, self.window)
        size = tf.sqrt(real * real + imag * imag) ** self.mag_exp
        mel = size @ tf.signal.linear_to_mel_weight_matrix(self.num_mel_bins, self.fft_length // 2 + 1, self.sampling_rate, self.min_freq,
                                                           self.max_freq, size.dtype)
        return tf.cast(tf.linalg.matrix_transpose(self._decibels(mel) if self.power_to_db else mel), kind)

    def _decibels(self, power):
        log10 = lambda v: tf.math.log(tf.maximum(v, self.min_power)) * (1.0 / math.log(10.0))
        made = 10.0 * log10(power) - 10.0 * log10(tf.abs(tf.constant(self.ref_power, power.dtype)))
        return tf.maximum(made, tf.reduce_max(made) - self.top_db)

    def get_config(self):
        words = ("fft_length sequence_stride sequence_length window sampling_rate num_mel_bins min_freq max_freq power_to_db top_db mag_exp"
                 " min_power ref_power")
        return {**super().get_config(), **{word: getattr(self, word) for word in words.split()}}
