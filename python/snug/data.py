"""tf.data, first version: a dataset is a recipe for an iterator of structures; stages are generators over the one before.

Elements stay NumPy views until a function of the user's, or the user, gets them: slicing, shuffling and batching arrays
copies each row once and records nothing. What a map gives are tensors; a batch of them is one stack."""
import builtins
import random as _random

from snug import _C, _nest
from snug._lazy import tf
from snug._types import TensorSpec

AUTOTUNE = -1
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2


def _as_tensor(value):
    return value if isinstance(value, (_C.Tensor, Dataset)) else _C.convert_to_tensor(value)


def _tensors(element):
    return _nest.map_structure(_as_tensor, element) if _nest.is_nested(element) else _as_tensor(element)


def _lists_to_arrays(structure):
    """from_tensor_slices takes lists of numbers as arrays, tuples and dicts as structures."""
    import numpy as np
    if isinstance(structure, dict):
        return {k: _lists_to_arrays(v) for k, v in structure.items()}
    if isinstance(structure, tuple):
        parts = [_lists_to_arrays(v) for v in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    if isinstance(structure, (_C.Tensor, _C.Variable)):
        return structure.numpy()
    if isinstance(structure, list):
        return _C.convert_to_tensor(structure).numpy()
    return np.asarray(structure)


def _call(function, element):
    """function on an element: a tuple is several arguments."""
    element = _tensors(element)
    return function(*element) if isinstance(element, tuple) else function(element)


def _stack(elements):
    import numpy as np
    first = elements[0]
    flat = [_nest.flatten(e) if _nest.is_nested(e) else [e] for e in elements]

    def one(parts):
        if isinstance(parts[0], _C.Tensor):
            return tf.stack(parts)
        return np.stack([np.asarray(p) for p in parts])
    stacked = [one([f[k] for f in flat]) for k in builtins.range(len(flat[0]))]
    return _nest.pack_sequence_as(first, stacked) if _nest.is_nested(first) else stacked[0]


class Dataset:
    """make() gives a fresh iterator each time; size is how many elements there are, -1 without end, -2 not known."""

    def __init__(self, make, size=UNKNOWN_CARDINALITY):
        self._make, self._size = make, size

    # --- sources ----------------------------------------------------------------------------------
    @staticmethod
    def from_tensor_slices(tensors, name=None):
        arrays = _lists_to_arrays(tensors)
        flat = _nest.flatten(arrays)
        n = len(flat[0])
        if any(len(a) != n for a in flat):
            raise ValueError("Dimensions of the tensors' first axes are not compatible.")

        def rows():
            for i in builtins.range(n):
                yield _nest.map_structure(lambda a: a[i], arrays) if _nest.is_nested(arrays) else arrays[i]
        return Dataset(rows, n)

    @staticmethod
    def from_tensors(tensors, name=None):
        return Dataset(lambda: iter([_lists_to_arrays(tensors)]), 1)

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None):
        types = output_types if output_types is not None else output_signature

        def convert(value, kind):
            kind = getattr(kind, "dtype", kind)
            return _C.convert_to_tensor(value, dtype=None if isinstance(value, _C.Tensor) else kind)

        def elements():
            for element in generator(*(args or ())):
                if types is None:
                    yield element
                elif _nest.is_nested(types):
                    flat = [convert(v, k) for v, k in zip(_nest.flatten(element) if not isinstance(types, (list, tuple))
                                                          else element, _nest.flatten(types))]
                    yield _nest.pack_sequence_as(types, flat)
                else:
                    yield convert(element, types)
        return Dataset(elements)

    @staticmethod
    def range(*args, output_type=None, name=None):
        import numpy as np
        kind = np.int64 if output_type is None else tf.as_dtype(output_type).as_numpy_dtype
        numbers = builtins.range(*[int(a) for a in args])
        return Dataset(lambda: (kind(i) for i in numbers), len(numbers))

    @staticmethod
    def zip(*datasets, datasets_=None, name=None):
        parts = datasets[0] if len(datasets) == 1 and isinstance(datasets[0], (tuple, list, dict)) else tuple(datasets)
        flat = _nest.flatten(parts)
        sizes = [d._size for d in flat if d._size != INFINITE_CARDINALITY]

        def elements():
            for together in builtins.zip(*[d._make() for d in flat]):
                it = builtins.iter(together)
                yield _nest._rebuild(parts, [next(it) for _ in flat])
        return Dataset(elements, UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in sizes else min(sizes, default=-1))

    # --- stages -----------------------------------------------------------------------------------
    def map(self, map_func, num_parallel_calls=None, deterministic=None, **ignored):
        return Dataset(lambda: (_call(map_func, e) for e in self._make()), self._size)

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, **ignored):
        k = int(batch_size)

        def batches():
            held = []
            for e in self._make():
                held.append(e)
                if len(held) == k:
                    yield _stack(held)
                    held = []
            if held and not drop_remainder:
                yield _stack(held)
        n = self._size
        return Dataset(batches, n if n < 0 else n // k if drop_remainder else -(-n // k))

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        import numpy as np

        def pad(parts, value):
            parts = [np.asarray(p.numpy() if _C.is_tensor(p) else p) for p in parts]
            shape = np.max([p.shape for p in parts], axis=0)
            out = np.full((len(parts), *shape), 0 if value is None else value, parts[0].dtype)
            for i, p in builtins.enumerate(parts):
                out[(i, *[slice(n) for n in p.shape])] = p
            return out

        def batches():
            held = []
            for e in self._make():
                held.append(e)
                if len(held) == int(batch_size):
                    yield together(held)
                    held = []
            if held and not drop_remainder:
                yield together(held)

        def together(held):
            flat = [_nest.flatten(e) for e in held]
            values = _nest.flatten(padding_values) if _nest.is_nested(padding_values) else [padding_values] * len(flat[0])
            made = [pad([f[k] for f in flat], values[k]) for k in builtins.range(len(flat[0]))]
            return _nest.pack_sequence_as(held[0], made) if _nest.is_nested(held[0]) else made[0]
        return Dataset(batches)

    def unbatch(self, name=None):
        def rows():
            for e in self._make():
                flat = _nest.flatten(e)
                for i in builtins.range(len(flat[0])):
                    yield _nest.pack_sequence_as(e, [a[i] for a in flat]) if _nest.is_nested(e) else e[i]
        return Dataset(rows)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        k = int(buffer_size)
        seeds = _random.Random(_C.draw() if seed is None else seed)
        fixed = None if reshuffle_each_iteration in (True, None) else seeds.random()

        def mixed():
            order = _random.Random(seeds.random() if fixed is None else fixed)
            held = []
            for e in self._make():
                held.append(e)
                if len(held) >= k:
                    i = order.randrange(len(held))
                    held[i], held[-1] = held[-1], held[i]
                    yield held.pop()
            order.shuffle(held)
            yield from held
        return Dataset(mixed, self._size)

    def repeat(self, count=None, name=None):
        def again():
            n = 0
            while count is None or count < 0 or n < count:
                any_ = False
                for e in self._make():
                    any_ = True
                    yield e
                n += 1
                if not any_:
                    return
        endless = count is None or count < 0
        return Dataset(again, INFINITE_CARDINALITY if endless else self._size if self._size < 0 else self._size * count)

    def take(self, count, name=None):
        import itertools
        k = int(count)
        known = self._size if k < 0 or self._size == UNKNOWN_CARDINALITY else k if self._size < 0 else min(k, self._size)
        return Dataset(lambda: itertools.islice(self._make(), None if k < 0 else k), known)

    def skip(self, count, name=None):
        import itertools
        return Dataset(lambda: itertools.islice(self._make(), int(count), None),
                       max(0, self._size - int(count)) if self._size >= 0 else self._size)

    def shard(self, num_shards, index, name=None):
        import itertools
        return Dataset(lambda: itertools.islice(self._make(), int(index), None, int(num_shards)),
                       -(-(self._size - int(index)) // int(num_shards)) if self._size >= 0 else self._size)

    def filter(self, predicate, name=None):
        return Dataset(lambda: (e for e in self._make() if bool(_call(predicate, e))))

    def concatenate(self, dataset, name=None):
        import itertools
        n = self._size + dataset._size if min(self._size, dataset._size) >= 0 else UNKNOWN_CARDINALITY
        return Dataset(lambda: itertools.chain(self._make(), dataset._make()), n)

    def flat_map(self, map_func, name=None):
        return Dataset(lambda: (e for part in self._make() for e in _call(map_func, part)._make()))

    def interleave(self, map_func, cycle_length=None, block_length=1, num_parallel_calls=None, deterministic=None, name=None):
        def elements():
            open_, sources = [], self._make()
            while True:
                while len(open_) < (cycle_length or 8):
                    part = next(sources, None)
                    if part is None:
                        break
                    open_.append(_call(map_func, part)._make())
                if not open_:
                    return
                for it in list(open_):
                    for _ in builtins.range(block_length):
                        try:
                            yield next(it)
                        except StopIteration:
                            open_.remove(it)
                            break
        return Dataset(elements)

    def enumerate(self, start=0, name=None):
        import numpy as np
        return Dataset(lambda: ((np.int64(start + i), e) for i, e in builtins.enumerate(self._make())), self._size)

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        shift = shift or size

        def windows():
            held = list(self._make())
            for first in builtins.range(0, len(held), shift):
                part = held[first:first + (size - 1) * stride + 1:stride]
                if part and (len(part) == size or not drop_remainder):
                    yield _nest.pack_sequence_as(part[0], [Dataset(lambda c=c: iter(c), len(part)) for c in builtins.zip(
                        *[_nest.flatten(e) for e in part])]) if _nest.is_nested(part[0]) else Dataset(
                            lambda part=part: iter(part), len(part))
        return Dataset(windows)

    def scan(self, initial_state, scan_func, name=None):
        def elements():
            state = _tensors(initial_state)
            for e in self._make():
                state, out = scan_func(state, _tensors(e))
                yield out
        return Dataset(elements, self._size)

    def cache(self, filename="", name=None):
        kept = []

        def elements():
            if not kept:
                kept.append(list(self._make()))
            return iter(kept[0])
        return Dataset(elements, self._size)

    def prefetch(self, buffer_size=None, name=None):
        return self

    def with_options(self, options, name=None):
        return self

    def options(self):
        return Options()

    def apply(self, transformation_func):
        return transformation_func(self)

    def reduce(self, initial_state, reduce_func, name=None):
        state = _tensors(initial_state)
        for e in self._make():
            state = reduce_func(state, _tensors(e))
        return state

    # --- ends -------------------------------------------------------------------------------------
    def __iter__(self):
        return Iterator(self._make())

    def as_numpy_iterator(self):
        import numpy as np
        convert = lambda v: v.numpy() if _C.is_tensor(v) else np.asarray(v)[()]
        return (_nest.map_structure(convert, e) if _nest.is_nested(e) else convert(e) for e in self._make())

    def cardinality(self, name=None):
        return tf.constant(self._size, dtype=tf.int64)

    def __len__(self):
        if self._size < 0:
            raise TypeError("The dataset is infinite." if self._size == -1 else "The dataset length is unknown.")
        return self._size

    def __bool__(self):
        return True

    @property
    def element_spec(self):
        first = next(iter(self), None)
        spec = lambda t: TensorSpec(t.shape, t.dtype)
        return _nest.map_structure(spec, first) if _nest.is_nested(first) else spec(first)

    def get_single_element(self, name=None):
        return next(iter(self))

    def __repr__(self):
        return f"<_Dataset of {'?' if self._size < 0 else self._size} elements>"


class Iterator:
    """Elements as tensors; between two of them what assignments wait for is run."""

    def __init__(self, elements):
        self._elements = elements

    def __iter__(self):
        return self

    def __next__(self):
        if not _C.is_tracing():
            _C.boundary()
        return _tensors(next(self._elements))

    get_next = __next__

    def get_next_as_optional(self):
        return next(self, None)


class Options:
    """Settings of TensorFlow's that change nothing here."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__[name] = Options()
        return made


class experimental:
    AUTOTUNE = AUTOTUNE
    INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = INFINITE_CARDINALITY, UNKNOWN_CARDINALITY

    class AutoShardPolicy:
        AUTO, FILE, DATA, OFF = 0, 1, 2, -1

    @staticmethod
    def cardinality(dataset):
        return dataset.cardinality()

    @staticmethod
    def prefetch_to_device(*ignored, **more):
        return lambda dataset: dataset

    @staticmethod
    def assert_cardinality(n):
        return lambda dataset: Dataset(dataset._make, n)
