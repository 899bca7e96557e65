"""Tensors of text: an array of bytes objects behind a tensor's face, and tf.strings over it. They are values, not recorded:
nothing numeric happens to them."""
import re

from snug import _C, _nest
from snug._lazy import tf
from snug._types import BY_NAME, TensorShape


def _bytes(value):
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise ValueError(f"Can't convert Python sequence with mixed types to Tensor: {value!r}")


def _array(value):
    import numpy as np
    if isinstance(value, StringTensor):
        return value._array
    shape, at = [], value.tolist() if isinstance(value, np.ndarray) else value
    while isinstance(at, (list, tuple)):
        shape.append(len(at))
        at = at[0] if at else None
    flat = [_bytes(v._array.item() if isinstance(v, StringTensor) else v)
            for v in _nest.flatten(value.tolist() if isinstance(value, np.ndarray) else value)]
    out = np.empty(len(flat), object)
    out[:] = flat
    return out.reshape(shape)


class StringTensor:
    """tf.constant("text")."""
    dtype = BY_NAME["string"]
    device = "/job:localhost/replica:0/task:0/device:CPU:0"
    __array_priority__ = 100

    def __init__(self, value, shape=None):
        self._array = _array(value)
        if shape is not None:
            self._array = self._array.reshape(tuple(TensorShape(shape)))

    # --- what the extension asks: parts of elements
    @staticmethod
    def _flat(value):
        """([bytes], dims) of any value of texts."""
        array = _array(value.tolist() if hasattr(value, "tolist") else value)
        return array.ravel().tolist(), array.shape

    @staticmethod
    def _is_text(value):
        kind = getattr(getattr(value, "dtype", None), "kind", None)
        return kind in ("U", "S") or (kind == "O" and value.size > 0 and isinstance(value.flat[0], (bytes, str)))

    @classmethod
    def _made(cls, flat, dims):
        import numpy as np
        made = cls.__new__(cls)
        made._array = np.empty(len(flat), object)
        made._array[:] = flat
        made._array = made._array.reshape(dims)
        return made

    @classmethod
    def _values(cls, flat, dims):
        return flat[0] if not dims else cls._made(flat, dims)._array

    shape = property(lambda self: TensorShape(self._array.shape))
    ndim = property(lambda self: self._array.ndim)

    def get_shape(self):
        return self.shape

    def numpy(self):
        return self._array.item() if self._array.ndim == 0 else self._array.copy()

    def __array__(self, dtype=None, copy=None):
        return self._array.astype(dtype) if dtype is not None else self._array

    def __getitem__(self, key):
        def index(k):
            return int(k) if _C.is_tensor(k) else k
        return _of(self._array[tuple(map(index, key)) if isinstance(key, tuple) else index(key)])

    def __len__(self):
        if self._array.ndim == 0:
            raise TypeError("Scalar tensor has no `len()`")
        return len(self._array)

    def __iter__(self):
        return iter([_of(v) for v in self._array])

    def __add__(self, other):
        return join([self, other])

    def __radd__(self, other):
        return join([other, self])

    def _compare(self, other):
        import numpy as np
        return np.asarray(np.equal(self._array, _array(other)), bool)

    def __eq__(self, other):
        return False if other is None else tf.constant(self._compare(other))

    def __ne__(self, other):
        return True if other is None else tf.constant(~self._compare(other))

    def __hash__(self):
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def ref(self):
        from snug._text import Reference
        return Reference(self)

    def __bool__(self):
        return bool(self._array.item())

    def __repr__(self):
        text = repr(self._array.item() if self._array.ndim == 0 else self._array)
        text = "\n" + text if "\n" in text else text
        return f"<tf.Tensor: shape={self.shape}, dtype=string, numpy={text}>"

    def __str__(self):
        text = str(self._array.item() if self._array.ndim == 0 else self._array)
        text = "\n" + text if "\n" in text else text
        return f"tf.Tensor({text}, shape={self.shape}, dtype=string)"

    def __format__(self, spec):
        return (self._array.item() if self._array.ndim == 0 else self._array).__format__(spec)

    def __snug_function__(self, function, args, kwargs):
        """Functions of the table that only move elements."""
        import numpy as np
        name = getattr(function, "__name__", "")
        rest = [a.numpy() if _C.is_tensor(a) else a for a in args[1:]]
        if name == "gather" and args[0] is self:
            return _of(np.take(self._array, np.asarray(rest[0]), axis=kwargs.get("axis", 0) or 0))
        if name == "reshape":
            return _of(self._array.reshape([int(d) for d in (rest[0] if rest else kwargs["shape"])]))
        if name == "identity":
            return self
        if name in ("equal", "not_equal"):
            return self == args[1] if name == "equal" else self != args[1]
        if name == "shape":
            return tf.constant(list(self._array.shape), dtype=tf.int32)
        if name == "size":
            return tf.constant(self._array.size)
        if name == "expand_dims":
            return _of(np.expand_dims(self._array, int(rest[0] if rest else kwargs["axis"])))
        raise tf.errors.UnimplementedError(None, None, f"{name} of tensors of text is not in Snug")


def _of(value):
    return value if isinstance(value, StringTensor) else StringTensor(value)


def _each(function, *inputs):
    """function on the elements of inputs, broadcast against each other."""
    import numpy as np
    arrays = np.broadcast_arrays(*[_array(x) for x in inputs])
    return _of(np.frompyfunc(lambda *v: function(*v), len(arrays), 1)(*arrays)) if arrays[0].ndim else _of(
        function(*[a.item() for a in arrays]))


def _numbers(function, value, dtype):
    import numpy as np
    a = _array(value)
    flat = [function(v) for v in a.ravel()]
    return tf.constant(np.array(flat, dtype.as_numpy_dtype).reshape(a.shape))


def join(inputs, separator="", name=None):
    return _each(lambda *v: _bytes(separator).join(v), *inputs)


def length(input, unit="BYTE", name=None):
    return _numbers(lambda v: len(v) if unit == "BYTE" else len(v.decode()), input, tf.int32)


def upper(input, encoding="", name=None):
    return _each(lambda v: v.decode().upper().encode(), input)


def lower(input, encoding="", name=None):
    return _each(lambda v: v.decode().lower().encode(), input)


def strip(input, name=None):
    return _each(lambda v: v.strip(), input)


def substr(input, pos, len, unit="BYTE", name=None):
    first, n = int(pos), int(len)
    return _each(lambda v: v[first:first + n] if unit == "BYTE" else v.decode()[first:first + n].encode(), input)


def regex_replace(input, pattern, rewrite, replace_global=True, name=None):
    kind = re.compile(_bytes(pattern))
    return _each(lambda v: kind.sub(_bytes(rewrite), v, 0 if replace_global else 1), input)


def regex_full_match(input, pattern, name=None):
    kind = re.compile(_bytes(pattern))
    return _numbers(lambda v: kind.fullmatch(v) is not None, input, tf.bool)


def to_number(input, out_type=None, name=None):
    kind = tf.as_dtype(out_type or tf.float32)
    return _numbers(lambda v: int(v) if kind.is_integer else float(v), input, kind)


def as_string(input, precision=-1, scientific=False, shortest=False, width=-1, fill="", name=None):
    a = tf.convert_to_tensor(input)
    values = a.numpy()

    def text(v):
        if a.dtype.is_floating:
            out = f"{float(v):.{6 if precision < 0 else precision}{'e' if scientific else 'f'}}"
        else:
            out = str(bool(v)).lower() if a.dtype.is_bool else str(int(v))
        return out.rjust(max(width, 0), fill or " ")
    return StringTensor([text(v) for v in values.ravel()], values.shape) if values.ndim else StringTensor(text(values))


def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
    import numpy as np
    a, by = _array(inputs), _bytes(separator)
    if axis is None:
        return _of(by.join(a.ravel().tolist()))
    return _of(np.apply_along_axis(lambda row: by.join(row.tolist()), int(axis), a).astype(object))


def format(template, inputs, placeholder="{}", summarize=3, name=None):  # noqa: A001
    from snug._misc import _written
    inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    for value in inputs:
        template = template.replace(placeholder, _written(value, summarize), 1)
    return _of(template)


def split(input, sep=None, maxsplit=-1, name=None):
    a = _array(input)
    parts = [v.split(None if not sep else _bytes(sep), maxsplit) for v in a.ravel()]
    if a.ndim == 0:
        return _of(parts[0])
    if len({len(p) for p in parts}) > 1:
        raise tf.errors.UnimplementedError(None, None, "tf.strings.split of lines with different numbers of words: Snug has no"
                                           " ragged tensors")
    return _of(parts)


def to_hash_bucket_fast(input, num_buckets, name=None):
    import zlib
    return _numbers(lambda v: zlib.crc32(v) % int(num_buckets), input, tf.int64)
