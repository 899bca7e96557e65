"""What is brought as data, as arrays: by DLPack, the buffer protocol or __array__, so by position and never by label. Tensors, NumPy's arrays
and memmaps are taken as they are; NumPy asks the budget for what it copies, and others are asked for."""
import numbers as _numbers

from snug import _C


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
            return np.from_dlpack(value)
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
