"""tf.RaggedTensor, as little of it as texts need: rows of several lengths, held by the host, to be looked at and padded. Arithmetic on
them is not in Snug: to_tensor() first."""
import itertools

from snug import _C
from snug._lazy import tf
from snug._types import TensorShape


class RaggedTensor:
    """Rows of several lengths, each a list of values or of rows. The last `inner` axes are as long everywhere."""

    def __init__(self, rows, dtype=None, inner=0):
        self._inner = inner
        self._rows = [r.to_list() if isinstance(r, RaggedTensor) else r for r in rows]
        flat = list(_flat(self._rows))
        text = any(isinstance(v, (str, bytes)) for v in flat)
        self.dtype = tf.as_dtype(dtype) if dtype is not None else tf.string if text else tf.constant(flat).dtype if flat else tf.float32

    @classmethod
    def from_row_lengths(cls, values, row_lengths, name=None, validate=True):
        return cls.from_row_splits(values, [0, *itertools.accumulate(_list(row_lengths))])

    @classmethod
    def from_row_splits(cls, values, row_splits, name=None, validate=True):
        values = values if isinstance(values, RaggedTensor) else tf.convert_to_tensor(values)
        rows, splits = _list(values), _list(row_splits)
        if not splits or splits[0] != 0 or splits != sorted(splits) or splits[-1] != len(rows):
            raise tf.errors.InvalidArgumentError(None, None, "Arguments to _from_row_partition do not form a valid RaggedTensor: rows that"
                                                 f" end at {splits[1:]}, of {len(rows)} values")
        inner = values._inner if isinstance(values, RaggedTensor) else len(values.shape) - 1
        return cls([rows[a:b] for a, b in zip(splits, splits[1:])], values.dtype, inner)

    @classmethod
    def from_tensor(cls, tensor, lengths=None, padding=None, ragged_rank=1, name=None):
        rows = _list(tensor)
        if lengths is not None:
            rows = [row[:n] for row, n in zip(rows, _list(lengths))]
        elif padding is not None:
            rows = [row[:max([i + 1 for i, v in enumerate(row) if v != padding] + [0])] for row in rows]
        return cls(rows, tensor.dtype if hasattr(tensor, "dtype") else None)

    # --- looking ----------------------------------------------------------------------------------
    shape = property(lambda self: TensorShape([len(self._rows)] + [None] * _depth(self._rows)))
    ragged_rank = property(lambda self: max(_depth(self._rows) - self._inner, 1))

    @property
    def values(self):
        """One axis less."""
        rows = [v for row in self._rows for v in row]
        return RaggedTensor(rows, self.dtype, self._inner) if self.ragged_rank > 1 else tf.constant(rows, dtype=self.dtype)

    @property
    def flat_values(self):
        return self.values.flat_values if self.ragged_rank > 1 else self.values

    def __len__(self):
        return len(self._rows)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key):
        if isinstance(key, tuple):
            head, rest = key[0], key[1:]
            if isinstance(head, int):
                return self[head][rest if len(rest) > 1 else rest[0]]
            return RaggedTensor([r[rest[0]] for r in self._rows[head]], self.dtype)
        found = self._rows[key]
        if isinstance(key, slice) or self.ragged_rank > 1 and found and isinstance(found[0], list):
            return RaggedTensor(found, self.dtype, self._inner)
        return tf.constant(found, dtype=self.dtype)

    def to_list(self):
        return [list(row) for row in self._rows]

    def row_lengths(self, axis=1, name=None):
        axis %= _depth(self._rows) + 1
        if axis > self.ragged_rank:
            raise ValueError(f"row_lengths: axis {axis} is not ragged; {self.ragged_rank} axes are")
        lengths = lambda rows, level: [len(row) if level == 1 else lengths(row, level - 1) for row in rows]
        made = lengths(self._rows, axis) if axis else []
        return self.nrows() if not axis else tf.constant(made, dtype=tf.int64) if axis == 1 else RaggedTensor(made, tf.int64)

    def nrows(self, out_type=None, name=None):
        return tf.constant(len(self._rows), dtype=out_type or tf.int64)

    def bounding_shape(self, axis=None, name=None, out_type=None):
        level, extents = self._rows, [len(self._rows)]
        for _ in range(_depth(level)):
            extents.append(max([len(row) for row in level] + [0]))
            level = [v for row in level for v in row]
        asked = extents if axis is None else extents[axis] if isinstance(axis, int) else [extents[a] for a in axis]
        return tf.constant(asked, dtype=out_type or tf.int64)

    def to_tensor(self, default_value=None, name=None, shape=None):
        rows = self._rows
        if _depth(rows) > 1:
            raise NotImplementedError("RaggedTensor.to_tensor: Snug has one ragged axis")
        if shape is not None and shape[0] is not None:
            rows = rows[:shape[0]] + [[]] * (shape[0] - len(rows))
        width = shape[1] if shape is not None and shape[1] is not None else max([len(r) for r in rows] + [0])
        fill = default_value if default_value is not None else b"" if self.dtype == tf.string else 0
        fill = fill.numpy() if hasattr(fill, "numpy") else fill
        return tf.constant([list(r[:width]) + [fill] * (width - len(r)) for r in rows], dtype=self.dtype, shape=(len(rows), width))

    def numpy(self):
        import numpy as np
        made = np.empty(len(self._rows), object)
        for i, row in enumerate(self._rows):
            made[i] = np.array(row, None if self.dtype == tf.string else self.dtype.as_numpy_dtype)
        return made

    def __repr__(self):
        return f"<tf.RaggedTensor {self._written()}>"

    def __str__(self):
        return f"<tf.RaggedTensor {self._written()}>"

    def _written(self):
        return repr([[v.encode() if isinstance(v, str) else v for v in row] for row in self._rows])

    def __snug_function__(self, function, args, kwargs):
        raise tf.errors.UnimplementedError(None, None, f"{getattr(function, '__name__', 'it')} of a ragged tensor is not in Snug; call"
                                           " to_tensor() first")


def _depth(rows):
    return 1 + max([_depth(r) for r in rows if isinstance(r, (list, tuple))] + [-1]) if isinstance(rows, (list, tuple)) else 0


def _flat(rows):
    for row in rows:
        if isinstance(row, (list, tuple)):
            yield from _flat(row)
        else:
            yield row


def _list(values):
    if isinstance(values, RaggedTensor):
        return values.to_list()
    values = values.numpy() if _C.is_tensor(values) or hasattr(values, "numpy") else values
    return values.tolist() if hasattr(values, "tolist") else list(values)


def constant(pylist, dtype=None, ragged_rank=None, inner_shape=None, name=None, row_splits_dtype=None):
    return RaggedTensor([_list(row) if hasattr(row, "tolist") else row for row in pylist], dtype)


def stack(values, axis=0, name=None):
    if axis != 0:
        raise NotImplementedError(f"tf.ragged.stack: Snug has axis=0, not {axis}; stack what to_tensor() gives")
    return RaggedTensor([_list(v) for v in values], next((v.dtype for v in values if _C.is_tensor(v) or isinstance(v, RaggedTensor)), None))


def split(input, sep=None, maxsplit=-1, name=None):  # noqa: A002
    """tf.strings.split: rows of several lengths where texts have them."""
    from snug import _dataops
    made = _dataops.function("tf.strings.split")
    call = lambda text: made(text, *([] if sep is None else [sep]), **({} if maxsplit == -1 else {"maxsplit": maxsplit}))
    try:
        return call(input)
    except tf.errors.OpError:
        if hasattr(input, "_slot") or not getattr(input, "ndim", 0):
            raise
        return RaggedTensor([_list(call(text)) for text in input], tf.string)
