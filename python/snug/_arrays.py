"""What is brought as data, as arrays: by DLPack, the buffer protocol or __array__, so by position and never by label. Tensors, NumPy's arrays
and memmaps are taken as they are; NumPy asks the budget for what it copies, and others are asked for."""
import numbers as _numbers

from snug import _C
from snug._given import default_only


def is_frame(value):
    """A table or a column of pandas', or something that is indexed like one: by labels, unless one says iloc."""
    return hasattr(value, "iloc") and hasattr(value, "__array__")


def of(value):
    """The value where it is a tensor, an array or none that has an array; else its array."""
    import numpy as np
    if isinstance(value, np.ndarray):
        return numbers(value) if value.dtype.kind == "O" else value
    if value is None or isinstance(value, (str, bytes, bytearray, _numbers.Number)) or _is_own(value):
        return value
    if isinstance(value, memoryview) or type(value).__module__ == "array":
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        try:
            return by_dlpack(value)[0]
        except (BufferError, TypeError, RuntimeError, NotImplementedError):     # of a dtype or a device that NumPy has not: it says which
            if not hasattr(value, "__array__"):
                raise
    if not hasattr(value, "__array__"):
        return value
    if not is_frame(value):
        _C.ask(_bytes_of(value), "for an array of other data")
    made = np.asarray(value)
    return numbers(made) if made.dtype.kind == "O" else made


def _is_own(value):
    return _C.is_tensor(value) or any(c.__module__.startswith("snug.") for c in type(value).__mro__)


def _bytes_of(value):
    size = getattr(value, "nbytes", None)
    if size is None and hasattr(value, "estimated_size"):       # as polars says it
        size = value.estimated_size()
    return int(size) if isinstance(size, int) else 0


def numbers(array):
    """An array of objects as one of the numbers that they are; texts stay objects. What is neither is an error, as in TensorFlow."""
    import numpy as np
    kinds = {type(v) for v in array.flat}
    if not kinds or all(issubclass(k, (str, bytes)) for k in kinds):
        return array
    other = next((k for k in kinds if not issubclass(k, (_numbers.Real, np.bool_))), None)
    if other is not None:
        raise ValueError(f"Failed to convert a NumPy array to a Tensor (Unsupported object type {other.__name__}).")
    if all(issubclass(k, (bool, np.bool_)) for k in kinds):
        return array.astype(bool)
    return array.astype("int64" if all(issubclass(k, (_numbers.Integral, np.bool_)) for k in kinds) else "float64")


def bits(value):
    """An array or scalar of ml_dtypes' bfloat16 as its bits; None: of another type. Buffers have no format for either."""
    import numpy as np
    kind = getattr(value, "dtype", None)
    if not isinstance(kind, np.dtype) or kind.kind not in "Vf" or kind.names:
        return None
    if kind.name == "bfloat16":
        return np.asarray(value).view(np.uint16)
    if kind.type.__module__.partition(".")[0] != "ml_dtypes":
        return None
    from snug.errors import UnimplementedError
    raise UnimplementedError(None, None, f"Snug has no tensors of {kind.name}; cast the array to float32")


def of_bits(made):
    """An array of bfloat16 by its bits: of ml_dtypes' type, or of float32, which has all its numbers."""
    import numpy as np
    from snug._types import BY_NAME
    kind = BY_NAME["bfloat16"].as_numpy_dtype
    if kind is not np.float32:
        return made.view(kind)
    wide = np.empty(made.shape, np.uint32)
    np.left_shift(made, np.uint32(16), out=wide, dtype=np.uint32)
    return wide.view(np.float32)


# --- DLPack -----------------------------------------------------------------------------------------------
DLPACK_UINT, DLPACK_BFLOAT = 1, 4


class _Capsule:
    def __init__(self, capsule):
        self.capsule = capsule

    @default_only("stream copy", "__dlpack__")
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """The capsule, whatever version is asked for at most: those that know a later one read the first."""
        if dl_device not in (None, (1, 0)):
            raise BufferError(f"the capsule lies on the processor (1, 0), and not on {dl_device}")
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def by_dlpack(value):
    """(array, whether its numbers are bfloat16) of a capsule, or of an object that gives one."""
    import numpy as np
    if not hasattr(value, "__dlpack__"):
        value = _Capsule(value)
    try:
        return np.from_dlpack(value), False
    except (BufferError, TypeError, RuntimeError):
        capsule = value.__dlpack__() if tuple(value.__dlpack_device__())[0] == 1 else None
        if not _C.retype_dlpack(capsule, DLPACK_BFLOAT, DLPACK_UINT):
            raise
    return of_bits(np.from_dlpack(_Capsule(capsule))), True
