"""Complex numbers as pairs of tensors: what Fourier transforms give, and what programs do with it. The engine has none of its own."""
import builtins

from snug import _C
from snug._given import as_array
from snug._lazy import tf


class ComplexTensor:
    """A real and an imaginary part of one shape."""
    __array_priority__ = 150

    def __init__(self, real, imag):
        self.real, self.imag = real, imag

    shape = property(lambda self: self.real.shape)
    ndim = property(lambda self: len(self.real.shape))
    dtype = property(lambda self: tf.complex128 if self.real.dtype == tf.float64 else tf.complex64)

    def numpy(self):
        import numpy as np
        made = np.empty(tuple(self.shape), self.dtype.as_numpy_dtype)
        made.real, made.imag = self.real.numpy(), self.imag.numpy()
        return made[()]

    def __complex__(self):
        return builtins.complex(self.numpy())

    def __array__(self, dtype=None, copy=None):
        return as_array(self.numpy(), dtype, copy)

    def __repr__(self):
        from snug._text import _numbers
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={_numbers(self.numpy(), repr)}>"

    def __str__(self):
        from snug._text import _numbers
        return f"tf.Tensor({_numbers(self.numpy(), str)}, shape={self.shape}, dtype={self.dtype.name})"

    def __len__(self):
        return self.shape[0]

    def get_shape(self):
        return self.shape

    def each(self, function):
        """function of both parts: what moves elements, or sums them."""
        return ComplexTensor(function(self.real), function(self.imag))

    def __getitem__(self, key):
        return self.each(lambda t: t[key])

    # --- arithmetic -------------------------------------------------------------------------------
    def __add__(self, other):
        o = as_complex(other, self)
        return ComplexTensor(self.real + o.real, self.imag + o.imag)

    def __sub__(self, other):
        o = as_complex(other, self)
        return ComplexTensor(self.real - o.real, self.imag - o.imag)

    def __mul__(self, other):
        o = as_complex(other, self)
        return ComplexTensor(self.real * o.real - self.imag * o.imag, self.real * o.imag + self.imag * o.real)

    def __truediv__(self, other):
        o = as_complex(other, self)
        size, turned = o.real * o.real + o.imag * o.imag, self * o.conj()
        return turned.each(lambda t: t / size)

    def __matmul__(self, other):
        return tf.matmul(self, other)

    def __rmatmul__(self, other):
        return tf.matmul(other, self)

    def __neg__(self):
        return self.each(lambda t: -t)

    def __rsub__(self, other):
        return as_complex(other, self) - self

    def __rtruediv__(self, other):
        return as_complex(other, self) / self

    __radd__, __rmul__ = __add__, __mul__

    def __abs__(self):
        return _abs(self)

    def conj(self):
        return ComplexTensor(self.real, -self.imag)

    # --- functions of the table -------------------------------------------------------------------
    def __snug_function__(self, function, args, kwargs):
        name = getattr(function, "__name__", "")
        if name in _FUNCTIONS:
            return _FUNCTIONS[name](*args, **{k: v for k, v in kwargs.items() if k != "name"})
        if name in _PRODUCTS:
            return _product(function, args, kwargs)
        if name in _MOVES and isinstance(args[0], ComplexTensor):
            return args[0].each(lambda t: function(t, *args[1:], **kwargs))
        raise tf.errors.UnimplementedError(None, None, f"{name} of complex numbers is not in Snug; tf.abs, tf.math.real, imag and angle make"
                                           " real ones of them")


def as_complex(value, like):
    if isinstance(value, ComplexTensor):
        return value
    if isinstance(value, builtins.complex) or isinstance(value, (list, tuple)) or getattr(getattr(value, "dtype", None), "kind", "") == "c":
        import numpy as np
        value = np.asarray(value)
        return ComplexTensor(*(tf.constant(np.array(part, order="C"), dtype=like.real.dtype) for part in (value.real, value.imag)))
    value = tf.cast(tf.convert_to_tensor(value), like.real.dtype)
    return ComplexTensor(value, tf.zeros_like(value))


def _abs(x, name=None):
    """Where both parts are 0 the gradient is 0, as TensorFlow's."""
    square = x.real * x.real + x.imag * x.imag
    none = tf.equal(square, 0)          # NaN stays NaN
    return tf.where(none, tf.zeros_like(square), tf.sqrt(tf.where(none, tf.ones_like(square), square)))


def _cast(x, dtype, name=None):
    kind = tf.as_dtype(dtype)
    if kind.name.startswith("complex"):
        part = tf.float64 if kind.name == "complex128" else tf.float32
        if isinstance(x, ComplexTensor):
            return x.each(lambda t: tf.cast(t, part))
        x = tf.cast(tf.convert_to_tensor(x), part)
        return ComplexTensor(x, tf.zeros_like(x))
    return tf.cast(x.real, kind)


def _product(function, args, kwargs):
    """What is linear in each of two operands, argument i and i + 1: matmul, einsum, tensordot."""
    at = 1 if isinstance(args[0], str) else 0
    like = next(x for x in args[at:at + 2] if isinstance(x, ComplexTensor))
    x, y = (as_complex(v, like) for v in args[at:at + 2])
    kwargs = dict(kwargs)
    x, y = (v.conj() if kwargs.pop(f"adjoint_{side}", False) and not kwargs.update({f"transpose_{side}": True}) else v
            for v, side in ((x, "a"), (y, "b")))
    times = lambda a, b: function(*args[:at], a, b, *args[at + 2:], **kwargs)
    return ComplexTensor(times(x.real, y.real) - times(x.imag, y.imag), times(x.real, y.imag) + times(x.imag, y.real))


def _exp(x, name=None):
    size = tf.exp(x.real)
    return ComplexTensor(size * tf.cos(x.imag), size * tf.sin(x.imag))


def _binary(word):
    def function(x, y, name=None):
        first = x if isinstance(x, ComplexTensor) else as_complex(x, y)
        return getattr(first, word)(y)
    return function


def _transpose(a, perm=None, conjugate=False, axes=None):
    return (a.conj() if conjugate else a).each(lambda t: tf.transpose(t, axes if perm is None else perm))


def _matrix_transpose(a, conjugate=False):
    return (a.conj() if conjugate else a).each(tf.linalg.matrix_transpose)


_FUNCTIONS = {"abs": _abs, "transpose": _transpose, "matrix_transpose": _matrix_transpose, "cast": _cast,
              "real": lambda x: x.real, "conj": lambda x: x.conj(), "exp": _exp,
              "square": lambda x: x * x, "negative": lambda x: -x, "neg": lambda x: -x,
              "add": _binary("__add__"), "subtract": _binary("__sub__"), "multiply": _binary("__mul__"), "divide": _binary("__truediv__"),
              "truediv": _binary("__truediv__"), "shape": lambda x, out_type="int32": tf.shape(x.real, out_type), "size": lambda x, out_type="int32": tf.size(x.real, out_type)}
_PRODUCTS = ("matmul", "einsum", "tensordot", "matvec")
_MOVES = ("reshape", "expand_dims", "squeeze", "reduce_sum", "reduce_mean", "identity", "gather", "reverse", "tile", "pad",
          "roll", "sum", "mean", "slice", "stop_gradient", "zeros_like")


class ComplexVariable(ComplexTensor):
    """Two variables; what is read is what they hold then."""
    trainable = True

    def __init__(self, value, trainable=True, name=None):
        self._parts = tuple(tf.Variable(part, trainable=trainable) for part in (value.real, value.imag))
        self.trainable, self.name = trainable, f"{name or 'Variable'}:0"

    real = property(lambda self: tf.convert_to_tensor(self._parts[0]))
    imag = property(lambda self: tf.convert_to_tensor(self._parts[1]))

    def value(self):
        return ComplexTensor(self.real, self.imag)

    read_value = value

    def assign(self, value, use_locking=False, name=None, read_value=True):
        value = as_complex(tf.convert_to_tensor(value), self)
        for variable, part in zip(self._parts, (value.real, value.imag)):
            variable.assign(part)
        return self

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        return self.assign(self + delta)

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        return self.assign(self - delta)

    def __repr__(self):
        from snug._text import _numbers
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, numpy={_numbers(self.numpy(), repr)}>"

    __str__ = __repr__


# --- names of tf ----------------------------------------------------------------------------------------
def complex(real, imag, name=None):  # noqa: A001
    real, imag = tf.convert_to_tensor(real), tf.convert_to_tensor(imag)
    return ComplexTensor(*(t if t.dtype.is_floating else tf.cast(t, tf.float32) for t in (real, imag)))


def constant(value, dtype=None, shape=None):
    """What tf.constant gives for complex numbers, and for NumPy's arrays of text; None where the value is none of them and no such
    dtype is asked for."""
    import numpy as np
    from snug._strings import StringTensor
    kind = None if dtype is None else tf.as_dtype(dtype)
    if StringTensor._is_text(value) and (kind is None or kind.name == "string"):
        return StringTensor(value, shape)
    if kind is not None and not kind.is_complex or isinstance(value, (str, bytes)) or value is None:
        return None
    if isinstance(value, ComplexTensor) or _C.is_tensor(value):
        return value if kind is None else None if not isinstance(value, ComplexTensor) else _cast(value, kind)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        return None
    if array.dtype.kind != "c" and (kind is None or array.dtype.kind not in "fiub"):
        return None
    part = tf.float32 if (kind.name if kind is not None else array.dtype.name) == "complex64" else tf.float64
    if shape is not None:
        dims = tuple(tf.TensorShape(shape))
        array = np.broadcast_to(array, dims) if array.size == 1 else array.reshape(dims)
    return ComplexTensor(*(tf.constant(np.array(p, order="C"), dtype=part) for p in (array.real, array.imag)))


def imag(input, name=None):  # noqa: A002
    return input.imag if isinstance(input, ComplexTensor) else tf.zeros_like(input)


def angle(input, name=None):  # noqa: A002
    if isinstance(input, ComplexTensor):
        return tf.math.atan2(input.imag, input.real)
    import math
    x = tf.convert_to_tensor(input)
    return tf.where(x < 0, tf.constant(math.pi, x.dtype), tf.zeros_like(x))


def is_complex(x):
    return isinstance(x, ComplexTensor) or not _C.is_tensor(x) and getattr(getattr(x, "dtype", None), "kind", "") == "c"
