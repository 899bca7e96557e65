"""tf.experimental.numpy: NumPy's names on tensors. Functions are those of keras.ops, which are named and promote as NumPy's; what makes
arrays gives NumPy's dtypes, float64 and int64. And tf.experimental.dlpack, through NumPy's arrays."""
import math

from snug import _C, _arrays, _files
from snug._given import default_only
from snug._lazy import tf
from snug._types import BY_NAME

pi, e, inf, newaxis = math.pi, math.e, math.inf, None
float32, float64, int32, int64, bool_ = (BY_NAME[name] for name in ("float32", "float64", "int32", "int64", "bool"))
ndarray = _C.Tensor


def function(name):
    """The function of this name; None where keras.ops has none."""
    from snug.keras import ops
    found = getattr(ops, name, None)
    return None if found is None else _of_arrays(found)


def _of_arrays(of_tensors):
    """Lists and numbers as NumPy sees them, tensors as they are; behind the first argument whole numbers are shapes and axes. What is
    a float32 of whole numbers in Keras is a float64 in NumPy."""
    name = getattr(of_tensors, "__name__", "function")

    def call(*args, **kwargs):
        if name in _OF_SEVERAL and isinstance(args[0], (list, tuple)):
            args = [[asarray(part) for part in args[0]], *args[1:]]
        given = [asarray(a) if name == "where" or _is_data(a, i) else a for i, a in enumerate(args)]
        made = of_tensors(*given, **kwargs)
        tensors = [a for a in given if _C.is_tensor(a)]
        if getattr(made, "dtype", None) == tf.float32 and tensors and all(a.dtype.is_integer or a.dtype.is_bool for a in tensors):
            made = of_tensors(*[tf.cast(a, tf.float64) if _C.is_tensor(a) else a for a in given], **kwargs)
        return tf.cast(made, tf.int64) if name in ("argmax", "argmin", "argsort", "searchsorted", "count_nonzero") else made
    call.__name__ = name
    return call


_OF_SEVERAL = ("concatenate", "stack", "vstack", "hstack", "dstack")


def _is_data(value, place):
    if isinstance(value, (list, tuple)):
        return not any(_C.is_tensor(v) for v in value) and (place == 0 or any(isinstance(v, (float, list)) for v in value))
    return place == 0 and isinstance(value, (int, float)) and not isinstance(value, bool)


def array(val, dtype=None, copy=True, ndmin=0):
    import numpy as np
    if _C.is_tensor(val):
        made = tf.identity(val) if dtype is None else tf.cast(val, dtype)
        return tf.reshape(made, [1] * max(0, ndmin - len(made.shape)) + list(made.shape)) if ndmin > len(made.shape) else made
    return tf.constant(np.array(val, None if dtype is None else tf.as_dtype(dtype).as_numpy_dtype, ndmin=ndmin))


def asarray(a, dtype=None):
    return tf.convert_to_tensor(a) if _C.is_tensor(a) and dtype is None else array(a, dtype)


def _made_by_numpy(name):
    def call(*args, dtype=None, **kwargs):
        import numpy as np
        made = getattr(np, name)(*args, **kwargs)
        return array(made, dtype)
    call.__name__ = name
    return call


def ones(shape, dtype="float64"):
    return tf.ones(shape, dtype=dtype)


def zeros(shape, dtype="float64"):
    return tf.zeros(shape, dtype=dtype)


arange, linspace, full, eye, identity = map(_made_by_numpy, ("arange", "linspace", "full", "eye", "identity"))


class random:  # noqa: N801
    """tf.experimental.numpy.random"""
    seed = staticmethod(lambda s: tf.random.set_seed(s))
    rand = staticmethod(lambda *size: tf.random.uniform(size, dtype=tf.float64))
    randn = staticmethod(lambda *size: tf.random.normal(size, dtype=tf.float64))
    uniform = staticmethod(lambda low=0.0, high=1.0, size=(): tf.random.uniform(size, low, high, dtype=tf.float64))
    normal = staticmethod(lambda loc=0.0, scale=1.0, size=(): tf.random.normal(size, loc, scale, dtype=tf.float64))
    randint = staticmethod(lambda low, high=None, size=(): tf.random.uniform(
        size, 0 if high is None else low, low if high is None else high, dtype=tf.int64))


@default_only("prefer_float32 dtype_conversion_mode")
def experimental_enable_numpy_behavior(prefer_float32=False, dtype_conversion_mode=None):
    """Tensors get NumPy's methods from now on. Operands of several dtypes still have to be cast."""
    methods = {"reshape": lambda self, *shape: tf.reshape(self, shape[0] if len(shape) == 1 else shape),
               "astype": lambda self, dtype: tf.cast(self, dtype), "ravel": lambda self: tf.reshape(self, [-1]),
               "transpose": lambda self, *axes: tf.transpose(self, (axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes) or None),
               "tolist": lambda self: self.numpy().tolist(), "T": property(tf.transpose), "size": property(lambda self: self.shape.num_elements()),
               "clip": lambda self, a_min=None, a_max=None: tf.clip_by_value(self, a_min, a_max)}
    for name in ("mean", "max", "min"):
        methods[name] = lambda self, axis=None, name=name, **more: function(name)(self, axis=axis, **more)
    for name, method in methods.items():
        setattr(_C.Tensor, name, method)


# --- tf.experimental.dlpack -----------------------------------------------------------------------------
def to_dlpack(tf_tensor):
    if not _files.is_bfloat16(tf_tensor):
        return tf_tensor.numpy().copy().__dlpack__()
    import numpy as np
    capsule = np.frombuffer(bytearray().join(_files.pieces(tf_tensor)), np.uint16).reshape(tuple(tf_tensor.shape)).__dlpack__()
    _C.retype_dlpack(capsule, _arrays.DLPACK_UINT, _arrays.DLPACK_BFLOAT)
    return capsule


def from_dlpack(dlcapsule):
    array, pairs = _arrays.by_dlpack(dlcapsule)
    return tf.constant(array, "bfloat16" if pairs else None)
