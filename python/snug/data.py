"""tf.data over the library's pipelines (docs/data.md). A Dataset is a pipeline of C stages and the structure of its elements;
functions of the user's are captured once (snug._capture) and repeated by C threads; what cannot be captured is called in
Python, element by element."""
import builtins
import functools
import itertools
import os

from snug import _C, _capture, _structure
from snug._given import default_only
from snug._lazy import tf
from snug._structure import LEAF
from snug._types import BY_NAME, MakesVariable, Peek, TensorShape, TensorSpec, as_dtype

AUTOTUNE = -1
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2
_STRING, _INT64 = BY_NAME["string"], BY_NAME["int64"]


# --- functions of the user's ------------------------------------------------------------------------------
def _call(function, shape, parts):
    """function on an element: a tuple is several arguments."""
    element = _structure.pack(shape, parts)
    made = function(*element) if type(element) is tuple else function(element)
    return tuple(made) if isinstance(made, list) else made


class _Captured:
    """A function on the elements of a dataset: `run` is a Program, or a Python function from parts to parts; shape and spec
    are those of what it gives."""

    def __init__(self, function, dataset):
        self.function, self.dataset = getattr(function, "python_function", function), dataset
        self.why = None
        made = self._capture()
        if made is None:
            self._sample()

    def _capture(self):
        capture = _capture.Capture(self.dataset._d.spec(), _C.draw())
        try:
            with capture:
                made = _call(self.function, self.dataset._shape, capture.inputs)
                if isinstance(made, Dataset) or any(isinstance(p, Dataset) for p in _structure.flatten(made)):
                    self.made = made
                    return made
                self.shape = _structure.template(made)
                slots = [capture.number(p) for p in _structure.flatten(made)]
                self.spec = [capture.program.slot(n)[0] for n in slots]
                capture.program.give(slots)
            if capture.needs_python:
                self.why, self.run = "it calls Python", self._python
                return capture
        except (Peek, MakesVariable):
            self.why = "it looks at a value"
            return None
        except Exception as error:          # what cannot be written down may be done
            self.why = error.with_traceback(None)  # whose frames hold the dataset, and that this: nobody could free them
            return None
        self.run = capture.program
        return capture

    def _python(self, parts):
        return _structure.flatten_to(self.shape, _call(self.function, self.dataset._shape, parts), "element")

    def _sample(self):
        """Types from the first element that it does not fail for."""
        self.run = self._python
        made = failed = None
        for n, parts in enumerate(_C.Iterator(self.dataset._d, 2, list)):
            try:
                made = _call(self.function, self.dataset._shape, parts)
                break
            except tf.errors.OpError as error:  # of this element's values: raised when it is asked for
                failed = error
                if n == 8:
                    raise
        if made is None:
            if failed is not None:
                raise failed
            self.shape, self.spec = self.dataset._shape, self.dataset._d.spec()
            return
        self.shape = _structure.template(made)
        self.made = made
        if any(isinstance(p, Dataset) for p in _structure.flatten(made)):
            return
        values = [p if hasattr(p, "dtype") and hasattr(p, "shape") else tf.convert_to_tensor(p) for p in _structure.flatten(made)]
        self.spec = [(as_dtype(v.dtype), self._open(tuple(v.shape), parts)) for v in values]

    def _open(self, dims, parts):
        """The extents that other elements may have otherwise: those that are an open extent of what was given, and of what is made of
        texts those of rows and lists (words are not counted before they are seen)."""
        spec = self.dataset._d.spec()
        for (_, known), part in zip(spec, parts):
            if known is not None and tuple(getattr(part, "shape", ())) == dims and len(dims) > 2:
                return known                # of the shape of what was given
        if len(dims) <= 2 and any(dtype.name == "string" for dtype, _ in spec):
            return (None,) * len(dims)
        free = {n for (_, known), part in zip(spec, parts)
                for k, n in enumerate(getattr(part, "shape", ())) if known is None or known[k] is None}
        return tuple(None if n in free else n for n in dims)


def _as_error(error):
    """What iterating raises for an exception of a generator or function: TensorFlow's classes, the exception as the cause."""
    if not isinstance(error, Exception) or isinstance(error, tf.errors.OpError):
        return error
    kind = (tf.errors.InvalidArgumentError if isinstance(error, (TypeError, ValueError)) else
            tf.errors.UnimplementedError if isinstance(error, NotImplementedError) else
            tf.errors.ResourceExhaustedError if isinstance(error, MemoryError) else tf.errors.UnknownError)
    made = kind(None, None, f"{type(error).__name__}: {error}")
    made.__cause__ = error
    return made


def _at_least_one(word, value, otherwise=()):
    """The number, or what stands for one that TensorFlow chooses."""
    if value not in otherwise and int(value) < 1:
        raise tf.errors.InvalidArgumentError(None, None, f"{word} must be greater than zero; it is {int(value)}")
    return value


def _workers(num_parallel_calls):
    return int(_at_least_one("num_parallel_calls", num_parallel_calls, (None, AUTOTUNE)) or 0)


def _no_answer(what):
    return ValueError(f"Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but it returns {what}.")


def _truth(value):
    """What a predicate said when it was called."""
    kind = getattr(value, "dtype", None)
    if not isinstance(value, bool) and (kind is None or as_dtype(kind).name != "bool" or tuple(value.shape)):
        raise _no_answer(value)
    return bool(value)


def _seed(seed):
    return _C.draw() if seed is None else int(seed) & 0xffffffffffffffff


# --- datasets ---------------------------------------------------------------------------------------------
class Dataset:
    """build(*stages, ignore) makes the pipeline from those of its parents."""
    _each = False       # a captured function on each element: it may stand behind an interleave as well

    def __init__(self, build, parents, shape, word="_Dataset"):
        self._build, self._parents, self._shape, self._word = build, parents, shape, word
        self._options = None
        self._rows = parents[0]._rows if parents else None      # of a batch: what was asked for, where nothing else came behind it
        self._d = build(*[p._d for p in parents], ignore=0)

    def _stage(self, word, build, shape=None, parents=()):
        return Dataset(lambda *d, ignore: build(*d), (self, *parents), self._shape if shape is None else shape, word)

    def _ignoring(self):
        """The pipeline without the elements that its functions fail for."""
        return self._build(*[p._ignoring() for p in self._parents], ignore=1)

    # --- sources ----------------------------------------------------------------------------------
    @staticmethod
    def from_tensor_slices(tensors, name=None):
        if hasattr(tensors, "with_flat_values"):            # ragged: each row as long as it is
            spec = TensorSpec([None, *list(tensors.shape)[2:]], tensors.dtype)
            return Dataset.from_generator(lambda: iter(tensors), output_signature=spec)
        return _of_parts(tensors, 1, "_TensorSliceDataset")

    @staticmethod
    def from_tensors(tensors, name=None):
        return _of_parts(tensors, 0, "_TensorDataset")

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None):
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        if output_signature is not None:
            shape = _structure.template(output_signature)
            spec = [(s.dtype, _dims(s.shape)) for s in _structure.flatten(output_signature)]
        elif output_types is not None:
            shape = _structure.template(output_types)
            types = _structure.flatten(output_types)
            shapes = [None] * len(types) if output_shapes is None else _structure.flatten_to(shape, output_shapes, "output_shapes")
            spec = [(as_dtype(t), _dims(s)) for t, s in builtins.zip(types, shapes)]
        else:
            raise TypeError("Either `output_signature` or `output_types` must be specified.")
        args = tuple(tf.convert_to_tensor(a).numpy() for a in args or ())
        return _generated(functools.partial(generator, *args), shape, spec, "_FlatMapDataset")

    @staticmethod
    def range(*args, output_type=None, name=None):
        if _capture.is_slot(*args):
            return _placeholder(LEAF, [(_INT64, ())])
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (args[0], args[1], args[2] if len(args) > 2 else 1)
        made = Dataset(lambda ignore: _C.dataset_of_range(int(start), int(stop), int(step)), (), LEAF, "_RangeDataset")
        if output_type is not None and as_dtype(output_type) != _INT64:
            kind = as_dtype(output_type)
            return made.map(lambda i: tf.cast(i, kind))
        return made

    @staticmethod
    def list_files(file_pattern, shuffle=None, seed=None, name=None):
        patterns = _texts(file_pattern)
        made = Dataset(lambda ignore: _C.dataset_of_files(patterns), (), LEAF, "_ListFilesDataset")
        n = made._d.cardinality()
        if n == 0:
            raise tf.errors.InvalidArgumentError(None, None, "No files matched pattern: " + ", ".join(
                p.decode(errors="replace") for p in patterns))
        return made if shuffle is False else made.shuffle(max(n, 1), seed=seed)

    @staticmethod
    def random(seed=None, rerandomize_each_iteration=None, name=None):
        if rerandomize_each_iteration:
            made = Dataset.range(2 ** 62).map(lambda i: tf.random.uniform((), 0, 2 ** 31 - 1, dtype=tf.int32))
        else:
            key = _seed(seed) & 0x7fffffffffffffff
            made = Dataset.range(2 ** 62).map(lambda i: tf.random.stateless_uniform((), tf.stack([tf.constant(key, tf.int64), i]), 0, 2 ** 31 - 1,
                                                                                    dtype=tf.int32))
        return made.map(lambda i: tf.cast(i, tf.int64)).repeat()

    @staticmethod
    def counter(start=0, step=1, dtype=None, name=None):
        made = Dataset.range(int(start), 2 ** 62 if step > 0 else -2 ** 62, int(step)).repeat()
        return made if dtype is None or as_dtype(dtype) == _INT64 else made.map(lambda i: tf.cast(i, dtype))

    @staticmethod
    def zip(*args, datasets=None, name=None):
        parts = datasets if datasets is not None else args[0] if len(args) == 1 else tuple(args)
        if isinstance(parts, Dataset):
            return parts
        parts = tuple(parts) if isinstance(parts, list) else parts
        flat = _structure.flatten(parts)
        if not flat or not all(isinstance(d, Dataset) for d in flat):
            raise TypeError(f"The argument to `Dataset.zip()` must be a (nested) structure of `Dataset` objects: {parts!r}")
        shape = _structure.pack(_structure.template(parts), [d._shape for d in flat])
        return Dataset(lambda *d, ignore: _C.zip_datasets(list(d)), tuple(flat), shape, "_ZipDataset")

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True, name=None):
        return Dataset(lambda *d, ignore: _C.choose_datasets(list(d[:-1]), d[-1], None, 0, int(stop_on_empty_dataset)),
                       (*datasets, choice_dataset), datasets[0]._shape, "_DirectedInterleaveDataset")

    @staticmethod
    @default_only("rerandomize_each_iteration")
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False, rerandomize_each_iteration=None,
                             name=None):
        weights = [1.0] * len(datasets) if weights is None else [float(w) for w in weights]
        seed = _seed(seed)
        return Dataset(lambda *d, ignore: _C.choose_datasets(list(d), None, weights, seed, int(stop_on_empty_dataset)),
                       tuple(datasets), datasets[0]._shape, "_DirectedInterleaveDataset")

    # --- stages with functions --------------------------------------------------------------------
    def map(self, map_func, num_parallel_calls=None, deterministic=None, synchronous=None, use_unbounded_threadpool=False, name=None):
        if isinstance(self, _Windows):
            return self._map(map_func)
        f = _Captured(map_func, self)
        if any(isinstance(p, Dataset) for p in _structure.flatten(getattr(f, "made", None))):
            return _Windows(lambda: (_call(map_func, self._shape, e) for e in self._raw()))
        workers = _workers(num_parallel_calls)
        made = Dataset(lambda d, ignore: d.map(f.run, f.spec, workers, int(deterministic is False), ignore), (self,), f.shape,
                       "_MapDataset" if num_parallel_calls is None else "_ParallelMapDataset")
        made._each = isinstance(f.run, _C.Program)
        return made

    def filter(self, predicate, name=None):
        f = _Predicate(predicate, self)
        kinds = [(kind.name, dims or ()) for kind, dims in f.spec]
        if kinds != [("bool", ())]:
            raise _no_answer(", ".join(f"{name}{list(dims)}" for name, dims in kinds) or "nothing")
        return self._stage("_FilterDataset", lambda d: d.filter(f.run, f.spec))

    def flat_map(self, map_func, name=None):
        return self._expand(map_func, 1, 1, 0, "_FlatMapDataset")

    def interleave(self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None, deterministic=None, name=None):
        cycle = os.cpu_count() or 1 if cycle_length in (None, AUTOTUNE) else int(_at_least_one("cycle_length", cycle_length))
        block = 1 if block_length is None else int(_at_least_one("block_length", block_length))
        return self._expand(map_func, cycle, block, _workers(num_parallel_calls), "_InterleaveDataset")

    def _expand(self, map_func, cycle, block, workers, word):
        f = _Captured(map_func, self)
        first = getattr(f, "made", None)
        if not isinstance(first, Dataset):
            raise TypeError(f"The `map_func` argument must return a `Dataset` object. Got {type(first).__name__}.")
        if isinstance(first, _Windows):
            raise tf.errors.UnimplementedError(None, None, "flat_map to a dataset of datasets")

        plain = _of_records(first) if self._shape is LEAF else None
        if plain is not None:
            made = self._stage(word, lambda d: d.interleave_records(*plain[0], cycle, block, workers), LEAF)
            for stage in plain[1]:          # functions on records go behind: they see the same ones
                made = Dataset(stage._build, (made,), stage._shape, stage._word)
            return made

        def make(parts):
            return _call(f.function, self._shape, parts)._d
        return self._stage(word, lambda d: d.interleave(make, first._d.spec(), cycle, block, workers), first._shape)

    def take_while(self, predicate, name=None):
        def elements():
            for parts in self._raw():
                if not _truth(_call(predicate, self._shape, parts)):
                    return
                yield parts
        return self._again(elements, "_TakeWhileDataset")

    def scan(self, initial_state, scan_func, name=None):
        first = _tensors(initial_state)
        made = next(self._raw(), None)
        _, out = scan_func(first, _structure.pack(self._shape, made)) if made is not None else (None, first)
        out = _structure.template(out), _tensors(out)

        def elements():
            state = first
            for parts in self._raw():
                state, given = scan_func(state, _structure.pack(self._shape, parts))
                yield _structure.flatten_to(out[0], given)
        spec = [(as_dtype(v.dtype), tuple(v.shape)) for v in _structure.flatten(out[1])]
        return _generated(elements, out[0], spec, "_ScanDataset", self._d.cardinality(), flat=True)

    def reduce(self, initial_state, reduce_func, name=None):
        state = _tensors(initial_state)
        shape = _structure.template(state)
        for n, element in builtins.enumerate(self):
            state = reduce_func(state, element)
            state = tuple(state) if isinstance(state, list) else state
            if n % 256 == 255:
                _C.sync()
        return _structure.pack(shape, [tf.convert_to_tensor(p) for p in _structure.flatten_to(shape, state)])

    # --- stages -----------------------------------------------------------------------------------
    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        k = _count(batch_size, "batch_size")
        made = self._stage("_BatchDataset" if num_parallel_calls is None else "_ParallelBatchDataset",
                           lambda d: d.batch(k, int(bool(drop_remainder))))
        known = int(self._d.cardinality())
        made._rows = min(k, known) if known > 0 else k
        return made

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        k = _count(batch_size, "batch_size")
        spec = self._d.spec()
        if padded_shapes is None:
            shapes = spec                   # of an unknown rank too: the longest of each batch
        else:
            given = _structure.flatten_to(self._shape, padded_shapes, "padded_shapes")
            shapes = [(kind, _padded(s)) for (kind, _), s in builtins.zip(spec, given)]
        values = [_padding(kind, v) for (kind, _), v in builtins.zip(spec, self._values(padding_values))]
        return self._stage("_PaddedBatchDataset", lambda d: d.padded_batch(k, int(bool(drop_remainder)), shapes, values))

    def _values(self, values):
        n = len(self._d.spec())
        if values is None or (self._shape is not LEAF and not isinstance(values, (tuple, list, dict))):
            return [values] * n
        return _structure.flatten_to(self._shape, values, "padding_values")

    @default_only("row_splits_dtype")
    def ragged_batch(self, batch_size, drop_remainder=False, row_splits_dtype=None, name=None):
        k, dims = _count(batch_size, "batch_size"), [dims for _, dims in self._d.spec()]
        if any(d is not None and None in d[1:] for d in dims):
            raise tf.errors.UnimplementedError(None, None, "ragged_batch of elements that are open behind their first axis; padded_batch is the"
                                               " nearest")

        def one(rows, d):
            if rows[0].shape.rank == 0 or (d is not None and d[0] is not None):        # of an unknown rank: as the rows are
                return tf.stack(rows)
            return tf.RaggedTensor.from_row_lengths(tf.concat(rows, 0), [r.shape[0] for r in rows])

        def batches():
            elements = (_structure.flatten(e) for e in self)
            while rows := list(itertools.islice(elements, k)):
                if len(rows) == k or not drop_remainder:
                    yield _structure.pack(self._shape, [one(r, d) for r, d in builtins.zip(builtins.zip(*rows), dims)])
        return _RaggedBatches(batches)

    def unbatch(self, name=None):
        made = self._stage("_UnbatchDataset", lambda d: d.unbatch())
        made._rows = None
        return made

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        return self.unbatch().batch(batch_size, drop_remainder)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        k, key = int(buffer_size), _seed(seed)
        if k == UNKNOWN_CARDINALITY:
            k = max(int(self._d.cardinality()), 1)
        if k < 1:
            raise tf.errors.InvalidArgumentError(None, None, "buffer_size must be greater than zero.")
        keep = int(reshuffle_each_iteration is False)
        return self._stage("_ShuffleDataset", lambda d: d.shuffle(k, key, keep))

    def repeat(self, count=None, name=None):
        k = -1 if count is None else int(count)
        return self._stage("_RepeatDataset", lambda d: d.repeat(k))

    def take(self, count, name=None):
        return self._stage("_TakeDataset", lambda d: d.take(int(count)))

    def skip(self, count, name=None):
        return self._stage("_SkipDataset", lambda d: d.skip(int(count)))

    def shard(self, num_shards, index, name=None):
        n, i = int(num_shards), int(index)
        if n < 1 or not 0 <= i < n:
            raise tf.errors.InvalidArgumentError(None, None, f"index must be in [0, {n}), but is {i}" if n > 0 else
                                                 f"num_shards must be >= 1; got {n}")
        return self._stage("_ShardDataset", lambda d: d.shard(n, i))

    def enumerate(self, start=0, name=None):
        return self._stage("_EnumerateDataset", lambda d: d.enumerate(int(start)), (LEAF, self._shape))

    def concatenate(self, dataset, name=None):
        if _structure.describe(self._shape) != _structure.describe(dataset._shape):
            raise TypeError(f"Incompatible types of input datasets: {self.element_spec!r} vs. {dataset.element_spec!r}")
        return self._stage("_ConcatenateDataset", lambda d, other: d.concatenate(other), parents=(dataset,))

    def cache(self, filename="", name=None):
        path = _texts(filename)[0].decode() if filename is not None and filename != "" else None
        return self._stage("CacheDataset", lambda d: d.cache(path))

    def prefetch(self, buffer_size=None, name=None):
        k = AUTOTUNE if buffer_size is None else int(buffer_size)
        return self._stage("_PrefetchDataset", lambda d: d.prefetch(k))

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        size, stride = int(size), int(stride)
        shift = size if shift is None else int(shift)
        if min(size, stride, shift) < 1:
            raise tf.errors.InvalidArgumentError(None, None, "Window size, shift and stride must be greater than zero.")
        reach = (size - 1) * stride + 1

        def windows():
            held, gap = [], 0               # rows that windows to come need; rows to pass over first
            source, ended = self._raw(), False
            while True:
                while gap and not ended:
                    ended = next(source, None) is None
                    gap -= 1
                while len(held) < reach and not ended:
                    row = next(source, None)
                    ended = row is None
                    if row is not None:
                        held.append(row)
                part = held[:reach:stride]
                if not part or (drop_remainder and len(part) < size):
                    return
                yield self._window(part)
                gap = max(0, shift - len(held))
                del held[:shift]
        return _Windows(windows)

    def _window(self, rows):
        """The datasets of the parts of some elements."""
        spec = self._d.spec()
        made = [_generated(functools.partial(iter, [r[k] for r in rows]), LEAF, [spec[k]], "_VariantDataset", len(rows))
                for k in builtins.range(len(spec))]
        return _structure.pack(self._shape, made)

    def group_by_window(self, key_func, reduce_func, window_size=None, window_size_func=None, name=None, _spec=None):
        def groups():
            held = {}
            for parts in self._raw():
                key = _call(key_func, self._shape, parts)
                k = int(key)
                held.setdefault(k, (key, []))[1].append(parts)
                size = window_size if window_size_func is None else window_size_func(key)
                if len(held[k][1]) >= int(_at_least_one("window_size", size)):
                    yield together(*held.pop(k))
            for k in sorted(held):
                yield together(*held[k])

        def together(key, rows):
            return reduce_func(key, self._again(lambda: iter(rows), "_VariantDataset", len(rows)))
        first = next(groups(), None)
        if first is None:
            return self.take(0)

        def elements():
            for made in groups():
                yield from made._raw()
        spec = first._d.spec() if _spec is None else _spec
        return _generated(elements, first._shape, spec, "_GroupByWindowDataset", flat=True)

    def bucket_by_sequence_length(self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None,
                                  padding_values=None, pad_to_bucket_boundary=False, no_padding=False, drop_remainder=False, name=None):
        limits = [int(b) for b in bucket_boundaries]
        if pad_to_bucket_boundary and no_padding:
            raise ValueError("`pad_to_bucket_boundary` and `no_padding` exclude each other.")

        def shapes(number):
            """Open extents of the padded shapes are as long as the bucket allows."""
            if not pad_to_bucket_boundary:
                return padded_shapes
            if number == len(limits):
                raise tf.errors.InvalidArgumentError(None, None, "When pad_to_bucket_boundary=True, elements must have length < "
                                                     "max(bucket_boundaries).")
            spec = self._d.spec()
            given = [dims for _, dims in spec] if padded_shapes is None else [
                _padded(s) for s in _structure.flatten_to(self._shape, padded_shapes, "padded_shapes")]
            return _structure.pack(self._shape, [TensorShape([limits[number] - 1 if n is None else n for n in s]) for s in given])

        def bucket(*element):
            n = int(element_length_func(*element))
            return tf.constant(sum(n >= b for b in limits), dtype=tf.int64)

        def together(key, rows):
            size = bucket_batch_sizes[int(key)]
            return rows.batch(size, drop_remainder) if no_padding else rows.padded_batch(size, shapes(int(key)), padding_values,
                                                                                         drop_remainder)
        spec = [(kind, dims if dims is None else (None, *dims)) for kind, dims in self._d.spec()]
        return self.group_by_window(bucket, together, window_size_func=lambda key: bucket_batch_sizes[int(key)], _spec=spec)

    def unique(self, name=None):
        def elements():
            seen = set()
            for parts in self._raw():
                value = parts[0].numpy()
                if value not in seen:
                    seen.add(value)
                    yield parts
        return self._again(elements, "_UniqueDataset")

    def rejection_resample(self, class_func, target_dist, initial_dist=None, seed=None, name=None):
        """Of (class, element) those that a draw keeps, so that classes come as target_dist says. Without initial_dist how often each
        comes is counted while they go by, element by element in Python."""
        import numpy as np
        target = np.asarray(tf.convert_to_tensor(target_dist), "float64")

        def keep(seen):
            ratio = target / np.maximum(seen / seen.sum(), np.finfo("float32").tiny)
            return ratio / ratio.max()
        classed = self.map(lambda *element: (class_func(*element), element[0] if len(element) == 1 else element))
        if initial_dist is not None:
            chance = tf.constant(keep(np.asarray(tf.convert_to_tensor(initial_dist), "float64")).astype("float32"))
            return classed.filter(lambda number, element: tf.random.uniform([], seed=seed) < tf.gather(chance, number))

        first = _seed(seed) & 0xffffffff

        def elements():
            draw, seen = np.random.RandomState(first), np.full(len(target), 10.0)
            for parts in classed._raw():
                number = int(parts[0])
                seen[number] += 1
                if draw.rand() < keep(seen)[number]:
                    yield parts
        return classed._again(elements, "_FilterDataset")

    def sparse_batch(self, batch_size, row_shape, name=None):
        raise tf.errors.UnimplementedError(None, None, "Snug has no sparse batches; padded_batch is the nearest")

    def fingerprint(self):
        raise tf.errors.UnimplementedError(None, None, "datasets of Snug have no fingerprint")

    def ignore_errors(self, log_warning=False, name=None):
        return Dataset(lambda d, ignore: self._ignoring(), (self,), self._shape, "_IgnoreErrorsDataset")

    @default_only("reader_func shard_func")
    def snapshot(self, path, compression="AUTO", reader_func=None, shard_func=None, name=None):
        if compression not in ("AUTO", "SNAPPY", "GZIP", "NONE", "", None):
            raise ValueError(f"compression {compression!r} is none of 'AUTO', 'GZIP', 'SNAPPY', 'NONE'")
        os.makedirs(path, exist_ok=True)
        return self.cache(os.path.join(path, "snapshot"))

    @default_only("compression shard_func checkpoint_args")
    def save(self, path, compression=None, shard_func=None, checkpoint_args=None):
        from snug import _saved_data
        _saved_data.save(self, os.fspath(path))

    @staticmethod
    @default_only("reader_func wait compression")
    def load(path, element_spec=None, compression=None, reader_func=None, wait=False):
        from snug import _saved_data
        made = _saved_data.load(os.fspath(path))
        if element_spec is not None and repr(element_spec) != repr(made.element_spec):
            raise ValueError(f"'{path}' holds elements of {made.element_spec!r}, not of {element_spec!r}")
        return made

    # --- options ----------------------------------------------------------------------------------
    def with_options(self, options, name=None):
        made = self._stage("_OptionsDataset", lambda d: d)
        made._options = options
        return made

    def options(self):
        dataset = self
        while dataset._options is None and dataset._parents:
            dataset = dataset._parents[0]
        return dataset._options or Options()

    def apply(self, transformation_func):
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise TypeError(f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(made).__name__}.")
        return made

    # --- ends -------------------------------------------------------------------------------------
    def _raw(self, numpy=False):
        """Lists of parts."""
        it = _C.Iterator(self._d, 2, _same)
        if not numpy:
            return it
        return iter(_Arrays(it))

    def _again(self, elements, word, size=UNKNOWN_CARDINALITY):
        """A dataset of the same structure, whose elements a Python function gives as lists of parts."""
        return _generated(elements, self._shape, self._d.spec(), word, size, flat=True)

    def __iter__(self):
        return Iterator(self._d, _structure.kind(self._shape), functools.partial(_structure.pack, self._shape))._of(self)

    def make_one_shot_iterator(self):
        """As TensorFlow 1's datasets have it."""
        from snug.compat_v1 import data
        return data.make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name=None):
        from snug.compat_v1 import data
        return data.make_initializable_iterator(self)

    def as_numpy_iterator(self):
        return _Arrays(iter(self))

    def cardinality(self, name=None):
        return tf.constant(self._d.cardinality(), dtype=tf.int64)

    def __len__(self):
        n = self._d.cardinality()
        if n < 0:
            raise TypeError("The dataset is infinite." if n == INFINITE_CARDINALITY else "The dataset length is unknown.")
        return n

    def __bool__(self):
        return True

    __nonzero__ = __bool__

    @property
    def element_spec(self):
        return _structure.pack(self._shape, [TensorSpec(dims, kind) for kind, dims in self._d.spec()])

    def get_single_element(self, name=None):
        elements = iter(self)
        first = next(elements, None)
        if first is None:
            raise tf.errors.InvalidArgumentError(None, None, "Dataset was empty.")
        if next(elements, None) is not None:
            raise tf.errors.InvalidArgumentError(None, None, "Dataset had more than one element.")
        return first

    def __repr__(self):
        return f"<{self._word} element_spec={self.element_spec!r}>"

    __str__ = __repr__


def _same(parts):
    return parts


class _Arrays:
    """Elements as NumPy arrays."""

    def __init__(self, iterator):
        self._iterator = iterator

    def __iter__(self):
        return self

    def __next__(self):
        return self._iterator.next_numpy()

    next = __next__


class _Predicate(_Captured):
    """A function that says yes or no."""

    def _sample(self):
        self.run, self.shape, self.spec = self._python, LEAF, [(BY_NAME["bool"], ())]

    def _python(self, parts):
        return [_truth(_call(self.function, self.dataset._shape, parts))]


class _Windows(Dataset):
    """Elements that are datasets, or structures of them: Python's."""

    def __init__(self, make):
        self._make, self._parents, self._shape, self._word, self._options = make, (), LEAF, "_WindowDataset", None
        self._d = None

    def __iter__(self):
        return iter(self._make())

    def _calls(self, function):
        """What makes the elements anew, each given to the function."""
        def made():
            for e in self._make():
                out = function(*e) if isinstance(e, tuple) else function(e)
                yield tuple(out) if isinstance(out, list) else out
        return made

    def _map(self, function):
        made = self._calls(function)
        first = next(made(), None)
        if first is None or any(isinstance(p, Dataset) for p in _structure.flatten(first)):
            return _Windows(made)
        shape, parts = _structure.template(first), [tf.convert_to_tensor(p) for p in _structure.flatten(first)]
        spec = [(p.dtype, tuple(p.shape)) for p in parts]
        return _generated(made, shape, spec, "_MapDataset")

    def _expand(self, map_func, cycle, block, workers, word):
        inner = lambda e: map_func(*e) if isinstance(e, tuple) else map_func(e)
        first = next((inner(e) for e in self._make()), None)
        if not isinstance(first, Dataset):
            raise TypeError(f"The `map_func` argument must return a `Dataset` object. Got {type(first).__name__}.")

        def elements():
            source = self._make()
            open_ones = [inner(e)._raw() for e in itertools.islice(source, cycle)]
            at = 0
            while open_ones:
                given = list(itertools.islice(open_ones[at], block))
                yield from given
                if len(given) < block:               # its place is the next one's
                    after = next(source, None)
                    open_ones[at:at + 1] = [] if after is None else [inner(after)._raw()]
                    at = at if after is None else at + 1
                else:
                    at += 1
                at = at % len(open_ones) if open_ones else 0
        spec = [(kind, None if dims is None else tuple(dims)) for kind, dims in first._d.spec()]
        return _generated(elements, first._shape, spec, word, flat=True)

    def take(self, count, name=None):
        return _Windows(lambda: itertools.islice(self._make(), int(count)))

    def skip(self, count, name=None):
        return _Windows(lambda: itertools.islice(self._make(), int(count), None))

    def filter(self, predicate, name=None):
        return _Windows(lambda: (e for e in self._make() if bool(predicate(*e) if isinstance(e, tuple) else predicate(e))))

    def cardinality(self, name=None):
        return tf.constant(UNKNOWN_CARDINALITY, dtype=tf.int64)

    @property
    def element_spec(self):
        first = next(iter(self), None)
        return _structure.pack(_structure.template(first), [DatasetSpec(d.element_spec) for d in _structure.flatten(first)])


class _RaggedBatches(_Windows):
    """Batches with ragged tensors in them, which are Python's; what map makes dense of them is a dataset like others."""

    def _map(self, function):
        made = self._calls(function)
        first = next(made(), None)
        if first is None or any(hasattr(p, "with_flat_values") for p in _structure.flatten(first)):
            return _RaggedBatches(made)
        parts = [tf.convert_to_tensor(p) for p in _structure.flatten(first)]
        return _generated(made, _structure.template(first), [(p.dtype, (None,) * p.shape.rank) for p in parts], "_MapDataset")

    def take(self, count, name=None):
        return _RaggedBatches(super().take(count)._make)

    def skip(self, count, name=None):
        return _RaggedBatches(super().skip(count)._make)

    def filter(self, predicate, name=None):
        return _RaggedBatches(super().filter(predicate)._make)

    def prefetch(self, buffer_size, name=None):
        return self

    def _stage(self, word, build, shape=None, parents=()):
        raise tf.errors.UnimplementedError(None, None, f"{word} of ragged batches is not in Snug: do it before ragged_batch, or map them to dense"
                                           " tensors first")

    @property
    def element_spec(self):
        raise tf.errors.UnimplementedError(None, None, "the spec of ragged batches is not in Snug")


class DatasetSpec:
    @default_only("dataset_shape")
    def __init__(self, element_spec, dataset_shape=()):
        self.element_spec = element_spec

    def __repr__(self):
        return f"DatasetSpec({self.element_spec!r}, TensorShape([]))"


# --- making datasets --------------------------------------------------------------------------------------
def _dims(shape):
    shape = TensorShape(shape)
    return None if shape.rank is None else tuple(shape.as_list())


def _padded(shape):
    if hasattr(shape, "numpy"):
        shape = [None if int(n) < 0 else int(n) for n in shape.numpy()]
    return tuple(None if n is None or int(n) < 0 else int(n) for n in (
        shape.as_list() if isinstance(shape, TensorShape) else shape if isinstance(shape, (list, tuple)) else [shape]))


def _padding(kind, value):
    if value is None:
        return "" if kind == _STRING else False if kind.is_bool else 0
    value = value.numpy() if hasattr(value, "numpy") else value
    return value.item() if hasattr(value, "item") else value


def _count(value, what):
    n = int(value)
    if n < 1:
        raise tf.errors.InvalidArgumentError(None, None, f"{what} must be greater than zero.")
    return n


def _texts(value):
    from snug._strings import _array
    return [v for v in _array(value.tolist() if hasattr(value, "tolist") else
                              os.fspath(value) if isinstance(value, os.PathLike) else
                              [os.fspath(v) if isinstance(v, os.PathLike) else v for v in value]
                              if isinstance(value, (list, tuple)) else value).ravel()]


def _tensors(structure):
    return _structure.pack(_structure.template(structure), [tf.convert_to_tensor(p) for p in _structure.flatten(structure)])


def _of_parts(tensors, slices, word):
    if isinstance(tensors, list) and tensors and all(isinstance(t, (tuple, dict)) for t in tensors) and not slices:
        tensors = tuple(tensors)
    shape, parts = _structure.template(tensors), _structure.flatten(tensors)
    if _capture.is_slot(*parts):
        spec = [(p.dtype, _dims(p.shape)) for p in [p if isinstance(p, _capture.Slot) else tf.convert_to_tensor(p) for p in parts]]
        return _placeholder(shape, [(kind, dims if dims is None or not slices else dims[1:]) for kind, dims in spec])
    parts = [_value(p) for p in parts]
    if slices:
        sizes = [p.shape[0] if len(p.shape) else None for p in parts]
        if None in sizes:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        if len(set(sizes)) > 1:
            raise ValueError(f"Dimensions {sizes[0]} and {next(s for s in sizes if s != sizes[0])} are not compatible")
    return Dataset(lambda ignore: _C.dataset_of_parts(parts, slices), (), shape, word)


def _value(part):
    """An array or tensor; lists and other libraries' data become one."""
    from snug import _arrays
    part = _arrays.of(part)
    return part if hasattr(part, "shape") and hasattr(part, "dtype") else tf.convert_to_tensor(part)


def _generated(make, shape, spec, word, size=UNKNOWN_CARDINALITY, flat=False):
    """Elements of a Python iterator; flat: as lists of parts."""
    kind = 1 if flat else _structure.kind(shape)
    flatten = functools.partial(_structure.flatten_to, shape)
    return Dataset(lambda ignore: _C.dataset_of_generator(make, spec, kind, flatten, size), (), shape, word)


def _placeholder(shape, spec):
    """What a dataset made of a Slot looks like, for those who ask while a function is captured."""
    return _generated(lambda: iter(()), shape, spec, "_Placeholder")


# --- files ------------------------------------------------------------------------------------------------
_COMPRESSION = {"": 0, None: 0, "GZIP": 1, "ZLIB": 2}


def _of_records(dataset):
    """((kind, compression), stages) of a dataset that is records of the captured function's file, and functions on each."""
    stages = []
    while dataset._each:
        stages.insert(0, dataset)
        dataset = dataset._parents[0]
    kind = getattr(dataset, "_of_slot", None)
    return None if kind is None else (kind, stages)


class _Records(Dataset):
    _kind = 0

    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
        if compression_type not in _COMPRESSION:
            raise tf.errors.InvalidArgumentError(None, None, f"Unsupported compression_type: {compression_type}.")
        compression = _COMPRESSION[compression_type]
        if isinstance(filenames, _capture.Slot):
            files, self._of_slot = Dataset.from_tensor_slices([""]), (self._kind, compression)
        else:
            files = filenames if isinstance(filenames, Dataset) else Dataset.from_tensor_slices(tf.constant(_texts(filenames)))
        super().__init__(lambda d, ignore: d.records(self._kind, compression), (files,), LEAF, type(self).__name__ + "V2")


class TextLineDataset(_Records):
    """Lines of text files."""
    _kind = 0


class TFRecordDataset(_Records):
    """Records of TFRecord files."""
    _kind = 1


def _claim(raw):
    """What a small .gz that unpacks to much says of its size in its last bytes: if it is whole, that is so. None: it is not worth a look or not sure, since there
    may be another member. Of 16 MiB and more the number's last byte is not zero, so that no zeros stand behind it."""
    size = os.fstat(raw.fileno()).st_size
    if size > 1 << 20:
        return None
    data = raw.read()
    raw.seek(0)
    claim = int.from_bytes(data[-4:], "little")
    worth = claim >= 16 << 20 and 500 * size <= claim <= 1032 * size        # deflate makes no more of a byte
    return claim if worth and data.find(b"\x1f\x8b\x08", 1) < 0 else None


def _fixed(path, n, head, foot, packed):
    """A file's records, of which no more than a piece, a record and the bytes behind the last one are in memory at once."""
    import zlib
    from snug._files import open_regular
    from snug._gzip import gunzip

    def refuse_rest(size, why=""):
        if size > 0 and size % n:
            raise tf.errors.InvalidArgumentError(None, None, f"Excess bytes in the body of '{path}': {size} is no multiple of {n}{why}")

    with open_regular(path) as raw:
        claim = _claim(raw) if packed else os.fstat(raw.fileno()).st_size
        if claim is not None:
            refuse_rest(claim - head - foot, ", by what the file's last bytes say of it" if packed else "")
        file, kept, skip, given = gunzip(raw) if packed else raw, bytearray(), head, 0

        def next_piece():
            try:
                return file.read1(1 << 18)      # what comes before the damage is given
            except (EOFError, zlib.error) as error:
                raise tf.errors.DataLossError(None, None, f"'{path}' is damaged behind {given + len(kept)} bytes of records: {error}") from None
        while piece := next_piece():
            kept += piece[skip:]
            skip -= min(skip, len(piece))
            whole = max(len(kept) - foot, 0) // n * n
            for i in builtins.range(0, whole, n):
                yield bytes(kept[i:i + n])
            del kept[:whole]
            given += whole
    refuse_rest(given + len(kept) - foot)


class FixedLengthRecordDataset(Dataset):
    """Pieces of equal length of files."""

    def __init__(self, filenames, record_bytes, header_bytes=None, footer_bytes=None, buffer_size=None, compression_type=None,
                 num_parallel_reads=None, name=None):
        paths, n = [p.decode() for p in _texts(filenames)], int(record_bytes)
        head, foot = int(header_bytes or 0), int(footer_bytes or 0)
        if n <= 0 or head < 0 or foot < 0:
            raise tf.errors.InvalidArgumentError(None, None, f"records of {n} bytes, {head} before and {foot} behind them; give a positive record_bytes")

        def records():
            for path in paths:
                if compression_type not in _COMPRESSION or compression_type == "ZLIB":
                    raise tf.errors.InvalidArgumentError(None, None, f"Unsupported compression_type: {compression_type}.")
                yield from _fixed(path, n, head, foot, compression_type == "GZIP")
        super().__init__(lambda ignore: _C.dataset_of_generator(records, [(_STRING, ())], 0, None, UNKNOWN_CARDINALITY), (), LEAF,
                         "FixedLengthRecordDatasetV2")


# --- iterators --------------------------------------------------------------------------------------------
class Iterator(_C.Iterator):
    """Elements as tensors; between two of them what assignments wait for is run."""

    def _of(self, dataset):
        self._dataset = dataset
        return self

    @property
    def element_spec(self):
        return self._dataset.element_spec

    def get_next(self, name=None):
        try:
            return next(self)
        except StopIteration:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence") from None

    def get_next_as_optional(self):
        try:
            return Optional([next(self)], self.element_spec)
        except StopIteration:
            return Optional([], self.element_spec)


OwnedIterator = Iterator


class Optional:
    """tf.experimental.Optional: an element, or none."""

    def __init__(self, held, spec):
        self._held, self.element_spec = held, spec

    def has_value(self, name=None):
        return tf.constant(bool(self._held))

    def get_value(self, name=None):
        if not self._held:
            raise tf.errors.InvalidArgumentError(None, None, "The given optional does not have a value.")
        return self._held[0]


class Options:
    """Settings of TensorFlow's that change nothing here."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__[name] = Options()
        return made

    def merge(self, options):
        made = Options()
        made.__dict__.update(self.__dict__)
        made.__dict__.update(options.__dict__)
        return made


class ThreadingOptions(Options):
    pass


def NumpyIterator(dataset):
    return dataset.as_numpy_iterator()


from snug import _data_experimental as experimental  # noqa: E402, F401 (it is made of the names above)
