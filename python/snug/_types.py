"""What tensors are described with: DType, TensorShape, TensorSpec; and the two signals of the extension.

The order of OF_ENGINE is that of snug_dtype in include/snug/tensor.h."""
import functools
import operator


class Peek(BaseException):
    """Raised where a value is read that an open trace only describes; tf.function catches it. Its argument, if there is
    one, is that tensor, of one element."""


class MakesVariable(BaseException):
    """Raised where a variable is made within a trace; tf.function catches it."""


@functools.cache
def _numpys_bfloat16():
    """That of the package ml_dtypes; where it is missing, or of another NumPy's time, float32, which has all its numbers."""
    import numpy as np
    try:
        from ml_dtypes import bfloat16
    except (ImportError, AttributeError):
        return np.float32
    return bfloat16


class DType:
    """An element type: tf.float32 and its like. Equal to its name and to NumPy's dtype of that name."""
    __slots__ = ("name", "_code", "_kind", "size", "__weakref__")

    def __init__(self, name, code, kind, size):
        self.name = name
        self._code = code          # of snug_dtype; -1: tensors cannot have it
        self._kind = kind          # one of f c i u b s r
        self.size = size

    @property
    def as_numpy_dtype(self):
        import numpy as np
        if self.name == "string":
            return np.object_
        if self.name == "bfloat16":
            return _numpys_bfloat16()
        return np.bool_ if self.name == "bool" else getattr(np, self.name)

    is_floating = property(lambda self: self._kind == "f")
    is_complex = property(lambda self: self._kind == "c")
    is_integer = property(lambda self: self._kind in "iu")
    is_unsigned = property(lambda self: self._kind == "u")
    is_bool = property(lambda self: self._kind == "b")
    is_numeric = property(lambda self: self._kind in "fciu")
    base_dtype = real_dtype = property(lambda self: self)
    as_datatype_enum = property(lambda self: _ENUM.get(self.name, 0))
    is_numpy_compatible = property(lambda self: self.name != "resource")

    def _limit(self, which):
        if self.name == "bfloat16":
            return 3.3895313892515355e38 * (1 if which == "max" else -1)
        if self._kind == "b":
            return which == "max"
        import numpy as np
        if self._kind == "f":
            return getattr(np.finfo(self.as_numpy_dtype), which)
        if self._kind in "iu":
            return getattr(np.iinfo(self.as_numpy_dtype), which)
        raise TypeError(f"Cannot find {which}imum value of {self}.")

    max = property(lambda self: self._limit("max"))
    min = property(lambda self: self._limit("min"))

    @property
    def limits(self):
        return (0, self.max) if self._kind in "ub" else (self.min, self.max)

    def is_compatible_with(self, other):
        return self == other

    def __eq__(self, other):
        if self is other:
            return True
        if isinstance(other, DType) or other is None:
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return "tf." + self.name

    def __str__(self):
        return f"<dtype: '{self.name}'>"

    def __reduce__(self):
        return as_dtype, (self.name,)


class ComplexDType(DType):
    """Takes tf.cast upon itself: complex numbers are pairs of tensors (_complex.py)."""
    __slots__ = ()

    def __snug_function__(self, function, args, kwargs):
        from snug import _complex
        if getattr(function, "__name__", "") == "cast":
            return _complex._cast(*args, **kwargs)
        raise TypeError(f"{getattr(function, '__name__', 'it')} of {self.name}: complex numbers are what tf.complex, tf.cast and tf.signal give")


OF_ENGINE = tuple(DType(name, code, kind, size) for code, (name, kind, size) in enumerate(
    (("float32", "f", 4), ("float64", "f", 8), ("float16", "f", 2), ("bfloat16", "f", 2), ("int8", "i", 1), ("uint8", "u", 1),
     ("int32", "i", 4), ("int64", "i", 8), ("bool", "b", 1), ("int16", "i", 2), ("uint16", "u", 2), ("uint32", "u", 4))))
_OTHERS = tuple((ComplexDType if kind == "c" else DType)(name, -1, kind, size) for name, kind, size in (
    ("uint64", "u", 8), ("complex64", "c", 8),
    ("complex128", "c", 16), ("string", "s", 0), ("resource", "r", 0), ("variant", "r", 0), ("qint8", "i", 1),
    ("qint32", "i", 4), ("quint8", "u", 1)))
BY_NAME = {d.name: d for d in OF_ENGINE + _OTHERS}
_ENUM = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "int64": 9, "bool": 10,
         "bfloat16": 14, "uint16": 17, "float16": 19, "uint32": 22}
_WORDS = {"half": "float16", "float": "float32", "double": "float64", "str": "string", "object": "string"}
_CLASSES = {float: "float32", int: "int32", bool: "bool", str: "string", bytes: "string"}


def as_dtype(type_value):
    """The DType that a name, a NumPy dtype, a Python class or a number of TensorFlow's enumeration means."""
    value = type_value
    if isinstance(value, DType):
        return value
    found = None
    if isinstance(value, str):
        found = BY_NAME.get(_WORDS.get(value, value))
    elif isinstance(value, type) and value in _CLASSES:
        found = BY_NAME[_CLASSES[value]]
    elif isinstance(value, int):
        found = next((BY_NAME[n] for n, e in _ENUM.items() if e == value), None)
    elif value is not None:
        name = getattr(value, "name", None) or getattr(value, "__name__", None)
        if name == "bool_":
            name = "bool"
        found = BY_NAME.get(_WORDS.get(name, name)) if isinstance(name, str) else None
        if found is None and hasattr(value, "dtype"):
            return as_dtype(value.dtype)
    if found is None:
        raise TypeError(f"Cannot convert the argument `type_value`: {value!r} to a TensorFlow DType.")
    return found


def _dim(value):
    if value is None or type(value) is int and value >= 0:
        return value
    if isinstance(value, str):
        raise TypeError(f"Dimension value must be integer or None or have an __index__ method, got value '{value!r}'")
    n = operator.index(value)
    if n < 0 and n != -1:
        raise ValueError(f"Dimension {n} must be >= 0")
    return None if n == -1 else n


class TensorShape:
    """Extents; None where one is unknown, or in place of all when even the rank is."""
    __slots__ = ("_dims",)

    def __init__(self, dims):
        if isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif dims is None:
            self._dims = None
        elif hasattr(dims, "__iter__"):
            self._dims = tuple(map(_dim, dims))
        else:
            self._dims = (_dim(dims),)

    @property
    def rank(self):
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self):
        return None if self._dims is None else list(self._dims)

    def as_list(self):
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def as_proto(self):
        return self

    def num_elements(self):
        if not self.is_fully_defined():
            return None
        n = 1
        for d in self._dims:
            n *= d
        return n

    def is_fully_defined(self):
        return self._dims is not None and None not in self._dims

    def is_compatible_with(self, other):
        a, b = self._dims, TensorShape(other)._dims
        if a is None or b is None:
            return True
        return len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b))

    def is_subtype_of(self, other):
        other = TensorShape(other)
        return other.rank is None or self.is_compatible_with(other)

    def most_specific_compatible_shape(self, other):
        other = TensorShape(other)
        if self.rank is None or self.rank != other.rank:
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(self, other)])

    def assert_is_compatible_with(self, other):
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible")

    def assert_has_rank(self, rank):
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other):
        if self.rank != TensorShape(other).rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_is_fully_defined(self):
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def with_rank(self, rank):
        self.assert_has_rank(rank)
        return TensorShape([None] * rank) if self._dims is None else self

    def with_rank_at_least(self, rank):
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def merge_with(self, other):
        other = TensorShape(other)
        self.assert_is_compatible_with(other)
        if self._dims is None or other._dims is None:
            return other if self._dims is None else self
        return TensorShape([b if a is None else a for a, b in zip(self, other)])

    def concatenate(self, other):
        a, b = self._dims, TensorShape(other)._dims
        return TensorShape(None if a is None or b is None else a + b)

    def __add__(self, other):
        return self.concatenate(other)

    def __radd__(self, other):
        return TensorShape(other).concatenate(self)

    def __getitem__(self, key):
        if self._dims is None:
            return TensorShape(None) if isinstance(key, slice) else None
        got = self._dims[key]
        return TensorShape(got) if isinstance(key, slice) else got

    def __len__(self):
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __iter__(self):
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims)

    def __bool__(self):
        return self._dims is not None

    def __eq__(self, other):
        try:
            other = TensorShape(other)
        except (TypeError, ValueError):
            return NotImplemented
        return self._dims == other._dims

    def __hash__(self):
        return hash(self._dims)

    def __repr__(self):
        return f"TensorShape({None if self._dims is None else list(self._dims)})"

    def __str__(self):
        return "<unknown>" if self._dims is None else str(self._dims)

    def __reduce__(self):
        return TensorShape, (self._dims,)


class TensorSpec:
    """What a tensor looks like: shape, dtype, name."""
    __slots__ = ("shape", "dtype", "name")

    def __init__(self, shape, dtype=BY_NAME["float32"], name=None):
        self.shape = TensorShape(shape)
        self.dtype = as_dtype(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor, name=None):
        return cls(tensor.shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec, name=None):
        return cls(spec.shape, spec.dtype, name or spec.name)

    def is_compatible_with(self, other):
        return self.dtype == other.dtype and self.shape.is_compatible_with(other.shape)

    def __eq__(self, other):
        return isinstance(other, TensorSpec) and (self.shape, self.dtype, self.name) == (other.shape, other.dtype, other.name)

    def __hash__(self):
        return hash((self.shape, self.dtype))

    def __repr__(self):
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


def type_spec_from_value(value):
    """What a value looks like; of a dataset what its elements do."""
    if hasattr(value, "element_spec"):
        from snug.data import DatasetSpec
        return DatasetSpec(value.element_spec)
    return TensorSpec(value.shape, as_dtype(value.dtype))
