"""Batches for fit, evaluate and predict: from arrays, tensors, generators, PyDatasets and anything that can be iterated."""
import math

from snug import _C, _arrays, _nest


def _is_arrays(x):
    flat = _nest.flatten(x)
    return bool(flat) and all(hasattr(a, "shape") and hasattr(a, "__getitem__") and not hasattr(a, "element_spec") for a in flat)


def _as_arrays(x, columns=True):
    """Lists of numbers and other libraries' data become arrays; structures stay. A column of a table is one feature of each row, as in Keras."""
    import numpy as np
    if isinstance(x, _C.Variable):
        return x.numpy()
    if not isinstance(x, (dict, list, tuple)):
        made = _arrays.of(x)
        return made[:, None] if columns and _arrays.is_frame(x) and made.ndim == 1 else made
    if isinstance(x, dict):
        return {k: _as_arrays(v, columns) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        if x and all(hasattr(a, "shape") and len(a.shape) for a in x):
            return type(x)(_as_arrays(a, columns) for a in x)
        return _arrays.of(np.asarray(x))
    return x


def train_validation_split(x, y, w, split):
    if not all(hasattr(a, "shape") for a in _nest.flatten([x, y]) if a is not None):
        raise ValueError("Argument `validation_split` is only supported for tensors or NumPy arrays."
                         f" Found incompatible type in the input: {[type(a).__name__ for a in _nest.flatten([x, y])]}")
    rows = _rows((x, y, w))
    at = int(rows * (1.0 - split))
    if at == 0 or at == rows:
        raise ValueError(f"Training data contains {rows} samples, which is not sufficient to split it into a validation and training set"
                         f" as specified by `validation_split={split}`.")
    part = lambda a, first, end: None if a is None else _nest.map_structure(lambda v: v[first:end], a) if _nest.is_nested(a) else a[first:end]
    return tuple(part(a, 0, at) for a in (x, y, w)), tuple(part(a, at, rows) for a in (x, y, w))


def _rows(structure):
    counts = {int(a.shape[0]) for a in _nest.flatten(structure) if a is not None}
    if len(counts) > 1:
        sizes = [f"'{label}' sizes: {', '.join(str(a.shape[0]) for a in _nest.flatten(part) if a is not None)}\n"
                 for label, part in zip(("x", "y", "sample_weight"), structure) if part is not None]
        raise ValueError("Data cardinality is ambiguous. Make sure all arrays contain the same number of samples." + "".join(sizes))
    return counts.pop()


def _floats(rows):
    """Rows of an array as a tensor: numbers with a fraction are of Keras' float type, as Keras has them."""
    from snug._lazy import tf
    from snug.keras import backend
    rows = _C.convert_to_tensor(rows)
    return tf.cast(rows, backend.floatx()) if rows.dtype.is_floating and rows.dtype.name != backend.floatx() else rows


def _untouched(shape, dtype):
    """An array whose memory nobody has written: it takes none."""
    import mmap
    import numpy as np
    n = math.prod(shape)
    return np.frombuffer(mmap.mmap(-1, max(1, n * np.dtype(dtype).itemsize)), dtype, n).reshape(shape)


def _kind(a):
    """As NumPy has it."""
    return getattr(a.dtype, "as_numpy_dtype", a.dtype)


class Arrays:
    """Slices of arrays, in order or shuffled anew in each epoch. Where epochs have so many steps, the next one goes on with what is left."""

    def __init__(self, x, y=None, sample_weight=None, batch_size=None, shuffle=False, steps=None):
        self.data = (x, y, sample_weight)
        self.limit, self.open, self.given = steps, None, 0
        self.rows = _rows(self.data)
        self.batch = batch_size or 32
        self.shuffle = shuffle
        self.steps = -(-self.rows // self.batch)

    def _cut(self, a, first, order):
        import numpy as np
        end = min(first + self.batch, self.rows)
        if a is None:
            return None
        if order is None:
            return _floats(a[first:end])
        if _C.is_tensor(a):
            from snug._lazy import tf
            return _floats(tf.gather(a, np.asarray(order[first:end])))
        return _floats(_C.adopt(a[order[first:end]]))        # rows picked from an array are nobody else's

    def _part(self, first, order):
        cut = lambda a: self._cut(a, first, order)
        return tuple(_nest.map_structure(cut, a) if _nest.is_nested(a) else cut(a) for a in self.data)

    def untouched(self):
        """Arrays as those of the first batch, without its numbers; None: nobody knows."""
        rows = min(self.batch, self.rows)
        one = lambda a: None if a is None else _untouched((rows, *a.shape[1:]), _kind(a))
        return tuple(_nest.map_structure(one, a) if _nest.is_nested(a) else one(a) for a in self.data)

    def as_batch(self, arrays):
        one = lambda a: None if a is None else _floats(_C.adopt(a))
        return tuple(_nest.map_structure(one, a) if _nest.is_nested(a) else one(a) for a in arrays)

    def _copies(self, first, order):
        """Rows of arrays, copied; tensors are left to the thread that may use them."""
        import numpy as np
        end = min(first + self.batch, self.rows)

        def cut(a):
            if not isinstance(a, np.ndarray) or a.dtype.kind not in "fiub":
                return None
            return a[first:end].copy() if order is None else np.take(a, order[first:end], axis=0)
        return [cut(a) for a in _nest.flatten(self.data)]

    def _part_of(self, copies, first, order):
        copies = iter(copies)

        def one(a):
            rows = next(copies)
            if rows is not None:
                return _floats(_C.adopt(rows))
            return self._cut(a, first, order)
        return tuple(_nest.map_structure(one, a) if _nest.is_nested(a) else one(a) for a in self.data)

    def _goes_beside(self):
        """Whether a thread copies the rows of the next batch meanwhile: for a card, that runs while the host has nothing
        to do, and where the host's memory is no concern."""
        import numpy as np
        card = _C.device() is not None and not _C.budget_bytes()
        return card and any(isinstance(a, np.ndarray) and a.nbytes // max(1, self.steps) >= 1 << 20
                            for a in _nest.flatten(self.data))

    def __iter__(self):
        return self._fresh() if self.limit is None else self._some()

    def _some(self):
        import warnings
        if self.open is None:
            self.open, self.given = self._fresh(), 0
        for _ in range(min(self.limit, self.steps - self.given)):
            self.given += 1
            if self.given == self.steps:        # the last one is nobody's to hold
                source, self.open = self.open, None
                yield next(source)
            else:
                yield next(self.open)
        if self.open is None and self.given % self.limit:
            warnings.warn("Your input ran out of data; interrupting training. Make sure that your dataset or generator can generate at least"
                          " `steps_per_epoch * epochs` batches. You may need to use the `.repeat()` function when building your dataset.")

    def _fresh(self):
        from snug.keras import _seed
        order = _seed.generator().permutation(self.rows) if self.shuffle else None
        starts = range(0, self.rows, self.batch)
        if not self._goes_beside():
            for first in starts:
                yield self._part(first, order)
            return
        coming = _Beside(self._copies, 0, order)
        for first in starts:
            copies = coming.result()
            if first + self.batch < self.rows:
                coming = _Beside(self._copies, first + self.batch, order)
            yield self._part_of(copies, first, order)


class _Beside:
    """A call that a thread makes meanwhile."""

    def __init__(self, call, *args):
        import threading
        self._error = None
        self._thread = threading.Thread(target=self._run, args=(call, args), daemon=True)
        self._thread.start()

    def _run(self, call, args):
        try:
            self._value = call(*args)
        except BaseException as error:      # the caller's to see
            self._error = error

    def result(self):
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value


def ahead(batches, steps):
    """The batches; on a card the next one is there already, and on its way to the card while a step runs. What a program
    gives batch by batch itself is not asked for early."""
    own = isinstance(batches, Stream) and not hasattr(batches.source, "element_spec")
    if own or _C.device() is None:
        yield from batches
        return
    source = iter(batches)
    now, n = next(source, None), 1
    while now is not None:
        after = next(source, None) if steps is None or n < steps else None
        for part in _nest.flatten(after) if after is not None else ():
            if isinstance(part, _C.Tensor):
                _C.bring(part)
        yield now
        now, n = after, n + 1


def makes_ahead(batches):
    """Whether a batch may be there before the one before it has gone: rows of arrays are cut when they are needed."""
    return isinstance(batches, Stream) or _C.device() is not None


class Stream:
    """What an iterable gives, batch by batch: x, (x, y) or (x, y, weights)."""

    def __init__(self, source, steps=None):
        self.source = source
        self.steps = steps
        self.open = self.refused = None
        self.goes_on = steps is not None and hasattr(source, "element_spec")   # from epoch to epoch
        if steps is None:
            try:
                n = len(source)
                self.steps = int(n) if n is not None and int(n) >= 0 else None
            except (TypeError, NotImplementedError):
                self.steps = None

    def _fresh(self):
        if hasattr(self.source, "__getitem__") and hasattr(self.source, "__len__") and not hasattr(self.source, "element_spec"):
            return (self.source[i] for i in range(len(self.source)))
        return iter(self.source)

    def untouched(self):
        """Arrays as those of the first batch, where it is one of a pipeline's or of arrays that there was no room to copy; None: nobody
        knows."""
        given, self.refused = self.refused, None
        if given is not None:
            one = lambda a: None if a is None else _untouched(a.shape, _kind(a))
            known = all(a is None or hasattr(a, "shape") and hasattr(a, "dtype") for a in _nest.flatten(given))
            return _nest.map_structure(one, given) if known else None
        rows = getattr(self.source, "_rows", None)
        specs = _nest.flatten(self.source.element_spec) if rows else []
        if not specs or any(s.dtype == "string" or not s.shape.rank or None in s.shape.as_list()[1:] for s in specs):
            return None
        one = lambda s: _untouched([rows if s.shape[0] is None else s.shape[0], *s.shape[1:]], _kind(s))
        return _triple(_nest.map_structure(one, self.source.element_spec))

    def as_batch(self, arrays):
        one = lambda a: None if a is None else _C.adopt(a)
        return tuple(_nest.map_structure(one, a) if _nest.is_nested(a) else one(a) for a in arrays)

    def __iter__(self):
        if hasattr(self.source, "__next__"):
            self.open = self.source
        elif self.goes_on and self.open is None:
            self.open = iter(self.source)
        n = 0
        if hasattr(self.source, "on_epoch_begin"):
            self.source.on_epoch_begin()
        stream = self.open if self.open is not None else self._fresh()
        for batch in stream:
            try:
                made = [tuple(_convert(b) for b in _triple(batch))]
            except MemoryError:
                self.refused = _triple(batch)
                raise
            batch = None                                     # nobody holds one batch while the next is made
            yield made.pop()
            n += 1
            if self.steps is not None and n >= self.steps:
                break
        else:
            self.open = None if self.goes_on else self.open
        if n and hasattr(self.source, "on_epoch_end"):
            self.source.on_epoch_end()


def _triple(batch):
    if isinstance(batch, (tuple, list)) and not (isinstance(batch, list) and len(batch) == 1):
        parts = tuple(batch)
        return (parts + (None, None, None))[:3] if len(parts) <= 3 else parts[:3]
    return batch, None, None


def counted(batches):
    """enumerate, but it lets go of a batch before the next is made."""
    source, i = iter(batches), 0
    while True:
        batch = [next(source, None)]
        if batch[0] is None:
            return
        yield i, batch.pop()
        i += 1


def size(batch):
    """Bytes of a batch's tensors."""
    return sum(math.prod(t.shape) * t.dtype.size for t in _nest.flatten(batch) if isinstance(t, _C.Tensor))


def rows_in(batch):
    """Rows of a batch; 0: it has none."""
    return next((int(t.shape[0]) for t in _nest.flatten(batch) if t is not None and len(t.shape)), 0)


def rows_in_all(batches, steps, first):
    """Rows of so many batches, `first` of them in the first one; 0: nobody knows. Batches that are not cut from arrays may have fewer."""
    n = min(k for k in (batches.steps, steps, math.inf) if k is not None)
    return min(n * batches.batch, batches.rows) if isinstance(batches, Arrays) else n * first if n < math.inf else 0


def _convert(value):
    one = lambda v: v if v is None or isinstance(v, _C.Tensor) else _C.convert_to_tensor(v)
    return _nest.map_structure(one, value) if _nest.is_nested(value) else one(value)


def whole(x, y, sample_weight):
    """One batch that is given as such, as tensors."""
    return tuple(_convert(_as_arrays(v, columns)) for v, columns in ((x, True), (y, True), (sample_weight, False)))


def source(x, y=None, sample_weight=None, batch_size=None, shuffle=False, steps=None):
    """The batches of whatever was given."""
    if x is None:
        raise ValueError("`x` is missing")
    if isinstance(x, (list, tuple, dict)) or not hasattr(x, "__next__"):
        x = _as_arrays(x)
    if _is_arrays(x):
        return Arrays(x, _as_arrays(y), _as_arrays(sample_weight, columns=False), batch_size, shuffle, steps)
    if y is not None:
        raise ValueError("If `x` is a generator or a dataset, `y` must not be given; it comes with `x`.")
    return Stream(x, steps)
