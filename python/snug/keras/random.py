"""keras.random."""
from snug import _C, _more
from snug._lazy import tf
from snug._types import Peek


class SeedGenerator:
    """Seeds, each another one. A trace, which must draw anew at each call and is only recorded once, draws from the recorder."""

    def __init__(self, seed=None, name=None):
        self.seed, self._count = seed, 0

    def next(self, ordered=True):
        if _C.is_tracing():
            raise Peek
        self._count += 1
        return (self.seed or 0, self._count)


def _seeded(seed):
    """Two numbers for stateless draws, or None: the recorder's."""
    if isinstance(seed, SeedGenerator):
        return seed.next() if seed.seed is not None and not _C.is_tracing() else None
    if isinstance(seed, tuple):
        return seed
    return None if seed is None else (int(seed), 0)


def _draw(plain, stateless, shape, seed, dtype, *numbers):
    pair = _seeded(seed)
    dtype = dtype or "float32"
    if pair is None:
        return plain(shape, *numbers, dtype=dtype)
    return stateless(shape, pair, *numbers, dtype=dtype)


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    return _draw(tf.random.normal, tf.random.stateless_normal, shape, seed, dtype, mean, stddev)


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    return _draw(tf.random.uniform, tf.random.stateless_uniform, shape, seed, dtype, minval, maxval)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    return _draw(tf.random.truncated_normal, tf.random.stateless_truncated_normal, shape, seed, dtype, mean, stddev)


def randint(shape, minval, maxval, dtype="int32", seed=None):
    return _draw(tf.random.uniform, tf.random.stateless_uniform, shape, seed, dtype, minval, maxval)


def categorical(logits, num_samples, dtype="int32", seed=None):
    pair = _seeded(seed)
    if pair is None:
        return tf.random.categorical(logits, num_samples, dtype=dtype)
    return tf.random.stateless_categorical(logits, num_samples, pair, dtype=dtype)


def dropout(inputs, rate, noise_shape=None, seed=None):
    pair = _seeded(seed)
    if pair is None:
        return tf.nn.dropout(inputs, rate, noise_shape=noise_shape)
    return tf.nn.experimental.stateless_dropout(inputs, rate, pair, noise_shape=noise_shape)


def shuffle(x, axis=0, seed=None):
    """Slices along an axis in another order."""
    pair, x = _seeded(seed), tf.convert_to_tensor(x)
    if pair is None and axis == 0:
        return tf.random.shuffle(x)
    places = tf.range(x.shape[axis])
    order = tf.random.shuffle(places) if pair is None else tf.random.experimental.stateless_shuffle(places, pair)
    return tf.gather(x, order, axis=axis)


def gamma(shape, alpha, dtype=None, seed=None):
    return _more.stateless_gamma(shape, _seeded(seed), alpha, dtype=dtype or "float32")


def beta(shape, alpha, beta, dtype=None, seed=None):
    return _more.stateless_beta(shape, _seeded(seed), alpha, beta, dtype or "float32")


def binomial(shape, counts, probabilities, dtype=None, seed=None):
    """How many of so many draws are below the probability."""
    most = int(tf.reduce_max(tf.convert_to_tensor(counts)))
    hits = uniform((most, *shape), seed=seed) < tf.cast(probabilities, "float32")
    counted = tf.reshape(tf.range(most), (most,) + (1,) * len(shape)) < tf.cast(counts, "int32")
    return tf.reduce_sum(tf.cast(hits & counted, dtype or "float32"), 0)
