"""tf.RaggedTensor: rows of several lengths. A tensor holds all their values, one row behind the other, and the host knows where each row
ends; functions of elements work on the values, what moves rows gathers them in another order. Row lengths are numbers, not recorded."""
import builtins
import itertools

from snug import _C
from snug._given import default_only
from snug._lazy import tf
from snug._types import TensorShape


class RaggedTensor:
    """`values` is a tensor, or ragged itself; row i is values[splits[i]:splits[i + 1]]."""
    __array_priority__ = 150

    def __init__(self, values, splits):
        self.values, self._splits = values, list(splits)

    # --- made of ----------------------------------------------------------------------------------
    @classmethod
    def from_row_lengths(cls, values, row_lengths, name=None, validate=True):
        return cls.from_row_splits(values, [0, *itertools.accumulate(_list(row_lengths))])

    @classmethod
    def from_row_splits(cls, values, row_splits, name=None, validate=True):
        values, splits = values if isinstance(values, RaggedTensor) else tf.convert_to_tensor(values), _list(row_splits)
        if not splits or splits[0] != 0 or splits != sorted(splits) or splits[-1] != len(values):
            raise tf.errors.InvalidArgumentError(None, None, "Arguments to _from_row_partition do not form a valid RaggedTensor: rows that"
                                                 f" end at {splits[1:]}, of {len(values)} values")
        return cls(values, splits)

    @classmethod
    def from_row_starts(cls, values, row_starts, name=None, validate=True):
        values = values if isinstance(values, RaggedTensor) else tf.convert_to_tensor(values)
        return cls.from_row_splits(values, [*_list(row_starts), len(values)])

    @classmethod
    def from_row_limits(cls, values, row_limits, name=None, validate=True):
        return cls.from_row_splits(values, [0, *_list(row_limits)])

    @classmethod
    def from_value_rowids(cls, values, value_rowids, nrows=None, name=None, validate=True):
        rows = _list(value_rowids)
        if rows != sorted(rows) or rows and rows[0] < 0:
            raise tf.errors.InvalidArgumentError(None, None, "Arguments to from_value_rowids do not form a valid RaggedTensor: rows of values"
                                                 f" go up from 0, not {rows}")
        lengths = [0] * (max(rows + [-1]) + 1 if nrows is None else int(nrows))
        if rows and rows[-1] >= len(lengths):
            raise ValueError(f"Arguments to from_value_rowids do not form a valid RaggedTensor: row {rows[-1]} of {len(lengths)} rows")
        for row in rows:
            lengths[row] += 1
        return cls.from_row_lengths(values, lengths)

    @classmethod
    def from_nested_row_splits(cls, flat_values, nested_row_splits, name=None, validate=True):
        for splits in reversed(nested_row_splits):
            flat_values = cls.from_row_splits(flat_values, splits)
        return flat_values

    @classmethod
    def from_tensor(cls, tensor, lengths=None, padding=None, ragged_rank=1, name=None):
        tensor = tf.convert_to_tensor(tensor)
        if ragged_rank != 1:
            raise NotImplementedError(f"RaggedTensor.from_tensor: Snug has ragged_rank=1, not {ragged_rank}")
        n, width = tensor.shape[:2]
        keep = [width] * n if lengths is None else [min(max(k, 0), width) for k in _list(lengths)]
        if lengths is None and padding is not None:
            keep = [max([i + 1 for i, v in enumerate(row) if v != _plain(padding)] + [0]) for row in _list(tensor)]
        flat = tf.reshape(tensor, [-1, *tensor.shape[2:]])
        return _ordered(flat, [builtins.range(i * width, i * width + k) for i, k in enumerate(keep)])

    # --- looking ----------------------------------------------------------------------------------
    dtype = property(lambda self: self.values.dtype)
    shape = property(lambda self: TensorShape([len(self), None, *list(self.values.shape)[1:]]))
    ragged_rank = property(lambda self: 1 + getattr(self.values, "ragged_rank", 0))
    flat_values = property(lambda self: self.values.flat_values if isinstance(self.values, RaggedTensor) else self.values)
    row_splits = property(lambda self: tf.constant(self._splits, dtype=tf.int64))
    ndim = property(lambda self: len(self.shape))

    @property
    def nested_row_splits(self):
        return (self.row_splits, *(self.values.nested_row_splits if isinstance(self.values, RaggedTensor) else ()))

    def get_shape(self):
        return self.shape

    def __len__(self):
        return len(self._splits) - 1

    def __iter__(self):
        return (self[i] for i in builtins.range(len(self)))

    def _lengths(self):
        return [b - a for a, b in zip(self._splits, self._splits[1:])]

    def _rows(self):
        """Where the values of each row lie."""
        return [builtins.range(a, b) for a, b in zip(self._splits, self._splits[1:])]

    def row_lengths(self, axis=1, name=None):
        axis %= self.ndim
        if axis > self.ragged_rank:
            raise ValueError(f"row_lengths: axis {axis} is not ragged; {self.ragged_rank} axes are")
        if axis > 1:
            return RaggedTensor(self.values.row_lengths(axis - 1), self._splits)
        return tf.constant(self._lengths(), dtype=tf.int64) if axis else self.nrows()

    def row_starts(self, name=None):
        return tf.constant(self._splits[:-1], dtype=tf.int64)

    def row_limits(self, name=None):
        return tf.constant(self._splits[1:], dtype=tf.int64)

    def value_rowids(self, name=None):
        return tf.constant([i for i, n in enumerate(self._lengths()) for _ in builtins.range(n)], dtype=tf.int64)

    def nrows(self, out_type=None, name=None):
        return tf.constant(len(self), dtype=out_type or tf.int64)

    def bounding_shape(self, axis=None, name=None, out_type=None):
        inner = _list(self.values.bounding_shape()) if isinstance(self.values, RaggedTensor) else list(self.values.shape)
        extents = [len(self), max(self._lengths() + [0]), *inner[1:]]
        asked = extents if axis is None else extents[axis] if isinstance(axis, int) else [extents[a] for a in axis]
        return tf.constant(asked, dtype=out_type or tf.int64)

    def to_list(self):
        rows = _list(self.values)
        return [rows[a:b] for a, b in zip(self._splits, self._splits[1:])]

    def numpy(self):
        import numpy as np
        rows = self.values.numpy()
        made = np.empty(len(self), object)
        for i, (a, b) in enumerate(zip(self._splits, self._splits[1:])):
            made[i] = rows[a:b]
        return np.stack(made) if len(set(self._lengths())) == 1 and self.ragged_rank == 1 else made

    def __repr__(self):
        return f"<tf.RaggedTensor {_written(self.to_list(), self.dtype)}>"

    __str__ = __repr__

    # --- as other tensors -------------------------------------------------------------------------
    def to_tensor(self, default_value=None, name=None, shape=None):
        if isinstance(self.values, RaggedTensor):
            inner = self.values.to_tensor(default_value, shape=None if shape is None else [None, *list(shape)[2:]])
            return RaggedTensor(inner, self._splits).to_tensor(default_value, shape=None if shape is None else list(shape)[:2])
        sizes = [None, None] if shape is None else [None if n is None else int(n) for n in list(shape)[:2]]
        n = len(self) if sizes[0] is None else sizes[0]
        width = max(self._lengths() + [0]) if sizes[1] is None else sizes[1]
        fill = default_value if default_value is not None else "" if self.dtype == tf.string else 0
        rest = list(self.values.shape)[1:]
        empty = tf.fill([1] + rest, tf.constant(_plain(fill), dtype=self.dtype))
        rows, none = self._rows() + [builtins.range(0)] * n, len(self.values)
        places = [p for row in rows[:n] for p in [*row[:width]] + [none] * (width - len(row))]
        return tf.reshape(_take(tf.concat([self.values, empty], 0), places), [n, width] + rest)

    def to_sparse(self, name=None):
        places = [[i, k] for i, n in enumerate(self._lengths()) for k in builtins.range(n)]
        return tf.SparseTensor(places, self.values, [len(self), max(self._lengths() + [0])])

    def with_values(self, new_values):
        return RaggedTensor(new_values, self._splits)

    def with_flat_values(self, new_values):
        deeper = isinstance(self.values, RaggedTensor)
        return RaggedTensor(self.values.with_flat_values(new_values) if deeper else new_values, self._splits)

    def __getitem__(self, key):
        if isinstance(key, tuple):
            head, rest = key[0], key[1:]
            if not isinstance(head, slice):
                return self[head][rest if len(rest) > 1 else rest[0]]
            rows = self[head] if head != slice(None) else self
            if isinstance(rest[0], int):
                places = [row[rest[0]] for row in rows._rows()]
                return _take(rows.values, places)
            made = _ordered(rows.values, [row[rest[0]] for row in rows._rows()])
            return made if len(rest) == 1 else made.with_values(made.values[(slice(None), *rest[1:])])
        if isinstance(key, slice):
            return _ordered(self.values, self._rows()[key])
        row = self._rows()[int(key)]
        return self.values[row.start:row.stop]

    # --- functions --------------------------------------------------------------------------------
    def __snug_function__(self, function, args, kwargs):
        name = getattr(function, "__name__", "")
        if name in _MOVES:
            return _MOVES[name](*args, **{k: v for k, v in kwargs.items() if k != "name"})
        if name in _REDUCTIONS:
            return _reduced(name, function, *args, **kwargs)
        rows = next(a for a in [*args, *kwargs.values()] if isinstance(a, RaggedTensor))
        if name in _PAIRS:
            args = [tf.constant(a, dtype=rows.dtype) if isinstance(a, list) or hasattr(a, "__array_interface__") else a for a in args]
        return map_flat_values(function, *[_beside(a, rows) for a in args], **{k: _beside(v, rows) for k, v in kwargs.items()})

    def __eq__(self, other):
        return tf.equal(self, other)

    def __ne__(self, other):
        return tf.not_equal(self, other)

    __hash__ = object.__hash__


def _operators():
    """a + b of rows is tf.add of them."""
    for word, name in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide"), ("floordiv", "math.floordiv"),
                       ("mod", "math.floormod"), ("pow", "pow"), ("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal"),
                       ("and", "logical_and"), ("or", "logical_or")):
        def operator(self, other, name=name):
            return _named(name)(self, other)

        def turned(self, other, name=name):
            return _named(name)(other, self)
        setattr(RaggedTensor, f"__{word}__", operator)
        if word not in ("lt", "le", "gt", "ge"):
            setattr(RaggedTensor, f"__r{word}__", turned)
    for word, name in (("neg", "negative"), ("abs", "abs"), ("invert", "logical_not")):
        setattr(RaggedTensor, f"__{word}__", lambda self, name=name: _named(name)(self))


def _named(path):
    found = tf
    for word in path.split("."):
        found = getattr(found, word)
    return found


_operators()


# --- rows in another order ------------------------------------------------------------------------------
def _take(values, places):
    if isinstance(values, RaggedTensor):
        return _ordered(values.values, [values._rows()[_place(p, len(values))] for p in places])
    return tf.gather(values, tf.constant(places, dtype=tf.int32)) if places else values[:0]


def _place(p, n):
    if not 0 <= p < n:
        raise tf.errors.InvalidArgumentError(None, None, f"indices = {p} is not in [0, {n})")
    return p


def _ordered(values, rows):
    """Ragged rows of these places of the values each."""
    return RaggedTensor(_take(values, [p for row in rows for p in row]), [0, *itertools.accumulate(len(row) for row in rows)])


def _as_ragged(value):
    if _C.is_tensor(value) and len(value.shape) > 1:
        return RaggedTensor.from_tensor(value)
    return value if isinstance(value, RaggedTensor) else constant(_list(value))


def _concat(values, axis=0):
    parts = [_as_ragged(v) for v in values]
    axis %= parts[0].ndim
    dtype = next(v.dtype for v in values if isinstance(v, RaggedTensor))
    flat = [p.values if p.dtype == dtype else tf.cast(p.values, dtype) for p in parts]
    starts = [0, *itertools.accumulate(len(p.values) for p in parts)]
    rows = [[builtins.range(r.start + at, r.stop + at) for r in p._rows()] for p, at in zip(parts, starts)]
    if axis == 0:
        rows = [row for part in rows for row in part]
    elif axis == 1:
        rows = [[p for row in together for p in row] for together in zip(*rows)]
    else:
        return parts[0].with_values(tf.concat(flat, axis - 1))
    return _ordered(tf.concat(flat, 0), rows)


def _tile(input, multiples):  # noqa: A002
    times = _list(multiples)
    if any(n != 1 for n in times[2:]):
        raise NotImplementedError("tf.tile of a ragged tensor: Snug repeats rows and what is in them, no further axis")
    return _ordered(input.values, [list(row) * times[1] for row in input._rows()] * times[0])


def _gather(params, indices, validate_indices=None, axis=None, batch_dims=0):
    if not isinstance(params, RaggedTensor):
        return indices.with_flat_values(tf.gather(params, indices.flat_values))
    if axis not in (None, 0) or batch_dims:
        raise NotImplementedError("tf.gather from a ragged tensor: Snug has whole rows, axis=0")
    if isinstance(indices, RaggedTensor):
        return indices.with_flat_values(_take(params, _list(indices.flat_values)))
    if not _is_row(indices):
        return params[_place(int(indices), len(params))]
    places = _list(indices)
    return _take(params, places) if not any(map(_is_row, places)) else _gather(params, constant(places))


def _expand_dims(input, axis):  # noqa: A002
    axis = axis + input.ndim + 1 if axis < 0 else axis
    if axis == 0:
        return RaggedTensor(input, [0, len(input)])
    if axis == 1:
        return RaggedTensor(input, builtins.range(len(input) + 1))
    return input.with_values(tf.expand_dims(input.values, axis - 1))


def _embedding_lookup(params, ids, max_norm=None):
    return ids.with_flat_values(tf.nn.embedding_lookup(params, ids.flat_values, max_norm))


_MOVES = {"concat": _concat, "tile": _tile, "gather": _gather, "expand_dims": _expand_dims, "embedding_lookup": _embedding_lookup,
          "size": lambda input, out_type="int32": tf.size(input.flat_values, out_type), "rank": lambda input: tf.constant(input.ndim),
          "identity": lambda input: input, "stack": lambda values, axis=0: stack(values, axis)}
_PAIRS = ("add", "subtract", "multiply", "divide", "truediv", "floordiv", "floormod", "pow", "maximum", "minimum", "equal", "not_equal", "less",
          "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "squared_difference")
_REDUCTIONS = {"reduce_sum": "sum", "reduce_mean": "mean", "reduce_max": "max", "reduce_min": "min", "reduce_prod": "prod",
               "reduce_any": "max", "reduce_all": "min"}


def _reduced(name, function, input_tensor, axis=None, keepdims=False):
    x = input_tensor
    if isinstance(axis, (list, tuple)) and len(axis) == 1:
        axis = axis[0]
    if axis is not None and not isinstance(axis, int):
        raise NotImplementedError(f"tf.{name} of several axes of a ragged tensor: Snug has one axis, or all of them by axis=None")
    if axis is None:
        return function(x.flat_values)
    axis %= x.ndim
    if axis > 1 or keepdims:
        if axis == 1:
            return tf.expand_dims(_reduced(name, function, x, 1), 1)
        return x.with_values(function(x.values, axis=axis - 1, keepdims=keepdims))
    if axis == 0:
        if name != "reduce_sum":
            raise NotImplementedError(f"tf.{name} of the columns of a ragged tensor: Snug has tf.reduce_sum; to_tensor() first")
        return tf.reduce_sum(x.to_tensor(), axis=0)
    values, truth = x.values, name in ("reduce_any", "reduce_all")
    if isinstance(values, RaggedTensor):
        raise NotImplementedError(f"tf.{name} of rows of rows: Snug has the innermost ragged axis")
    if truth:
        values = tf.cast(values, tf.int32)
    if name == "reduce_mean":
        values = values if values.dtype.is_floating else tf.cast(values, tf.float64)
        return tf.math.unsorted_segment_sum(values, x.value_rowids(), len(x)) / tf.cast(tf.reshape(
            x.row_lengths(), [-1] + [1] * (len(values.shape) - 1)), values.dtype)
    made = getattr(tf.math, f"unsorted_segment_{_REDUCTIONS[name]}")(values, x.value_rowids(), len(x))
    return made if not truth else made > 0


def map_flat_values(op, *args, **kwargs):
    """op of the values of rows; the rows are the same."""
    rows = [a for a in [*args, *kwargs.values()] if isinstance(a, RaggedTensor)]
    if any(_splits_of(r) != _splits_of(rows[0]) for r in rows):
        raise tf.errors.InvalidArgumentError(None, None, "ragged tensors have rows of different lengths")
    flat = lambda v: v.flat_values if isinstance(v, RaggedTensor) else v
    made = op(*[flat(a) for a in args], **{k: flat(v) for k, v in kwargs.items()})
    if not hasattr(made, "shape") or not len(made.shape) or made.shape[0] != len(rows[0].flat_values):
        raise tf.errors.UnimplementedError(None, None, f"{getattr(op, '__name__', 'it')} of a ragged tensor is not in Snug; call"
                                           " to_tensor() first")
    return rows[0].with_flat_values(made)


def _splits_of(x):
    return [x._splits, *(_splits_of(x.values) if isinstance(x.values, RaggedTensor) else [])]


def _beside(value, rows):
    """A column [n, 1] beside ragged rows: for each value that of its row. What has more axes than a value has no place there."""
    shape, inner = list(getattr(value, "shape", ())), len(rows.flat_values.shape) - 1
    if isinstance(value, RaggedTensor) or len(shape) <= inner:
        return value
    if len(shape) == 2 and shape[1] == 1 and rows.ragged_rank == 1 and inner == 0 and shape[0] == len(rows):
        return tf.gather(tf.convert_to_tensor(value)[:, 0], rows.value_rowids())
    if any(n != 1 for n in shape[:len(shape) - inner]):
        raise tf.errors.InvalidArgumentError(None, None, f"a tensor of shape {tuple(shape)} cannot be broadcast to rows of several lengths")
    return tf.reshape(value, shape[len(shape) - inner:])


def _written(rows, dtype):
    if isinstance(rows, list):
        return "[" + ", ".join(_written(r, dtype) for r in rows) + "]"
    return str(dtype.as_numpy_dtype(rows)) if dtype.is_floating else repr(rows)


def _plain(value):
    return value.numpy() if hasattr(value, "numpy") else value


def _list(values):
    if isinstance(values, RaggedTensor):
        return values.to_list()
    values = values.numpy() if _C.is_tensor(values) or hasattr(values, "numpy") else values
    return values.tolist() if hasattr(values, "tolist") else list(values)


# --- names of tf.ragged ---------------------------------------------------------------------------------
def _is_row(value):
    return isinstance(value, (list, tuple)) or len(getattr(value, "shape", ())) > 0


@default_only("row_splits_dtype", "tf.ragged.constant")
def constant(pylist, dtype=None, ragged_rank=None, inner_shape=None, name=None, row_splits_dtype=None):
    """Rows of lists; as deep as lists are nested, unless ragged_rank says less."""
    rows = [_list(row) if not isinstance(row, (list, tuple)) else row for row in pylist]
    below = [v for row in rows for v in row]
    splits = [0, *itertools.accumulate(len(row) for row in rows)]
    if any(_is_row(v) for v in below) and (ragged_rank is None or ragged_rank > 1):
        return RaggedTensor(constant(below, dtype, None if ragged_rank is None else ragged_rank - 1, inner_shape), splits)
    return RaggedTensor(tf.constant(below, dtype=dtype or (None if below else tf.float32)), splits)


def stack(values, axis=0, name=None):
    if axis != 0:
        raise NotImplementedError(f"tf.ragged.stack: Snug has axis=0, not {axis}; stack what to_tensor() gives")
    kind = next((v.dtype for v in values if _C.is_tensor(v) or isinstance(v, RaggedTensor)), None)
    return constant([_list(v) for v in values], kind)


@default_only("row_splits_dtype", "tf.ragged.range")
def range(starts, limits=None, deltas=1, dtype=None, name=None, row_splits_dtype=None):  # noqa: A001
    starts, limits = ([0], starts) if limits is None else (starts, limits)
    parts = [v if isinstance(v, list) else [v] for v in map(_list_or_one, (starts, limits, deltas))]
    n = max(map(len, parts))
    rows = [tf.range(*(p[i if len(p) > 1 else 0] for p in parts), dtype=dtype) for i in builtins.range(n)]
    return stack(rows)


def _list_or_one(value):
    return _list(value) if _is_row(value) else _plain(value)


def boolean_mask(data, mask, name=None):
    if not isinstance(mask, RaggedTensor) and not any(map(_is_row, _list(mask))):
        return tf.boolean_mask(data, mask)
    data, kept = _as_ragged(data), _as_ragged(mask)
    flat = _list(kept.flat_values)
    return _ordered(data.values, [[p for p in row if flat[p]] for row in data._rows()])


def split(input, sep=None, maxsplit=-1, name=None):  # noqa: A002
    """tf.strings.split: rows of several lengths where texts have them."""
    from snug import _dataops
    made = _dataops.function("tf.strings.split")
    call = lambda text: made(text, *([] if sep is None else [sep]), **({} if maxsplit == -1 else {"maxsplit": maxsplit}))
    if isinstance(input, (list, tuple)):
        input = tf.constant(input)
    if hasattr(input, "_slot") or not getattr(input, "ndim", 0):
        return call(input)
    return constant([_list(call(text)) for text in input], tf.string)
