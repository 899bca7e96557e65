"""tf.sparse and tf.sets: values at places of a shape. Places are looked at by the host, values stay tensors, so that gradients reach them."""
from collections import namedtuple

from snug import _capture
from snug._lazy import tf
from snug._types import TensorShape, as_dtype


class SparseTensor(namedtuple("SparseTensor", ["indices", "values", "dense_shape"])):
    """Values at places; all others are zero."""

    def __new__(cls, indices, values, dense_shape):
        plain = lambda v: isinstance(v, (list, tuple)) or hasattr(v, "__array_interface__") or isinstance(v, TensorShape)
        if plain(dense_shape):
            dense_shape = tf.constant([int(d) for d in dense_shape], dtype=tf.int64)
        if plain(indices):
            rank = dense_shape.shape[0]
            indices = tf.reshape(tf.cast(tf.convert_to_tensor(indices), tf.int64), (-1, rank)) if rank else tf.convert_to_tensor(indices)
        return super().__new__(cls, indices, tf.convert_to_tensor(values) if plain(values) else values, dense_shape)

    dtype = property(lambda self: self.values.dtype)
    shape = property(lambda self: TensorShape(None) if _capture.is_slot(self.dense_shape) else
                     TensorShape([int(n) for n in self.dense_shape]))

    @classmethod
    def from_value(cls, value):
        return cls(*value)

    def get_shape(self):
        return self.shape

    def with_values(self, new_values):
        return SparseTensor(self.indices, new_values, self.dense_shape)

    def consumers(self):
        return []

    def __repr__(self):
        return f"SparseTensor(indices={self.indices!s}, values={self.values!s}, dense_shape={self.dense_shape!s})"

    __str__ = __repr__

    # Arithmetic is with what has a value everywhere.
    def __mul__(self, other):
        return self.with_values(self.values * _at(self, other))

    def __truediv__(self, other):
        return self.with_values(self.values / _at(self, other))

    def __add__(self, other):
        return add(self, other)

    def __neg__(self):
        return self.with_values(-self.values)

    __rmul__ = __mul__


class SparseTensorSpec(namedtuple("SparseTensorSpec", ["shape", "dtype"])):
    """What a sparse tensor looks like."""
    value_type = SparseTensor

    def __new__(cls, shape=None, dtype="float32"):
        return super().__new__(cls, TensorShape(shape), as_dtype(dtype))


def _at(sparse, other):
    """What a dense operand has at the places."""
    other = tf.convert_to_tensor(other, dtype=sparse.values.dtype)
    return tf.gather_nd(tf.broadcast_to(other, [int(n) for n in sparse.dense_shape]), sparse.indices) if other.ndim else other


def _places(sparse):
    return sparse.indices.numpy()


def _made(places, values, dims):
    import numpy as np
    places = np.asarray(places, np.int64).reshape(-1, len(dims))
    return SparseTensor(tf.constant(places), values, tf.constant([int(d) for d in dims], dtype=tf.int64))


def _taken(sparse, rows, places=None, dims=None):
    """Some of the values, perhaps at other places."""
    import numpy as np
    rows = np.asarray(rows, np.int64)
    return _made(_places(sparse)[rows] if places is None else places, tf.gather(sparse.values, rows),
                 [int(n) for n in sparse.dense_shape] if dims is None else dims)


# --- dense ones and back --------------------------------------------------------------------------------
def to_dense(sp_input, default_value=None, validate_indices=True, name=None):
    indices, values, shape = sp_input
    rank = indices.shape[-1]
    if rank == 1 and not default_value and _capture.is_slot(shape):     # all places of one axis, as a feature of an Example has them
        return tf.identity(values) if values.dtype != tf.string else values
    if validate_indices and not _capture.is_slot(indices) and not indices._is_traced:
        _check_order(indices, shape)
    if values.dtype == tf.string:
        return _texts_to_dense(indices, values, shape, default_value)
    if values.dtype == tf.bool:
        return tf.cast(to_dense(SparseTensor(indices, tf.cast(values, tf.int32), shape), int(default_value or 0), False), tf.bool)
    if not _capture.is_slot(indices, values, shape):
        blank = tf.fill([int(n) for n in shape], tf.cast(default_value or 0, values.dtype))
        return tf.tensor_scatter_nd_update(blank, tf.cast(indices, tf.int64), values)
    dense = tf.scatter_nd(tf.cast(indices, tf.int64), values, shape)
    if not default_value:
        return dense
    there = tf.scatter_nd(tf.cast(indices, tf.int64), tf.ones_like(values), shape)
    return tf.where(there > 0, dense, tf.cast(default_value, values.dtype))


def _check_order(indices, shape):
    """As TensorFlow: places are within the shape, in order, each once."""
    import numpy as np
    rows, dims = indices.numpy(), np.array([int(n) for n in shape])
    outside = ((rows < 0) | (rows >= dims)).any(1)
    wrong = lambda i, what: tf.errors.InvalidArgumentError(None, None, f"indices[{i}] = {rows[i].tolist()} is {what}")
    if outside.any():
        raise wrong(int(outside.argmax()), f"out of bounds: need 0 <= index < {dims.tolist()}")
    steps = np.diff(rows, axis=0)
    moved = (steps != 0).any(1)
    first = steps[np.arange(len(steps)), (steps != 0).argmax(1)] if len(steps) else steps
    if not moved.all():
        raise wrong(int((~moved).argmax()) + 1, "repeated")
    if (first < 0).any():
        raise wrong(int((first < 0).argmax()) + 1, "out of order. Many sparse ops require sorted indices.\n    Use `tf.sparse.reorder` to"
                    " create a correctly ordered copy.\n\n")


def _texts_to_dense(indices, values, shape, default_value):
    import numpy as np
    out = np.full([int(n) for n in shape], default_value or b"", object)
    for at, value in zip(indices.numpy(), values.numpy()):
        out[tuple(at)] = value
    return tf.constant(out.tolist())


def from_dense(tensor, name=None):
    tensor = tf.convert_to_tensor(tensor)
    places = tf.where(tf.not_equal(tensor, 0))
    return SparseTensor(places, tf.gather_nd(tensor, places), tf.constant(list(tensor.shape), dtype=tf.int64))


def eye(num_rows, num_columns=None, dtype="float32", name=None):
    rows, columns = int(num_rows), int(num_rows if num_columns is None else num_columns)
    n = min(rows, columns)
    return _made([[i, i] for i in range(n)], tf.ones((n,), dtype=dtype), (rows, columns))


# --- the same values elsewhere --------------------------------------------------------------------------
def reorder(sp_input, name=None):
    import numpy as np
    places = _places(sp_input)
    order = np.lexsort(places.T[::-1])
    return _taken(sp_input, order, places[order])


def reshape(sp_input, shape, name=None):
    import numpy as np
    old = [int(n) for n in sp_input.dense_shape]
    dims = [int(n) for n in shape]
    if -1 in dims:
        dims[dims.index(-1)] = int(np.prod(old)) // max(1, -int(np.prod(dims)))
    flat = np.ravel_multi_index(_places(sp_input).T, old)
    return _made(np.stack(np.unravel_index(flat, dims), 1), sp_input.values, dims)


def transpose(sp_input, perm=None, name=None):
    dims = [int(n) for n in sp_input.dense_shape]
    perm = list(range(len(dims)))[::-1] if perm is None else [int(p) for p in perm]
    return reorder(_made(_places(sp_input)[:, perm], sp_input.values, [dims[p] for p in perm]))


def expand_dims(sp_input, axis=None, name=None):
    import numpy as np
    dims = [int(n) for n in sp_input.dense_shape]
    axis = -1 if axis is None else int(axis)
    axis += len(dims) + 1 if axis < 0 else 0
    return _made(np.insert(_places(sp_input), axis, 0, 1), sp_input.values, dims[:axis] + [1] + dims[axis:])


def slice(sp_input, start, size, name=None):  # noqa: A001
    import numpy as np
    dims, start, size = ([int(n) for n in v] for v in (sp_input.dense_shape, start, size))
    dims = [max(0, min(n, s)) if s >= 0 else n for n, s in zip([d - b for d, b in zip(dims, start)], size)]
    places = _places(sp_input) - np.array(start)
    rows = np.flatnonzero(((places >= 0) & (places < np.array(dims))).all(1))
    return _taken(sp_input, rows, places[rows], dims)


def concat(axis, sp_inputs, expand_nonconcat_dims=False, name=None):
    import numpy as np
    dims = [[int(n) for n in s.dense_shape] for s in sp_inputs]
    axis, out = int(axis) % len(dims[0]), list(dims[0])
    for i in range(len(out)):
        sizes = [d[i] for d in dims]
        if i != axis and len(set(sizes)) > 1 and not expand_nonconcat_dims:
            raise tf.errors.InvalidArgumentError(None, None, f"Dimension {i} in both shapes must be equal: {sizes}")
        out[i] = sum(sizes) if i == axis else max(sizes)
    parts, at = [], 0
    for s, d in zip(sp_inputs, dims):
        places = _places(s).copy()
        places[:, axis] += at
        at += d[axis]
        parts.append(places)
    return reorder(_made(np.concatenate(parts), tf.concat([s.values for s in sp_inputs], 0), out))


def retain(sp_input, to_retain):
    import numpy as np
    return _taken(sp_input, np.flatnonzero(np.asarray(to_retain)))


def split(sp_input=None, num_split=None, axis=None, name=None):
    dims = [int(n) for n in sp_input.dense_shape]
    axis, n = int(axis) % len(dims), int(num_split)
    sizes = [dims[axis] // n + (i < dims[axis] % n) for i in range(n)]
    made, at = [], 0
    for size in sizes:
        start = [at if a == axis else 0 for a in range(len(dims))]
        made.append(slice(sp_input, start, [size if a == axis else d for a, d in enumerate(dims)]))
        at += size
    return made


def fill_empty_rows(sp_input, default_value, name=None):
    """(with a value in each row, which rows had none)"""
    import numpy as np
    dims = [int(n) for n in sp_input.dense_shape]
    empty = np.setdiff1d(np.arange(dims[0]), _places(sp_input)[:, 0])
    more = np.zeros((len(empty), len(dims)), np.int64)
    more[:, 0] = empty
    values = tf.concat([sp_input.values, tf.fill((len(empty),), tf.convert_to_tensor(default_value, dtype=sp_input.values.dtype))], 0)
    made = reorder(_made(np.concatenate([_places(sp_input), more]), values, dims))
    return made, tf.constant(np.isin(np.arange(dims[0]), empty))


# --- other values ---------------------------------------------------------------------------------------
def map_values(op, *args, **kwargs):
    """op of the values of sparse arguments, which have the same places."""
    first = next(a for a in [*args, *kwargs.values()] if isinstance(a, SparseTensor))
    plain = lambda a: a.values if isinstance(a, SparseTensor) else a
    return first.with_values(op(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()}))


def _cells(sparses):
    """Places of any of them in order; and for each of them where its values go."""
    import numpy as np
    dims = [int(n) for n in sparses[0].dense_shape]
    flats = [np.ravel_multi_index(_places(s).T, dims) if len(_places(s)) else np.zeros(0, np.int64) for s in sparses]
    cells = np.unique(np.concatenate(flats))
    return np.stack(np.unravel_index(cells, dims), 1), [np.searchsorted(cells, f) for f in flats], dims


def _spread(values, rows, n):
    return tf.scatter_nd(rows[:, None], values, tf.constant([n], dtype=tf.int64))


def add(a, b, threshold=0):
    if not isinstance(a, SparseTensor) or not isinstance(b, SparseTensor):
        sparse, dense = (a, b) if isinstance(a, SparseTensor) else (b, a)
        return to_dense(sparse) + tf.convert_to_tensor(dense)
    import numpy as np
    if [int(n) for n in a.dense_shape] != [int(n) for n in b.dense_shape]:
        raise tf.errors.InvalidArgumentError(None, None, f"Operands' shapes do not match: {a.shape} and {b.shape}")
    cells, rows, dims = _cells([a, b])
    made = _made(cells, sum(_spread(s.values, r, len(cells)) for s, r in zip((a, b), rows)), dims)
    return _taken(made, np.flatnonzero(np.abs(made.values.numpy()) >= threshold)) if threshold else made


def _better(function):
    def of(sp_a, sp_b, name=None):
        cells, rows, dims = _cells([sp_a, sp_b])
        return _made(cells, function(*(_spread(s.values, r, len(cells)) for s, r in zip((sp_a, sp_b), rows))), dims)
    return of


def maximum(sp_a, sp_b, name=None):
    return _better(tf.maximum)(sp_a, sp_b)


def minimum(sp_a, sp_b, name=None):
    return _better(tf.minimum)(sp_a, sp_b)


def softmax(sp_input, name=None):
    """Over the values of each row; places without one do not count."""
    import numpy as np
    dims = [int(n) for n in sp_input.dense_shape]
    places = _places(sp_input)
    row = np.ravel_multi_index(places[:, :-1].T, dims[:-1])
    n = int(np.prod(dims[:-1]))
    most = tf.math.unsorted_segment_max(sp_input.values, row, n)
    power = tf.exp(sp_input.values - tf.gather(most, row))
    return sp_input.with_values(power / tf.gather(tf.math.unsorted_segment_sum(power, row, n), row))


def reduce_sum(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    made = tf.reduce_sum(to_dense(sp_input), axis=axis, keepdims=bool(keepdims))
    return from_dense(made) if output_is_sparse else made


def reduce_max(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    """Of the values that are there; rows without any are 0."""
    dense, there = to_dense(sp_input), to_dense(sp_input.with_values(tf.ones_like(sp_input.values, dtype=tf.int32))) > 0
    most = tf.reduce_max(tf.where(there, dense, tf.cast(sp_input.values.dtype.min, dense.dtype)), axis=axis, keepdims=bool(keepdims))
    made = tf.where(tf.reduce_any(there, axis=axis, keepdims=bool(keepdims)), most, tf.zeros_like(most))
    return from_dense(made) if output_is_sparse else made


def sparse_dense_matmul(sp_a, b, adjoint_a=False, adjoint_b=False, name=None):
    """Rows of b, weighted by the values and added."""
    if not isinstance(sp_a, SparseTensor):
        return tf.transpose(sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a))
    places, dims = _places(sp_a), [int(n) for n in sp_a.dense_shape]
    to, of = (1, 0) if adjoint_a else (0, 1)
    b = tf.convert_to_tensor(b, dtype=sp_a.values.dtype)
    b = tf.transpose(b) if adjoint_b else b
    if b.shape[0] != dims[of]:
        raise tf.errors.InvalidArgumentError(None, None, f"Cannot multiply A and B because inner dimension does not match: {dims[of]} vs."
                                             f" {b.shape[0]}. Did you forget a transpose?")
    return tf.math.unsorted_segment_sum(sp_a.values[:, None] * tf.gather(b, places[:, of]), places[:, to], dims[to])


def to_indicator(sp_input, vocab_size, name=None):
    import numpy as np
    at = np.concatenate([_places(sp_input)[:, :-1], sp_input.values.numpy()[:, None]], 1)
    out = np.zeros([int(n) for n in sp_input.dense_shape][:-1] + [int(vocab_size)], bool)
    out[tuple(at.T)] = True
    return tf.constant(out)


def bincount(values, weights=None, axis=0, minlength=None, maxlength=None, binary_output=False, name=None):
    import numpy as np
    if axis not in (0, None) or weights is not None:
        raise NotImplementedError("tf.sparse.bincount: Snug counts without weights, over all values")
    values = values.values if isinstance(values, SparseTensor) else tf.convert_to_tensor(values)
    found, counts = np.unique(values.numpy(), return_counts=True)
    size = max([int(minlength or 0)] + [int(found.max()) + 1 if len(found) else 0])
    kept = found < (size if maxlength is None else int(maxlength))
    counts = np.ones_like(counts) if binary_output else counts
    return _made(found[kept][:, None], tf.constant(counts[kept].astype(np.int64)), (size if maxlength is None else min(size, int(maxlength)),))


def segment_sum(data, indices, segment_ids, num_segments=None, name=None):
    return _segments(tf.math.unsorted_segment_sum, data, indices, segment_ids, num_segments)


def segment_mean(data, indices, segment_ids, num_segments=None, name=None):
    return _segments(tf.math.unsorted_segment_mean, data, indices, segment_ids, num_segments)


def _segments(function, data, indices, segment_ids, n):
    ids = tf.convert_to_tensor(segment_ids)
    return function(tf.gather(data, indices), ids, int(ids[-1]) + 1 if n is None else int(n))


# --- tf.sets: the last axis is a set --------------------------------------------------------------------
def _sets(value):
    """{row: set of values}, and the extents in front."""
    if not isinstance(value, SparseTensor):
        value = tf.convert_to_tensor(value)
        array = value.numpy()
        return {at: set(array[at].tolist()) for at in _all_rows(array.shape[:-1])}, array.shape[:-1], value.dtype
    rows = {}
    for at, v in zip(_places(value).tolist(), value.values.numpy().tolist()):
        rows.setdefault(tuple(at[:-1]), set()).add(v)
    return rows, tuple(int(n) for n in value.dense_shape)[:-1], value.dtype


def _all_rows(dims):
    import numpy as np
    return [tuple(int(i) for i in at) for at in np.ndindex(*dims)]


def _set_function(combine):
    def of(a, b, validate_indices=True):
        (left, dims, dtype), (right, _, _) = _sets(a), _sets(b)
        places, values, width = [], [], 0
        for at in _all_rows(dims):
            found = sorted(combine(left.get(at, set()), right.get(at, set())))
            places += [list(at) + [i] for i in range(len(found))]
            values += found
            width = max(width, len(found))
        return _made(places, tf.constant(values, dtype=dtype, shape=(len(values),)), list(dims) + [width])
    return of


def intersection(a, b, validate_indices=True):
    return _set_function(set.intersection)(a, b)


def union(a, b, validate_indices=True):
    return _set_function(set.union)(a, b)


def difference(a, b, aminusb=True, validate_indices=True):
    return _set_function(set.difference)(*((a, b) if aminusb else (b, a)))


def size(a, validate_indices=True):
    rows, dims, _ = _sets(a)
    import numpy as np
    out = np.zeros(dims, np.int32)
    for at, found in rows.items():
        out[at] = len(found)
    return tf.constant(out)
