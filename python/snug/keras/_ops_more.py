"""keras.ops that are a few others of the table."""
import math

from snug import _C
from snug._given import default_only
from snug._lazy import tf


def _op(name):
    from snug.keras import ops
    return getattr(ops, name)


def _float(x):
    x = tf.convert_to_tensor(x)
    return x if x.dtype.is_floating else tf.cast(x, "float32")


def ndim(x):
    return len(x.shape) if hasattr(x, "shape") else len(tf.convert_to_tensor(x).shape)


def dtype(x):
    kind = x.dtype
    return kind if isinstance(kind, str) else kind.name


def get_item(x, key):
    return x[key]


# --- windows --------------------------------------------------------------------------------------------
def _cosines(n, parts):
    if n == 1:
        return tf.ones((1,))
    at = tf.range(n, dtype="float32") * (2 * math.pi / (n - 1))
    return sum((a * tf.cos(at * k) for k, a in enumerate(parts[1:], 1)), tf.fill((n,), float(parts[0])))


def hanning(x):
    return _cosines(int(x), (0.5, -0.5))


def hamming(x):
    return _cosines(int(x), (0.54, -0.46))


def blackman(x):
    return _cosines(int(x), (0.42, -0.5, 0.08))


def bartlett(x):
    n = int(x)
    return tf.ones((1,)) if n == 1 else 1.0 - tf.abs(tf.range(n, dtype="float32") * (2 / (n - 1)) - 1.0)


def i0(x):
    """The modified Bessel function of order 0, by its series and, for large numbers, by Chebyshev's of Abramowitz and Stegun 9.8."""
    x = _float(x)
    size = tf.abs(x)
    t, u = tf.square(size / 3.75), 3.75 / tf.maximum(size, 3.75)
    small = tf.math.polyval([tf.constant(c, x.dtype) for c in (0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0)], t)
    large = tf.math.polyval([tf.constant(c, x.dtype) for c in (0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281, -0.00157565,
                                                               0.00225319, 0.01328592, 0.39894228)], u)
    return tf.where(size < 3.75, small, tf.exp(size) / tf.sqrt(tf.maximum(size, 3.75)) * large)


def kaiser(x, beta):
    n = int(x)
    if n < 2:
        return tf.ones((n,))
    at = tf.range(n, dtype="float32") * (2 / max(n - 1, 1)) - 1.0
    return i0(beta * tf.sqrt(tf.maximum(1.0 - tf.square(at), 0.0))) / i0(tf.constant(float(beta)))


# --- making, cutting, ordering --------------------------------------------------------------------------
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """The table's, where both ends are numbers; of tensors its points are a tensor, too, so that nobody has to look at them."""
    if retstep or axis != 0 or not (_C.is_tensor(start) or _C.is_tensor(stop)):
        return _C.function("keras.ops.linspace")(start, stop, num, endpoint=endpoint, retstep=retstep, dtype=dtype, axis=axis)
    start, stop = (_float(tf.convert_to_tensor(v)) for v in (start, stop))
    if len(start.shape) or len(stop.shape):
        return _C.function("keras.ops.linspace")(start, stop, num, endpoint=endpoint, dtype=dtype, axis=axis)
    made = start + (stop - start) * (tf.cast(tf.range(num), start.dtype) / max(num - 1 if endpoint else num, 1))
    return made if dtype is None else tf.cast(made, dtype)


def nonzero(x):
    """Indices for each axis, in a list also where there is one."""
    found = _C.function("keras.ops.nonzero")(x)
    return [found] if _C.is_tensor(found) else list(found)


# Of the same name as a row of the table, which they go on to.
OVER = ("linspace", "nonzero", "softmax", "log_softmax", "sort", "argsort", "fabs", "where")


def _flat(name, x, axis):
    """A function of the table; axis=None is over all elements as one row."""
    function = _C.function("keras.ops." + name)
    return function(x, axis=axis) if axis is not None else function(tf.reshape(tf.convert_to_tensor(x), [-1]))


def softmax(x, axis=-1):
    return tf.reshape(_flat("softmax", x, axis), tf.shape(x))


def log_softmax(x, axis=-1):
    return tf.reshape(_flat("log_softmax", x, axis), tf.shape(x))


def sort(x, axis=-1):
    return _flat("sort", x, axis)


def argsort(x, axis=-1):
    return _flat("argsort", x, axis)


def fabs(x):
    return tf.abs(_float(x))


def where(condition, x1=None, x2=None):
    if x1 is None and x2 is None:
        return nonzero(condition)
    return _C.function("keras.ops.where")(condition, x1, x2)


def logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0):
    powers = _op("linspace")(start, stop, num, endpoint=endpoint, dtype=dtype, axis=axis)
    return tf.pow(tf.cast(base, powers.dtype), powers)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    from snug.keras import config
    start, stop = (tf.cast(x, dtype or config.floatx()) for x in (start, stop))
    logs = _op("linspace")(tf.math.log(tf.abs(start)), tf.math.log(tf.abs(stop)), num, endpoint=endpoint, dtype=dtype, axis=axis)
    return tf.exp(logs) * tf.sign(start)


def vander(x, N=None, increasing=False):
    x = tf.convert_to_tensor(x)
    n = x.shape[0] if N is None else N
    kind = x.dtype if x.dtype.is_floating else tf.float64
    powers = tf.cast(tf.range(n), kind)
    return tf.cast(tf.pow(tf.cast(x, kind)[:, None], powers if increasing else powers[::-1]), x.dtype)


def diagflat(x, k=0):
    return _op("diag")(tf.reshape(x, (-1,)), k=k)


def dstack(xs):
    parts = [tf.convert_to_tensor(x) for x in xs]
    deep = [x[None, :, None] if len(x.shape) == 1 else x[..., None] if len(x.shape) == 2 else tf.reshape(x, (1, 1, 1)) if not x.shape else x
            for x in parts]
    return tf.concat(deep, 2)


def array_split(x, indices_or_sections, axis=0):
    x = tf.convert_to_tensor(x)
    if isinstance(indices_or_sections, int):
        n, k = x.shape[axis], indices_or_sections
        return tf.split(x, [n // k + 1] * (n % k) + [n // k] * (k - n % k), axis=axis)
    places = [0, *indices_or_sections, x.shape[axis]]
    return tf.split(x, [b - a for a, b in zip(places, places[1:])], axis=axis)


def hsplit(x, indices_or_sections):
    return array_split(x, indices_or_sections, 1 if len(x.shape) > 1 else 0)


def vsplit(x, indices_or_sections):
    return array_split(x, indices_or_sections, 0)


def dsplit(x, indices_or_sections):
    return array_split(x, indices_or_sections, 2)


def argpartition(x, kth, axis=-1):
    return tf.argsort(x, axis=axis)


def select(condlist, choicelist, default=0):
    made = tf.convert_to_tensor(default)
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        choice = tf.convert_to_tensor(choice)
        made = tf.where(condition, choice, tf.cast(made, choice.dtype))
    return made


def unravel_index(indices, shape):
    indices, made = tf.convert_to_tensor(indices), []
    for extent in reversed(shape):
        made.append(tf.math.floormod(indices, extent))
        indices = tf.math.floordiv(indices, extent)
    return tuple(reversed(made))


def unique(x, sorted=True, return_index=False, return_inverse=False, return_counts=False, axis=None, size=None, fill_value=None):
    """NumPy's; not sorted: in the order of their first places. A size cuts, or fills up."""
    import numpy as np
    x = tf.convert_to_tensor(x).numpy()
    found, index, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    along, inverse = axis or 0, inverse.reshape(x.shape if axis is None else -1)
    if not sorted:
        order = np.argsort(index)
        found, index, counts, inverse = np.take(found, order, along), index[order], counts[order], np.argsort(order)[inverse]
    if size is not None:
        fit = lambda a, k, fill: np.pad(np.take(a, range(min(size, a.shape[k])), k), [
            (0, max(0, size - a.shape[k]) if i == k % a.ndim else 0) for i in range(a.ndim)], constant_values=fill)
        found, index, counts = fit(found, along, fill_value or 0), fit(index, 0, 1), fit(counts, 0, 0)
    asked = [tf.constant(a, "int32") for a, wish in ((index, return_index), (inverse, return_inverse), (counts, return_counts)) if wish]
    return (tf.constant(found), *asked) if asked else tf.constant(found)


@default_only("excluded signature", "keras.ops.vectorize")
def vectorize(pyfunc, *, excluded=None, signature=None):
    def call(*args):
        return tf.vectorized_map(lambda parts: pyfunc(*parts), args) if len(args) > 1 else tf.vectorized_map(pyfunc, args[0])
    return call


def rearrange(tensor, pattern, **axes_lengths):
    """einops' language, without brackets of one."""
    left, right = ([_words(side)] for side in pattern.split("->"))
    left, right, x = left[0], right[0], tf.convert_to_tensor(tensor)
    known = dict(axes_lengths)
    for group, extent in zip(left, x.shape):
        open_ = [n for n in group if n not in known]
        rest = math.prod(known[n] for n in group if n in known)
        if len(open_) > 1:
            raise ValueError(f"rearrange: the lengths of {open_} do not follow from '{pattern}'")
        if open_:
            known[open_[0]] = extent // rest
    flat = [n for group in left for n in group]
    x = tf.reshape(x, [known[n] for n in flat])
    x = tf.transpose(x, [flat.index(n) for group in right for n in group])
    return tf.reshape(x, [math.prod(known[n] for n in group) for group in right])


def _words(side):
    made, inside = [], None
    for word in side.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            inside = []
        elif word == ")":
            made.append(inside)
            inside = None
        elif inside is not None:
            inside.append(word)
        else:
            made.append([] if word == "1" else [word])
    return made


def extract_sequences(x, sequence_length, sequence_stride):
    return tf.signal.frame(x, sequence_length, sequence_stride)


# --- numbers --------------------------------------------------------------------------------------------
def allclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    return tf.reduce_all(_op("isclose")(x1, x2, rtol, atol, equal_nan))


def signbit(x):
    x = tf.convert_to_tensor(x)
    return (x < 0) | (tf.equal(x, 0) & (1 / x < 0)) if x.dtype.is_floating else x < 0


def ldexp(x1, x2):
    return _float(x1) * tf.pow(2.0, tf.cast(x2, "float32"))


def isreal(x):
    return tf.ones_like(tf.convert_to_tensor(x), dtype="bool")


def gcd(x1, x2):
    a, b = tf.abs(tf.convert_to_tensor(x1)), tf.abs(tf.convert_to_tensor(x2))
    a, b = a + 0 * b, b + 0 * a
    while bool(tf.reduce_any(b > 0)):
        a, b = tf.where(b > 0, b, a), tf.where(b > 0, tf.math.floormod(a, tf.maximum(b, 1)), b)
    return a


def lcm(x1, x2):
    a, b = tf.abs(tf.convert_to_tensor(x1)), tf.abs(tf.convert_to_tensor(x2))
    return tf.math.floordiv(a * b, tf.maximum(gcd(a, b), 1))


def percentile(x, q, axis=None, method="linear", keepdims=False):
    shares = q / 100 if isinstance(q, (int, float)) else [float(p) / 100 for p in tf.convert_to_tensor(q).numpy()]
    return _op("quantile")(x, shares, axis, method, keepdims)


def _nan_as(x, value):
    x = tf.convert_to_tensor(x)
    return tf.where(tf.math.is_nan(x), tf.constant(value, x.dtype), x) if x.dtype.is_floating else x


def _where_known(name, x, otherwise, axis, keepdims):
    """The place of an extreme among what is a number; -1 where nothing is."""
    at, x = _op(name)(_nan_as(x, otherwise), axis=axis, keepdims=keepdims), tf.convert_to_tensor(x)
    if not x.dtype.is_floating:
        return at
    return tf.where(tf.reduce_all(tf.math.is_nan(x), axis, keepdims=keepdims), tf.constant(-1, at.dtype), at)


def nanargmax(x, axis=None, keepdims=False):
    return _where_known("argmax", x, -math.inf, axis, keepdims)


def nanargmin(x, axis=None, keepdims=False):
    return _where_known("argmin", x, math.inf, axis, keepdims)


def nancumsum(x, axis=None, dtype=None):
    return _op("cumsum")(_nan_as(x, 0.0), axis=axis, dtype=dtype)


def nancumprod(x, axis=None, dtype=None):
    return _op("cumprod")(_nan_as(x, 1.0), axis=axis, dtype=dtype)


def corrcoef(x):
    x = _float(x)
    x = x - tf.reduce_mean(x, -1, keepdims=True)
    covariance = tf.matmul(x, x, transpose_b=True)
    d = tf.sqrt(tf.linalg.diag_part(covariance))
    return covariance / d[:, None] / d[None, :]


def correlate(x1, x2, mode="valid"):
    x1, x2 = _float(x1), _float(x2)
    n, m = x1.shape[0], x2.shape[0]
    if n < m and mode != "full":
        return correlate(x2, x1, mode)[::-1]
    pad = {"valid": (0, 0), "same": (m // 2, m - 1 - m // 2), "full": (m - 1, m - 1)}[mode]
    return tf.linalg.matvec(tf.signal.frame(tf.pad(x1, [pad]), m, 1), x2)


def histogram(x, bins=10, range=None):
    x = tf.reshape(_float(x), (-1,))
    low, high = range if range else (float(tf.reduce_min(x)), float(tf.reduce_max(x)))
    high = low + 1.0 if low == high else high
    edges = tf.linspace(low, high, bins + 1)
    inside = tf.cast((x >= low) & (x <= high), "float32")
    at = tf.clip_by_value(tf.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
    return tf.math.unsorted_segment_sum(inside, at, bins), edges


def cdist(x1, x2, p=2.0):
    apart = tf.abs(_float(x1)[..., :, None, :] - _float(x2)[..., None, :, :])
    return tf.sqrt(tf.reduce_sum(tf.square(apart), -1)) if p == 2 else tf.pow(tf.reduce_sum(tf.pow(apart, p), -1), 1 / p)


def psnr(x1, x2, max_val):
    return 20 * tf.math.log(tf.cast(max_val, "float32") / tf.sqrt(tf.reduce_mean(tf.square(_float(x1) - _float(x2))))) / math.log(10)


def segment_prod(data, segment_ids, num_segments=None, sorted=False):
    return tf.math.unsorted_segment_prod(data, segment_ids, _segments(segment_ids, num_segments))


def segment_min(data, segment_ids, num_segments=None, sorted=False):
    return tf.math.unsorted_segment_min(data, segment_ids, _segments(segment_ids, num_segments))


def _segments(ids, n):
    return int(tf.reduce_max(ids)) + 1 if n is None else n


def associative_scan(f, elems, reverse=False, axis=0):
    from snug import _nest
    parts = [tf.unstack(t, axis=axis) for t in _nest.flatten(elems)]
    pack = lambda row: _nest.pack_sequence_as(elems, list(row)) if _nest.is_nested(elems) else row[0]
    rows = [pack(row) for row in zip(*(p[::-1] if reverse else p for p in parts))]
    made = rows[:1]
    for row in rows[1:]:
        made.append(f(made[-1], row))
    made = made[::-1] if reverse else made
    flat = [tf.stack(column, axis=axis) for column in zip(*(_nest.flatten(row) for row in made))]
    return pack(flat)


# --- transforms: pairs of real and imaginary parts ------------------------------------------------------
def _pair(z):
    return z.real, z.imag


def _paired(name):
    def function(x):
        return _pair(getattr(tf.signal, name)(tf.complex(*x)))
    function.__name__ = {"fft2d": "fft2", "ifft2d": "ifft2"}.get(name, name)
    return function


fft, fft2, ifft2 = _paired("fft"), _paired("fft2d"), _paired("ifft2d")


def rfft(x, fft_length=None):
    return _pair(tf.signal.rfft(_float(x), None if fft_length is None else [fft_length]))


def irfft(x, fft_length=None):
    return tf.signal.irfft(tf.complex(*x), None if fft_length is None else [fft_length])


def stft(x, sequence_length, sequence_stride, fft_length, window="hann", center=True):
    x = _float(x)
    if center:
        x = tf.pad(x, [[0, 0]] * (len(x.shape) - 1) + [[fft_length // 2] * 2], mode="REFLECT")
    frames = tf.signal.frame(x, fft_length, sequence_stride)
    if window is not None:
        words = {"hann": tf.signal.hann_window, "hamming": tf.signal.hamming_window}
        window = words[window](sequence_length) if isinstance(window, str) else tf.convert_to_tensor(window)
        left = (fft_length - sequence_length) // 2
        frames = frames * tf.pad(window, [[left, fft_length - sequence_length - left]])
    return _pair(tf.signal.rfft(frames, [fft_length]))


def angle(x):
    from snug import _complex
    if not _complex.is_complex(x):
        return _complex.angle(_float(x))
    return tf.cast(_complex.angle(tf.convert_to_tensor(x)), "float32")


# --- matrices -------------------------------------------------------------------------------------------
def logdet(x):
    return tf.linalg.slogdet(x)[1]


def cholesky_inverse(x, upper=False):
    x = tf.linalg.matrix_transpose(x) if upper else x
    return tf.linalg.cholesky_solve(x, tf.eye(x.shape[-1], dtype=x.dtype))


def lu_factor(x):
    x = _float(x)
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"LU decomposition failed: Expected a square matrix. Received non-square input with shape {tuple(x.shape)}. LU"
                         " decomposition is only supported for square matrices in Tensorflow.")
    both, order = tf.linalg.lu(x)
    return both, tf.argsort(order)


# --- windows over pictures ------------------------------------------------------------------------------
def _adaptive(inputs, output_size, data_format, reduce):
    """Each cell of the output over its share of the input, along each axis that is neither the batch's nor the channels'."""
    x = tf.convert_to_tensor(inputs)
    sizes = (output_size,) * (len(x.shape) - 2) if isinstance(output_size, int) else tuple(output_size)
    for axis, size in enumerate(sizes, 2 if data_format == "channels_first" else 1):
        n = x.shape[axis]
        cut = lambda lo, hi: tf.gather(x, list(range(lo, hi)), axis=axis)
        parts = [reduce(cut(i * n // size, -(-(i + 1) * n // size)), axis=axis, keepdims=True) for i in range(size)]
        x = tf.concat(parts, axis)
    return x


def _two(n):
    return (n, n) if isinstance(n, int) else tuple(n)


def _windows(extents, kernel_size, dilation, padding, stride):
    """Of an axis each: (the kernel's size, its dilation, padding, stride, how many windows there are)."""
    made = []
    for n, k, d, p, s in zip(extents, _two(kernel_size), _two(dilation), _two(padding), _two(stride)):
        made.append((k, d, p, s, (n + 2 * p - d * (k - 1) - 1) // s + 1))
    return made


def unfold(x, kernel_size, dilation=1, padding=0, stride=1):
    x = tf.convert_to_tensor(x)
    (kh, dh, ph, sh, nh), (kw, dw, pw, sw, nw) = _windows(x.shape[2:], kernel_size, dilation, padding, stride)
    padded = tf.pad(x, [[0, 0], [0, 0], [ph, ph], [pw, pw]])
    parts = [padded[:, :, i * dh:i * dh + (nh - 1) * sh + 1:sh, j * dw:j * dw + (nw - 1) * sw + 1:sw] for i in range(kh) for j in range(kw)]
    return tf.reshape(tf.stack(parts, axis=2), (-1, x.shape[1] * kh * kw, nh * nw))


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Each window's numbers are added where unfold would have taken them from."""
    x, (height, width) = tf.convert_to_tensor(x), _two(output_size)
    (kh, dh, ph, sh, nh), (kw, dw, pw, sw, nw) = _windows((height, width), kernel_size, dilation, padding, stride)
    channels = x.shape[1] // (kh * kw)
    apart = tf.pad(tf.reshape(x, (-1, channels, kh, kw, nh, 1, nw, 1)), [[0, 0]] * 5 + [[0, sh - 1], [0, 0], [0, sw - 1]])
    apart = tf.reshape(apart, (-1, channels, kh, kw, nh * sh, nw * sw))[..., :(nh - 1) * sh + 1, :(nw - 1) * sw + 1]
    whole = (height + 2 * ph, width + 2 * pw)
    total = None
    for i in range(kh):
        for j in range(kw):
            part = apart[:, :, i, j]
            room = [[at, n - at - size] for at, n, size in zip((i * dh, j * dw), whole, part.shape[2:])]
            part = tf.pad(part, [[0, 0], [0, 0]] + room)
            total = part if total is None else total + part
    return total[:, :, ph:ph + height, pw:pw + width]


def adaptive_average_pool(inputs, output_size, data_format=None):
    return _adaptive(inputs, output_size, data_format, tf.reduce_mean)


def adaptive_max_pool(inputs, output_size, data_format=None):
    return _adaptive(inputs, output_size, data_format, tf.reduce_max)


# --- sequences of labels --------------------------------------------------------------------------------
def ctc_loss(target, output, target_length, output_length, mask_index=0):
    return tf.nn.ctc_loss(tf.cast(target, "int32"), _float(output), target_length, output_length, logits_time_major=False,
                          blank_index=mask_index)


def ctc_decode(inputs, sequence_lengths, strategy="greedy", beam_width=100, top_paths=1, merge_repeated=True, mask_index=0):
    from snug import _ctc
    if strategy != "greedy":
        raise NotImplementedError("keras.ops.ctc_decode: Snug has strategy='greedy'")
    return _ctc.decode_dense(inputs, sequence_lengths, merge_repeated, mask_index)


def jvp(fun, primals, tangents, has_aux=False):
    from snug._tape import ForwardAccumulator
    with ForwardAccumulator(list(primals), list(tangents)) as found:
        made = fun(*primals)
    value = made[0] if has_aux else made
    return (value, found.jvp(value), made[1]) if has_aux else (value, found.jvp(value))


def matrix_rank(x, tol=None):
    return tf.linalg.matrix_rank(x, tol)


def pinv(x, rcond=None):
    return tf.linalg.pinv(x, rcond)


NAMES = [name for name, value in list(globals().items()) if callable(value) and not name.startswith("_") and getattr(
    value, "__module__", "") == __name__]
