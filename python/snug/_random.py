"""tf.random: seeds and generators. Draws are operations of the table; their keys come from the recorder, in program order."""
from snug import _C
from snug._lazy import tf
from snug._types import Peek


def set_seed(seed):
    _C.seed(int(seed))


class Algorithm:
    PHILOX, THREEFRY, AUTO_SELECT = 1, 2, 3


def _philox(alg):
    """There is one algorithm; another one is refused."""
    if str(getattr(alg, "value", alg)).lower() not in ("none", "philox", "auto_select", "1", "3"):
        raise NotImplementedError(f"random numbers by the algorithm {alg!r} are not in Snug: it has 'philox'")


def create_rng_state(seed, alg=None):
    _philox(alg)
    return tf.constant([int(seed), 0, 0], dtype=tf.int64)


class Generator:
    """Numbers that follow from a seed of its own: the stateless draws with a counter. In a trace, which must give others at each call
    and is only recorded once, they are the recorder's."""

    def __init__(self, copy_from=None, state=None, alg=None):
        _philox(alg)
        self._seed = int(copy_from._seed if copy_from is not None else 0 if state is None else state[0])
        self._count = copy_from._count if copy_from is not None else 0

    @classmethod
    def from_seed(cls, seed, alg=None):
        _philox(alg)
        made = cls()
        made._seed = int(seed)
        return made

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        _philox(alg)
        import os
        return cls.from_seed(int.from_bytes(os.urandom(4), "little"))

    @classmethod
    def from_state(cls, state, alg=None):
        _philox(alg)
        made = cls.from_seed(int(state[0]))
        made._count = int(state[1])
        return made

    @property
    def state(self):
        return tf.constant([self._seed, self._count, 0], dtype=tf.int64)

    @property
    def algorithm(self):
        return Algorithm.PHILOX

    @property
    def key(self):
        return tf.constant(self._seed, dtype=tf.int64)

    def _next(self):
        if _C.is_capturing() or _C.is_tracing():            # its state is Python's: drawn anew for each element or call
            raise Peek
        self._count += 1
        return [self._seed & 0x7fffffff, self._count]

    def reset_from_seed(self, seed):
        self._seed, self._count = int(seed), 0

    def reset(self, state):
        self._seed, self._count = int(state[0]), int(state[1])

    def skip(self, delta):
        self._count += int(delta)

    def _draw(self, kind, shape, *numbers):
        if _C.is_tracing() and not _C.is_capturing():
            return getattr(tf.random, kind)(shape, *numbers)
        return getattr(tf.random, "stateless_" + kind)(shape, self._next(), *numbers)

    def normal(self, shape, mean=0.0, stddev=1.0, dtype=None, name=None):
        return self._draw("normal", shape, mean, stddev, dtype or tf.float32)

    def truncated_normal(self, shape, mean=0.0, stddev=1.0, dtype=None, name=None):
        return self._draw("truncated_normal", shape, mean, stddev, dtype or tf.float32)

    def uniform(self, shape, minval=0, maxval=None, dtype=None, name=None):
        dtype = dtype or tf.float32
        if maxval is None:
            maxval = 1
        return self._draw("uniform", shape, minval, maxval, dtype)

    def uniform_full_int(self, shape, dtype=None, name=None):
        return self.uniform(shape, 0, 2 ** 31 - 1, dtype or tf.int32)

    def binomial(self, shape, counts, probs, dtype=None, name=None):
        n = int(tf.reduce_max(counts))
        draws = self.uniform((n,) + tuple(shape))
        return tf.cast(tf.reduce_sum(tf.cast(draws < probs, tf.int32), axis=0), dtype or tf.int32)

    def split(self, count=1):
        return [Generator.from_seed(hash((self._seed, self._next()[1], i)) & 0x7fffffff) for i in range(count)]

    def make_seeds(self, count=1):
        first = [self._next()[1] for _ in range(count)]
        return tf.constant([[self._seed] * count, first], dtype=tf.int64)


_global = []


def get_global_generator():
    if not _global:
        _global.append(Generator.from_seed(0))
    return _global[0]


def set_global_generator(generator):
    _global[:] = [generator]


def split(seed, num=2, alg="auto_select"):
    """num seeds made of one."""
    _philox(alg)
    seed = tf.convert_to_tensor(seed)
    return tf.random.stateless_uniform([num, 2], seed, minval=-2**31, maxval=2**31 - 1, dtype=seed.dtype)


def fold_in(seed, data, alg="auto_select"):
    """A seed made of a seed and a number."""
    _philox(alg)
    seed, data = tf.convert_to_tensor(seed), tf.convert_to_tensor(data)
    return tf.stack([tf.cast(data, seed.dtype), tf.reshape(split(seed, 1), [-1])[0]])
