"""Functions of tf that are a few others: over lists of tensors, over shapes, or made of what is in the table."""
import functools
import math
from collections import namedtuple

from snug import _C, _arrays, _files
from snug._lazy import tf
from snug._types import Peek, TensorShape

MaxPoolWithArgmax = namedtuple("MaxPoolWithArgmax", ["output", "argmax"])


def _values(t):
    """Of rows of a tensor the rows."""
    from snug._variable import IndexedSlices
    return t.values if isinstance(t, IndexedSlices) else t


def _like(t, values):
    return values if _values(t) is t else t.with_values(values)


@functools.lru_cache
def _row(name):
    return _C.function(name, False, name.rsplit(".", 1)[-1])


def global_norm(t_list, name=None):
    return _row("tf.linalg.global_norm")([_values(t) for t in t_list if t is not None])


def clip_by_norm(t, clip_norm, axes=None, name=None):
    return _like(t, _row("tf.clip_by_norm")(_values(t), clip_norm, axes))


def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    return _like(t, _row("tf.clip_by_value")(_values(t), clip_value_min, clip_value_max))


def embedding_lookup(params, ids, max_norm=None, name=None):
    """Rows of a table; a list is one table in parts, one behind the other."""
    if isinstance(params, (list, tuple)):
        params = params[0] if len(params) == 1 else tf.concat(params, 0)
    return _row("tf.nn.embedding_lookup")(params, ids, max_norm)


def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    """Tensors scaled together; None stays None."""
    norm = global_norm(t_list) if use_norm is None else tf.convert_to_tensor(use_norm)
    scale = clip_norm / tf.maximum(norm, clip_norm)
    return [None if t is None else _like(t, _values(t) * tf.cast(scale, t.dtype)) for t in t_list], norm


def range_of(start, limit=None, delta=1, dtype=None, name="range"):
    """Numbers of the widest type among the three; the table's row sees numbers, which have none."""
    if dtype is None:
        kinds = {v.dtype.name if hasattr(v, "dtype") else type(v).__name__ for v in (start, limit, delta)}
        if "float64" in kinds:
            dtype = tf.float64
        elif "int64" in kinds and not kinds & {"float", "float32"}:
            dtype = tf.int64
    return _row("tf.range")(start, limit, delta, dtype)


def _broadcast(a, b):
    out = []
    for x, y in zip([1] * (len(b) - len(a)) + list(a), [1] * (len(a) - len(b)) + list(b)):
        if x != y and 1 not in (x, y) and None not in (x, y):
            raise ValueError(f"Incompatible shapes for broadcasting: {TensorShape(a)} and {TensorShape(b)}")
        out.append(y if x == 1 else x if y == 1 or y is None or x == y else y)
    return out


def broadcast_static_shape(shape_x, shape_y):
    return TensorShape(_broadcast(list(TensorShape(shape_x)), list(TensorShape(shape_y))))


def broadcast_dynamic_shape(shape_x, shape_y):
    return tf.constant(_broadcast([int(d) for d in shape_x], [int(d) for d in shape_y]))


def shape_n(input, out_type=None, name=None):
    return [tf.shape(x) if out_type is None else tf.cast(tf.shape(x), out_type) for x in input]


def _scatter_by(tensor, indices, updates, better):
    """Rows one after the other: several updates of one place are all compared."""
    import numpy as np
    tensor, updates = tf.convert_to_tensor(tensor), tf.convert_to_tensor(updates)
    places = tf.convert_to_tensor(indices)
    flat = places.numpy().reshape(-1, places.shape[-1])
    parts = tf.reshape(updates, (len(flat),) + tuple(updates.shape[places.ndim - 1:]))
    done = {}
    for i, place in enumerate(map(tuple, flat)):
        row = parts[i]
        done[place] = better(done[place] if place in done else tensor[place], row)
    return tf.tensor_scatter_nd_update(tensor, np.array(list(done)), tf.stack(list(done.values())))


def tensor_scatter_nd_max(tensor, indices, updates, name=None):
    return _scatter_by(tensor, indices, updates, tf.maximum)


def tensor_scatter_nd_min(tensor, indices, updates, name=None):
    return _scatter_by(tensor, indices, updates, tf.minimum)


def adjoint(matrix, name=None):
    return tf.linalg.matrix_transpose(matrix, conjugate=True)


def bitcast(input, type, name=None):
    input, kind = tf.convert_to_tensor(input), tf.as_dtype(type)
    shape, times = list(input.shape), kind.size // input.dtype.size
    if times > 1 and shape[-1:] != [times]:
        raise tf.errors.InvalidArgumentError(None, None, f"Cannot bitcast from {input.dtype.name} to {kind.name}: shape {shape}")
    import numpy as np
    pairs, made = kind.name == "bfloat16", b"".join(_files.pieces(input))
    made = _arrays.of_bits(np.frombuffer(made, np.uint16)) if pairs else np.frombuffer(made, kind.as_numpy_dtype)
    return tf.constant(made.reshape(shape[:-1] if times > 1 else shape if times else [*shape, input.dtype.size // kind.size]), kind)


# --- matrices, by their singular values or by series ---------------------------------------------------
def pinv(a, rcond=None, validate_args=False, name=None):
    """The pseudoinverse: singular values that are as good as 0 stay 0."""
    a = tf.convert_to_tensor(a)
    s, u, v = tf.linalg.svd(a)
    least = (10 * max(a.shape[-2:]) * (2.2e-16 if a.dtype == tf.float64 else 1.2e-7) if rcond is None else rcond) * tf.reduce_max(s, -1, keepdims=True)
    there = s > least
    inverse = tf.where(there, 1.0 / tf.where(there, s, tf.ones_like(s)), tf.zeros_like(s))
    return tf.matmul(v * inverse[..., None, :], u, transpose_b=True)


def matrix_rank(a, tol=None, validate_args=False, name=None):
    a = tf.convert_to_tensor(a)
    s = tf.linalg.svd(a, compute_uv=False)
    least = max(a.shape[-2:]) * (2.2e-16 if a.dtype == tf.float64 else 1.2e-7) * tf.reduce_max(s, -1, keepdims=True) if tol is None else tol
    return tf.reduce_sum(tf.cast(s > least, tf.int32), -1)


# --- draws that need a loop of their own: made on the host, from a key of the recorder ------------------
def host_rows(seed=None, what=None, own=None):
    """NumPy's generator: of a seed; of the next key of an operation with a seed of its own; or of the program's next. These two go on from call
    to call, so they are drawn when a function runs, not when it is traced."""
    import numpy as np
    if seed is not None:
        return np.random.RandomState([int(n) & 0xffffffff for n in tf.reshape(tf.convert_to_tensor(seed), [-1]).numpy()])
    if _C.is_capturing() or _C.is_tracing():
        raise Peek
    return np.random.RandomState((_C.draw() if own is None else _C.draw(what, int(own))) & 0xffffffff)


def _host(dtype, draw, *which):
    return tf.constant(draw(host_rows(*which)), dtype=dtype or tf.float32)


def _dims(shape, *parameters):
    import numpy as np
    arrays = [tf.convert_to_tensor(p).numpy() for p in parameters]
    tail = np.broadcast(*arrays).shape
    head = (int(shape),) if not hasattr(shape, "__iter__") else tuple(int(d) for d in shape)
    return head + tail, arrays


def gamma(shape, alpha, beta=None, dtype=None, seed=None, name=None):
    dims, (a, b) = _dims(shape, alpha, 1.0 if beta is None else beta)
    return _host(dtype, lambda r: r.gamma(a, 1.0 / b, dims), None, "gamma", seed)


def stateless_gamma(shape, seed, alpha, beta=None, dtype=None, name=None):
    dims = tuple(int(d) for d in shape)
    a, b = (tf.convert_to_tensor(p).numpy() for p in (alpha, 1.0 if beta is None else beta))
    return _host(dtype, lambda r: r.gamma(a, 1.0 / b, dims), seed)


def stateless_beta(shape, seed, alpha, beta, dtype=None):
    """Of keras.random; the seed may be None."""
    dims = tuple(int(d) for d in shape)
    a, b = (tf.convert_to_tensor(p).numpy() for p in (alpha, beta))
    return _host(dtype, lambda r: r.beta(a, b, dims), seed)


def poisson(shape, lam, dtype=None, seed=None, name=None):
    dims, (rate,) = _dims(shape, lam)
    return _host(dtype, lambda r: r.poisson(rate, dims), None, "poisson", seed)


# --- initializers of tf.*: Keras' ones ------------------------------------------------------------------
def _initializer(name):
    def make(*args, **kwargs):
        from snug.keras import initializers
        return getattr(initializers, name)(*args, **kwargs)
    make.__name__ = name
    return make


random_normal_initializer, random_uniform_initializer = _initializer("RandomNormal"), _initializer("RandomUniform")
constant_initializer, zeros_initializer, ones_initializer = (_initializer("Constant"), _initializer("Zeros"),
                                                             _initializer("Ones"))


# --- blocks of pixels as rows of the batch ---------------------------------------------------------------
def _blocks(block_shape, borders, word):
    """Extents of blocks, and pairs of borders, as numbers."""
    plain = lambda v: v.numpy().tolist() if hasattr(v, "numpy") else v.tolist() if hasattr(v, "tolist") else v
    block, pairs = plain(block_shape), plain(borders)
    block = [block] * 2 if isinstance(block, int) else list(block)
    pairs = [list(plain(p)) for p in pairs]
    if not all(isinstance(n, int) and n > 0 for n in block) or [len(p) for p in pairs] != [2] * len(block):
        raise ValueError(f"block_shape must have whole numbers from 1 and {word} a pair for each. Received: block_shape={block},"
                         f" {word}={pairs}")
    return block, pairs


def space_to_batch(input, block_shape, paddings, name=None):  # noqa: A002
    x = tf.convert_to_tensor(input)
    block, paddings = _blocks(block_shape, paddings, "paddings")
    m, rest = len(block), x.shape[len(block) + 1:]
    x = tf.pad(x, [[0, 0]] + paddings + [[0, 0]] * len(rest))
    sizes = x.shape[1:m + 1]
    if any(n % k for n, k in zip(sizes, block)):
        raise tf.errors.InvalidArgumentError(None, None, f"padded extents {list(sizes)} are not multiples of block_shape {block}")
    parts = [part for n, k in zip(sizes, block) for part in (n // k, k)]
    x = tf.reshape(x, [x.shape[0], *parts, *rest])
    order = [2 * i + 2 for i in range(m)] + [0] + [2 * i + 1 for i in range(m)]
    x = tf.transpose(x, order + list(range(2 * m + 1, len(x.shape))))
    return tf.reshape(x, [-1, *x.shape[m + 1:]])


def batch_to_space(input, block_shape, crops, name=None):  # noqa: A002
    x = tf.convert_to_tensor(input)
    block, crops = _blocks(block_shape, crops, "crops")
    m, sizes, rest = len(block), x.shape[1:len(block) + 1], x.shape[len(block) + 1:]
    if x.shape[0] % math.prod(block):
        raise tf.errors.InvalidArgumentError(None, None, f"a batch of {x.shape[0]} is not a multiple of the {math.prod(block)} places of a block")
    x = tf.reshape(x, [*block, x.shape[0] // math.prod(block), *sizes, *rest])
    order = [m] + [axis for i in range(m) for axis in (m + 1 + i, i)]
    x = tf.transpose(x, order + list(range(2 * m + 1, len(x.shape))))
    x = tf.reshape(x, [x.shape[0], *(n * k for n, k in zip(sizes, block)), *rest])
    inner = tuple(slice(low, n * k - high) for n, k, (low, high) in zip(sizes, block, crops))
    return x[(slice(None), *inner)]


# --- the largest of windows, and where it was ----------------------------------------------------------------
def _pair_of(value):
    value = [value] if isinstance(value, int) else list(value)
    return {1: value * 2, 2: value, 4: value[1:3]}[len(value)]


def _window(extent, size, step, padding):
    """(border before, border after) of one axis."""
    if padding.upper() == "VALID":
        return 0, 0
    border = max((-(-extent // step) - 1) * step + size - extent, 0)
    return border // 2, border - border // 2


def max_pool_with_argmax(input, ksize, strides, padding, data_format="NHWC", output_dtype=None, include_batch_in_index=False,  # noqa: A002
                         name=None):
    """The places are numbers of elements in a flat picture, or in a flat batch of them."""
    if data_format != "NHWC":
        raise ValueError("Attr 'data_format' of 'MaxPoolWithArgmax' must be 'NHWC'")
    x, kind = tf.convert_to_tensor(input), tf.as_dtype(output_dtype or tf.int64)
    (kh, kw), (sh, sw), (n, height, width, channels) = _pair_of(ksize), _pair_of(strides), x.shape
    rows, columns = _window(height, kh, sh, padding), _window(width, kw, sw, padding)
    wide = tf.pad(x, [[0, 0], rows, columns, [0, 0]], constant_values=x.dtype.min)
    patches = tf.image.extract_patches(wide, [1, kh, kw, 1], [1, sh, sw, 1], [1, 1, 1, 1], "VALID")
    _, down, across, _ = patches.shape
    at = tf.argmax(tf.reshape(patches, [n, down, across, kh * kw, channels]), 3)
    y = tf.reshape(tf.range(down, dtype=tf.int64) * sh - rows[0], [1, down, 1, 1]) + at // kw
    place = y * width + tf.reshape(tf.range(across, dtype=tf.int64) * sw - columns[0], [1, 1, across, 1]) + at % kw
    if include_batch_in_index:
        place += tf.reshape(tf.range(n, dtype=tf.int64) * (height * width), [n, 1, 1, 1])
    places = place * channels + tf.range(channels, dtype=tf.int64)
    return MaxPoolWithArgmax(tf.nn.max_pool(x, [kh, kw], [sh, sw], padding.upper()), tf.cast(places, kind))


# --- special functions ------------------------------------------------------------------------------------
def lbeta(x, name=None):
    """The logarithm of the beta function of each last axis; of none it is infinite."""
    x = tf.convert_to_tensor(x)
    return tf.reduce_sum(tf.math.lgamma(x), -1) - tf.math.lgamma(tf.reduce_sum(x, -1))


def erfcinv(x, name=None):
    return tf.math.ndtri(tf.convert_to_tensor(x) * 0.5) * -math.sqrt(0.5)
