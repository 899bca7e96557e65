"""Control flow and results whose shapes depend on values: Python loops and branches over recorded operations.

In a trace these ask for values: there is a trace for each answer, or the function becomes dynamic (see _function.py)."""
import itertools
from collections import namedtuple

from snug import _C, _function, _nest
from snug._given import default_only
from snug._lazy import graph, tf
from snug._types import Peek

Unique = namedtuple("Unique", ["y", "idx"])
UniqueWithCounts = namedtuple("UniqueWithCounts", ["y", "idx", "count"])
TopK = namedtuple("TopKV2", ["values", "indices"])
LogMatrixDeterminant = namedtuple("LogMatrixDeterminant", ["sign", "log_abs_determinant"])


def cond(pred, true_fn=None, false_fn=None, name=None):
    if graph() is not None:
        return graph().cond(pred, true_fn, false_fn)
    if _C.is_capturing() and hasattr(pred, "_slot"):
        return _choose(pred, true_fn(), false_fn())
    return true_fn() if bool(pred) else false_fn()


def _choose(pred, yes, no):
    """In a function that a pipeline repeats both sides are worked out, and one is taken; they must look alike."""
    def one(a, b):
        a, b = tf.convert_to_tensor(a), tf.convert_to_tensor(b)
        if a.dtype != b.dtype or a.shape.rank is None or a.shape != b.shape or a.dtype.name == "string":
            raise Peek
        return tf.where(pred, a, b)
    return _nest.map_structure(one, yes, no) if _nest.is_nested(yes) else one(yes, no)


@default_only("strict")
def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if exclusive:
        pairs = [(bool(pred), fn) for pred, fn in pairs]
        if sum(pred for pred, _ in pairs) > 1:
            raise tf.errors.InvalidArgumentError(None, None, f"Input error: exclusive=True: more than 1 conditions ({[p for p, _ in pairs]})"
                                                 " evaluated as True")
    for pred, fn in pairs:
        if bool(pred):
            return fn()
    if default is None:
        raise tf.errors.InvalidArgumentError(None, None, "None of the conditions evaluated as True")
    return default()


def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    fns = branch_fns if isinstance(branch_fns, dict) else dict(
        enumerate(branch_fns) if callable(branch_fns[0]) else branch_fns)
    with _function.answers_among((*fns, max(fns) + 1)):
        i = int(branch_index)
    if i in fns:
        return fns[i]()
    return (default or fns[max(fns)])()


def rounds(items):
    """These, for a loop over tensors, which is recorded as often as it goes round: an operation in it is one operation, as in TensorFlow's
    loops, and draws the next number of its seed each time."""
    first = most = _C.places()
    try:
        for item in items:
            most = max(most, _C.places(first))
            yield item
    finally:
        _C.places(max(most, _C.places()))


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True, swap_memory=False,
               maximum_iterations=None, name=None):
    convert = lambda v: v if isinstance(v, (_C.Tensor, TensorArray)) else tf.convert_to_tensor(v)
    state = _nest.map_structure(convert, loop_vars)
    for _ in rounds(itertools.count() if maximum_iterations is None else range(int(maximum_iterations))):
        as_dict = isinstance(state, dict)
        more = cond(state) if as_dict else cond(*state)
        if getattr(more, "_is_traced", False):
            raise Peek              # how often it goes round is not known before
        if not bool(more):
            break
        out = body(state) if as_dict else body(*state)
        if not isinstance(out, (list, tuple, dict)):
            out = (out,)
        state = _nest.map_structure(convert, out)
    return _way_back(state, back_prop)


def _way_back(result, back_prop):
    """The result; without back propagation no gradient goes through it."""
    stop = lambda t: tf.stop_gradient(t) if isinstance(t, _C.Tensor) and t.dtype.is_floating else t
    return result if back_prop else _nest.map_structure(stop, result) if _nest.is_nested(result) else stop(result)


def _rows(elems):
    flat = [tf.convert_to_tensor(e) for e in _nest.flatten(elems)]
    for i in range(flat[0].shape[0]):
        yield _nest.pack_sequence_as(elems, [e[i] for e in flat]) if _nest.is_nested(elems) else flat[0][i]


def _stack(results):
    """Results of the same structure, one tensor per leaf."""
    if not _nest.is_nested(results[0]):
        return tf.stack([tf.convert_to_tensor(r) for r in results])
    flat = [_nest.flatten(r) for r in results]
    stacked = [tf.stack([tf.convert_to_tensor(r[k]) for r in flat]) for k in range(len(flat[0]))]
    return _nest.pack_sequence_as(results[0], stacked)


def map_fn(fn, elems, dtype=None, parallel_iterations=None, back_prop=True, swap_memory=False, infer_shape=True, name=None,
           fn_output_signature=None):
    kinds = fn_output_signature if fn_output_signature is not None else dtype
    results = [fn(row) for row in rounds(_rows(elems))]
    return _way_back(_stack(results if kinds is None else [_as_told(r, kinds) for r in results]), back_prop)


def _as_told(result, kinds):
    """The result of a function as it is said to be: values become tensors of those types, tensors have them already."""
    if _nest.is_nested(kinds) != _nest.is_nested(result):
        raise ValueError(f"fn_output_signature is {kinds!r}, and fn gave {result!r}")
    if _nest.is_nested(kinds):
        _nest.assert_same_structure(result, kinds, check_types=False)
        return _nest.pack_sequence_as(kinds, [_as_told(r, k) for r, k in zip(_nest.flatten(result), _nest.flatten(kinds))])
    want, shape = tf.as_dtype(getattr(kinds, "dtype", kinds)), getattr(kinds, "shape", None)
    made = tf.convert_to_tensor(result) if _C.is_tensor(result) else tf.convert_to_tensor(result, dtype=want)
    if made.dtype != want:
        raise tf.errors.InvalidArgumentError(None, None, f"fn gave a tensor of {made.dtype.name} where fn_output_signature says {want.name}")
    if shape is not None and not made.shape.is_compatible_with(shape):
        raise tf.errors.InvalidArgumentError(None, None, f"fn gave a tensor of shape {made.shape} where fn_output_signature says {shape}")
    return made


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    return _stack([fn(row) for row in _rows(elems)])


def _fold(fn, elems, initializer, reverse):
    rows = list(_rows(elems))
    if reverse:
        rows.reverse()
    state = rows.pop(0) if initializer is None else _nest.map_structure(tf.convert_to_tensor, initializer)
    for row in rounds(rows):
        state = fn(state, row)
        yield state


def scan(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, infer_shape=True,
         reverse=False, name=None):
    results = list(_fold(fn, elems, initializer, reverse))
    if initializer is None:
        rows = list(_rows(elems))
        results.insert(0, rows[-1] if reverse else rows[0])
    if reverse:
        results.reverse()
    return _way_back(_stack(results), back_prop)


def _last(states, otherwise):
    state = otherwise
    for state in states:
        pass
    return state


def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    return _way_back(_last(_fold(fn, elems, initializer, False), initializer), back_prop)


def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    return _way_back(_last(_fold(fn, elems, initializer, True), initializer), back_prop)


class TensorArray:
    """A list of tensors that is written by index."""

    @default_only("handle flow")
    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None, handle=None,
                 flow=None, infer_shape=True, element_shape=None, colocate_with_first_write_call=True, name=None):
        self.dtype = tf.as_dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        self._items = [None] * (0 if size is None else int(size))
        self.element_shape = tf.TensorShape(element_shape)
        self.handle = self.flow = None

    def write(self, index, value, name=None):
        i = int(index)
        if i < 0 or (i >= len(self._items) and not self.dynamic_size):
            raise tf.errors.OutOfRangeError(None, None, f"Tried to write to index {i} but array is not resizeable and size is: "
                                            f"{len(self._items)}")
        items = list(self._items) + [None] * max(0, i + 1 - len(self._items))
        items[i] = tf.convert_to_tensor(value, dtype=self.dtype)
        made = TensorArray.__new__(TensorArray)
        made.__dict__.update(self.__dict__)
        made._items = items
        self._items = items
        return made

    def read(self, index, name=None):
        i = int(index)
        if not 0 <= i < len(self._items):
            raise tf.errors.OutOfRangeError(None, None, f"Tried to read from index {i} but array size is: {len(self._items)}")
        return self._filled()[i]

    def _filled(self):
        like = next((t for t in self._items if t is not None), None)
        if like is None:
            raise tf.errors.InvalidArgumentError(None, None, "TensorArray has no elements")
        return [tf.zeros_like(like) if t is None else t for t in self._items]

    def stack(self, name=None):
        return tf.stack(self._filled())

    def gather(self, indices, name=None):
        return tf.gather(self.stack(), indices)

    def concat(self, name=None):
        return tf.concat(self._filled(), 0)

    def unstack(self, value, name=None):
        self._items = list(tf.unstack(tf.convert_to_tensor(value, dtype=self.dtype)))
        return self

    def split(self, value, lengths, name=None):
        self._items = list(tf.split(value, lengths))
        return self

    def scatter(self, indices, value, name=None):
        made = self
        for k, i in enumerate(tf.convert_to_tensor(indices).numpy()):
            made = made.write(int(i), value[k])
        return made

    def size(self, name=None):
        return tf.constant(len(self._items))

    def identity(self):
        return self

    def close(self, name=None):
        self._items = []

    def grad(self, source, flow=None, name=None):
        raise NotImplementedError("TensorArray.grad")

    def __len__(self):
        return len(self._items)


# --- shapes that depend on values -----------------------------------------------------------------------
def _unique(x):
    """Elements in the order of their first appearance, the number of each place's element, and counts."""
    import numpy as np
    a = tf.convert_to_tensor(x).numpy()
    values, first, inverse, counts = np.unique(a, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return values[order], rank[inverse], counts[order]


def unique(x, out_idx=None, name=None):
    values, places, _ = _unique(x)
    kind = out_idx or tf.int32
    return Unique(tf.constant(values), tf.constant(places, dtype=kind))


def unique_with_counts(x, out_idx=None, name=None):
    values, places, counts = _unique(x)
    kind = out_idx or tf.int32
    return UniqueWithCounts(tf.constant(values), tf.constant(places, dtype=kind), tf.constant(counts, dtype=kind))


def dynamic_partition(data, partitions, num_partitions, name=None):
    import numpy as np
    which = tf.convert_to_tensor(partitions).numpy()
    data = tf.convert_to_tensor(data)
    flat = tf.reshape(data, (-1,) + tuple(data.shape[which.ndim:]))
    return [tf.gather(flat, np.flatnonzero(which.ravel() == i)) for i in range(int(num_partitions))]


def dynamic_stitch(indices, data, name=None):
    import numpy as np
    flat = [tf.reshape(tf.convert_to_tensor(i), [-1]).numpy() for i in indices]
    parts = [tf.reshape(tf.convert_to_tensor(d), (len(i),) + tuple(tf.convert_to_tensor(d).shape[tf.convert_to_tensor(k).ndim:]))
             for d, i, k in zip(data, flat, indices)]
    all_of = np.concatenate(flat)
    last = np.zeros(int(all_of.max()) + 1, np.int64)
    last[all_of] = np.arange(len(all_of))
    return tf.gather(tf.concat(parts, 0), last)


def histogram_fixed_width(values, value_range, nbins=100, dtype=None, name=None):
    import numpy as np
    low, high = (float(v) for v in value_range)
    a = np.clip(tf.convert_to_tensor(values).numpy().ravel(), low, high)
    return tf.constant(np.histogram(a, int(nbins), (low, high))[0], dtype=dtype or tf.int32)


# --- results with names ---------------------------------------------------------------------------------
_several = {}


def _row(name):
    """The row of a name, as a list of its results."""
    if name not in _several:
        _several[name] = _C.function(name, True)
    return _several[name]


def top_k(input, k=1, sorted=True, index_type=None, name=None):
    values, indices = _row("tf.nn.top_k")(input, k, sorted)
    return TopK(values, indices if index_type is None else tf.cast(indices, index_type))


def slogdet(input, name=None):  # noqa: A002
    return LogMatrixDeterminant(*_row("tf.linalg.slogdet")(input))


_MOST_PARTS = 96                # that one call of a row gives


def _extent(value, axis):
    """(tensor, axis from the front, extent) where that is more than a row takes apart in one call, or None."""
    shape = getattr(value, "shape", None)
    if shape is None or not hasattr(shape, "__len__") or not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return None
    extent = shape[axis]
    return (value, axis % len(shape), extent) if isinstance(extent, int) and extent > _MOST_PARTS else None


def unstack(value, num=None, axis=0, name="unstack"):
    many = _extent(value, axis)
    if many is None or num not in (None, many[2]):
        return _row("tf.unstack")(value, num, axis)
    value, axis, extent = many
    return [tf.gather(value, i, axis=axis) if axis else value[i] for i in range(extent)]


def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    parts = _split(value, num_or_size_splits, axis)
    if num is not None and num != len(parts):
        raise ValueError(f"{num} parts are named, and there are {len(parts)}")
    return parts


def _split(value, parts, axis):
    many = _extent(value, axis)
    equal = isinstance(parts, int) and parts > _MOST_PARTS
    listed = isinstance(parts, (list, tuple)) and len(parts) > _MOST_PARTS and all(isinstance(n, int) and n >= 0 for n in parts)
    if many is None or not (equal or listed):
        return _row("tf.split")(value, parts, axis)
    value, axis, extent = many
    sizes = [extent // parts] * parts if equal else parts
    if sum(sizes) != extent:
        raise ValueError(f"tf.split: an extent of {extent} does not split into {parts if equal else len(parts)} such parts")
    before, at, found = (slice(None),) * axis, 0, []
    for n in sizes:
        found.append(value[before + (slice(at, at + n),)])
        at += n
    return found


def meshgrid(*args, indexing="xy", name=None):
    return _row("tf.meshgrid")(*args, indexing=indexing)


def moments(x, axes, shift=None, keepdims=False, name=None):
    return tuple(_row("tf.nn.moments")(x, axes, keepdims=keepdims))


def group(*inputs, name=None):
    if graph() is not None:
        return graph().group(*inputs, name=name)
    return None


@default_only("control_inputs", "tf.tuple")
def tuple_of(tensors, control_inputs=None, name=None):
    return list(tensors)


def no_op(name=None):
    return None
