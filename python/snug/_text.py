"""How values are written, as TensorFlow writes them; and where a recorded operation stands in the user's files."""


def _numbers(array, write):
    text = write(array.item() if write is repr else array) if array.ndim == 0 else write(array)
    return "\n" + text if "\n" in text else text


def edges(tensor, n):
    """The first and last n along each axis and one between them, which stands for all that are not printed: an array. Nothing
    else is made of draws and fills."""
    import itertools
    import numpy as np
    from snug import _C
    shape = tuple(tensor.shape)
    kept = [range(extent) if extent <= 2 * n + 1 else [*range(n + 1), *range(extent - n, extent)] for extent in shape]
    runs = [(0, len(kept[-1]))] if shape[-1] <= 2 * n + 1 else [(0, n + 1), (shape[-1] - n, n)]
    made = bytearray()
    for place in itertools.product(*kept[:-1]):
        row = 0
        for i, extent in zip(place, shape):
            row = row * extent + i
        for first, count in runs:
            made += _C.read_part(tensor, row * shape[-1] + first, count)
    if tensor.dtype.name == "bfloat16":
        return (np.frombuffer(made, "<u2").astype("<u4") << 16).view("<f4").reshape([len(k) for k in kept])
    return np.frombuffer(made, tensor.dtype.as_numpy_dtype).reshape([len(k) for k in kept])


def _array(tensor, write):
    """The numbers as they are written; of many only those are made that are printed. bfloat16 without more digits than it has."""
    import math
    import numpy as np
    options = np.get_printoptions()
    if math.prod(tensor.shape) > max(options["threshold"], 1):
        shown = edges(tensor, options["edgeitems"])
        with np.printoptions(threshold=0):
            return _written(tensor, shown, write).replace(f"shape={shown.shape}", f"shape={tuple(tensor.shape)}")
    return _written(tensor, tensor.numpy(), write)


def _written(tensor, array, write):
    import numpy as np
    if tensor.dtype.name != "bfloat16":
        return _numbers(array, write)
    brief = lambda v: f"{float(v):g}"
    if not array.ndim:
        return brief(array)
    text = np.array2string(array, separator=", " if write is repr else " ", formatter={"float_kind": brief}, prefix="array(" if write is repr else "")
    text = f"array({text}, dtype=bfloat16)" if write is repr else text
    return "\n" + text if "\n" in text else text


def _of_trace(tensor):
    return tensor._is_traced


def _name(tensor):
    from snug import _function
    return _function.name_of(tensor)


def tensor_repr(tensor):
    if _of_trace(tensor):
        return f"<tf.Tensor '{_name(tensor)}:0' shape={tensor.shape} dtype={tensor.dtype.name}>"
    return f"<tf.Tensor: shape={tensor.shape}, dtype={tensor.dtype.name}, numpy={_array(tensor, repr)}>"


def tensor_str(tensor):
    if _of_trace(tensor):
        return f'Tensor("{_name(tensor)}:0", shape={tensor.shape}, dtype={tensor.dtype.name})'
    return f"tf.Tensor({_array(tensor, str)}, shape={tensor.shape}, dtype={tensor.dtype.name})"


def variable_repr(variable):
    head = f"<tf.Variable '{variable.name}' shape={variable.shape} dtype={variable.dtype.name}"
    from snug import _C
    if _C.is_tracing():
        return head + ">"
    return f"{head}, numpy={_array(variable, repr)}>"


class Reference:
    """What ref() gives: hashable, equal where it is the same object."""
    __slots__ = ("_wrapped", "__weakref__")

    def __init__(self, wrapped):
        self._wrapped = wrapped

    def deref(self):
        return self._wrapped

    def __eq__(self, other):
        return isinstance(other, Reference) and self._wrapped is other._wrapped

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return id(self._wrapped)

    def __repr__(self):
        return f"<Reference wrapping {self._wrapped!r}>"


def site(code, lasti):
    """'train.py:41' for an offset into a code object."""
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= lasti < end and number is not None:
            line = number
            break
    return f"{code.co_filename}:{line}"


def is_own(array, code, lasti, n_arguments):
    """Whether an array that only a call of so many arguments holds can be kept as it is: nobody else can reach it, and no
    other function stands between the caller and the call, which might have kept it."""
    import opcode
    import weakref
    import numpy
    if type(array) is not numpy.ndarray or array.base is not None or not array.flags.owndata:
        return False
    called = opcode.opname[code.co_code[lasti]] in ("CALL", "CALL_KW") and code.co_code[lasti + 1] == n_arguments
    return called and weakref.getweakrefcount(array) == 0
