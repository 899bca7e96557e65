"""Symbolic tensors and the graph of calls between them: what functional models are made of."""
import math
from collections.abc import Mapping

from snug import _C, _nest, errors
from snug._given import default_only
from snug._types import MakesVariable, Peek, TensorShape, as_dtype
from snug.keras._names import auto_name, snake


class KerasTensor:
    """A tensor of which only shape and dtype are known; `_keras_history` says which call makes it."""
    __array_priority__ = 200

    @default_only("sparse ragged", "KerasTensor")
    def __init__(self, shape, dtype="float32", sparse=False, ragged=False, record_history=True, name=None):
        self._shape = tuple(shape)
        self._dtype = as_dtype(dtype)
        self.name = name or auto_name("keras_tensor")
        self._keras_history = None
        self._keras_mask = None
        self.sparse = self.ragged = False

    @property
    def shape(self):
        return self._shape

    @property
    def dtype(self):
        return self._dtype.name

    @property
    def ndim(self):
        return len(self._shape)

    @property
    def node(self):
        return self._keras_history[0] if self._keras_history else None

    def get_shape(self):
        return TensorShape(self._shape)

    def __repr__(self):
        return f"<KerasTensor shape={self._shape}, dtype={self.dtype}, sparse={self.sparse}, ragged={self.ragged}, name={self.name}>"

    def __iter__(self):
        raise NotImplementedError("Iterating over a symbolic KerasTensor is not supported.")

    def __bool__(self):
        raise TypeError("A symbolic KerasTensor cannot be used as a boolean.")

    def __array__(self, dtype=None):
        raise ValueError(f"A KerasTensor is symbolic: it's a placeholder for a shape an a dtype. It doesn't have any actual"
                         f" numerical value. You cannot convert it to a NumPy array: {self!r}")

    def numpy(self):
        return self.__array__()

    def __getitem__(self, key):
        return call(_getitem, self, key)


_nest.KNOWN[KerasTensor] = False


def _getitem(x, key):
    return x[key]


# Keras' words for Python's operators.
_WORDS = {"sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide", "pow": "power", "lt": "less",
          "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal", "and": "logical_and",
          "or": "logical_or", "xor": "logical_xor", "neg": "negative", "abs": "absolute", "invert": "logical_not", "getitem": "get_item"}


def _need_promotion(x, y):
    """Whether operands are of two types, which Keras' operators promote and TensorFlow's refuse."""
    if _C.is_tensor(x) and _C.is_tensor(y):
        return as_dtype(x.dtype) is not as_dtype(y.dtype)
    tensor, other = (x, y) if _C.is_tensor(x) else (y, x)
    return type(other) is float and _C.is_tensor(tensor) and not as_dtype(tensor.dtype).is_floating


def _promoting(function):
    """Python's operator on operands that may be of two types."""
    word = _WORDS.get(function.__name__.strip("_"), function.__name__)

    def run(x, y):
        if not _need_promotion(x, y):
            return function(x, y)
        from snug.keras import ops
        return getattr(ops, word)(x, y)
    run.__name__ = function.__name__
    return run


def _operators():
    import operator
    names = "add sub mul truediv floordiv mod pow matmul lt le gt ge eq ne and_ or_ xor".split()
    for word in names:
        function = _promoting(getattr(operator, word))
        stem = word.rstrip("_")

        def forward(self, other, function=function):
            return call(function, self, other)

        def backward(self, other, function=function):
            return call(function, other, self)
        setattr(KerasTensor, f"__{stem}__", forward)
        if word not in ("lt", "le", "gt", "ge", "eq", "ne"):
            setattr(KerasTensor, f"__r{stem}__", backward)
    for word in ("neg", "abs", "invert"):
        def one(self, function=getattr(operator, word)):
            return call(function, self)
        setattr(KerasTensor, f"__{word}__", one)
    KerasTensor.__hash__ = object.__hash__


_operators()


class Node:
    """One call: what was called, with which arguments, and what it gives."""

    def __init__(self, operation, args, kwargs, outputs):
        self.operation, self.args, self.kwargs = operation, args, kwargs
        self.inputs = [t for t in _nest.flatten([list(args), kwargs]) if isinstance(t, KerasTensor)]
        self.outputs = outputs
        for i, t in enumerate(_nest.flatten(outputs)):
            if isinstance(t, KerasTensor):
                t._keras_history = (self, i)


class Operation:
    """A function in a functional model, under the name of Keras' class for it; settings: what it takes besides tensors."""
    layers = ()
    built = seems_built = trainable = True
    weights = ()

    def __init__(self, function, word=None, settings=None, name=None):
        word = word or getattr(function, "__name__", "operation").strip("_")
        self.function, self.word, self.settings = function, _WORDS.get(word, word), settings or {}
        self.name = name or auto_name(self.word)
        self._nodes = []

    @property
    def class_name(self):
        return _CLASSES.get(self.word) or "".join(part.capitalize() for part in self.word.split("_"))

    @property
    def output_shape(self):
        return _map(lambda t: tuple(t.shape), self._nodes[0].outputs)

    def __call__(self, *args, **kwargs):
        if not is_symbolic(list(args), kwargs):
            return self.function(*args, **self.settings, **kwargs)
        outputs = infer(self.function, args, {**self.settings, **kwargs})
        self._nodes.append(Node(self, args, kwargs, outputs))
        return outputs

    def __repr__(self):
        return f"<Operation name={self.name}>"


# Keras' classes that are not called as their functions in capitals.
_CLASSES = {"batch_normalization": "BatchNorm", "layer_normalization": "LayerNorm", "rms_normalization": "RMSNorm", "ctc_loss": "CTCLoss",
            "ctc_decode": "CTCDecode", "psnr": "PSNR", "svd": "SVD", "fft": "FFT", "fft2": "FFT2", "ifft2": "IFFT2", "rfft": "RFFT",
            "irfft": "IRFFT", "stft": "STFT", "istft": "ISTFT", "hsv_to_rgb": "HSVToRGB", "rgb_to_hsv": "RGBToHSV",
            "rgb_to_grayscale": "RGBToGrayscale"}


def word_of(class_name):
    """The function of a class of keras.src.ops."""
    return next((word for word, name in _CLASSES.items() if name == class_name), None) or snake(class_name)


def is_symbolic(*structures):
    for s in structures:
        if isinstance(s, KerasTensor) or _nest.is_nested(s) and is_symbolic(*(s.values() if isinstance(s, Mapping) else s)):
            return True
    return False


def call(function, *args, word=None, **kwargs):
    """function(*args) as a node of the graph."""
    return Operation(function, word)(*args, **kwargs)


# Stand-ins for open extents: what differs between the two runs is open.
_FILLS = (7, 11)
_MULTIPLES = (20160, 40320)
STANDING_IN = [False]           # whether such a run is under way: its values are nobody's


def _run(function, args, kwargs, fill, may_compute=True):
    def stand_in(value):
        if not isinstance(value, KerasTensor):
            return value
        shape = [fill if d is None else d for d in value.shape]
        if value._dtype.name == "string":
            from snug._strings import StringTensor
            return StringTensor([b""] * math.prod(shape), shape)
        t = _C.full(shape, 0.0 if value._dtype.is_floating else 0, value._dtype)
        if value._keras_mask is not None:
            t._keras_mask = _C.full([fill if d is None else d for d in value._keras_mask.shape], 1, as_dtype("bool"))
        return t
    def spec(t):
        return (tuple(t.shape), t.dtype) if _C.is_tensor(t) else t
    from snug.keras import metrics
    steps = metrics._in_step
    trace, before, steps[1] = _C.Trace(), (steps[1], STANDING_IN[0]), True        # a stand-in's extents are nobody's
    STANDING_IN[0] = True
    trace.begin([])
    try:
        result = function(*_map(stand_in, args), **_map(stand_in, kwargs))
        return _map(spec, result)
    except (Peek, MakesVariable):
        if not may_compute:
            raise
        trace.drop()  # it looks at values, or makes variables: once for real, on zeros
        return _map(spec, function(*_map(stand_in, args), **_map(stand_in, kwargs)))
    finally:
        steps[1], STANDING_IN[0] = before
        trace.drop()


def _map(function, structure):
    return _nest.map_structure(function, structure) if _nest.is_nested(structure) else function(structure)


def _flat_specs(structure, out):
    if isinstance(structure, tuple) and len(structure) == 2 and isinstance(structure[0], tuple) and hasattr(structure[1], "_code"):
        out.append(structure)
        return lambda it: next(it)
    if isinstance(structure, dict):
        made = {k: _flat_specs(v, out) for k, v in structure.items()}
        return lambda it: {k: f(it) for k, f in made.items()}
    if isinstance(structure, (list, tuple)):
        made = [_flat_specs(v, out) for v in structure]
        kind = type(structure)
        return lambda it: kind([f(it) for f in made])
    return lambda it: structure


def infer(function, args, kwargs):
    """What function would give, as KerasTensors: it runs twice on stand-ins, recorded and never computed."""
    try:
        first, second = (_run(function, args, kwargs, fill) for fill in _FILLS)
    except (ValueError, errors.InvalidArgumentError):       # a reshape may want a multiple of something
        try:
            first, second = (_run(function, args, kwargs, fill, False) for fill in _MULTIPLES)
        except (Exception, Peek, MakesVariable):
            first = None
        if first is None:
            raise
    specs, others = [], []
    build = _flat_specs(first, specs)
    _flat_specs(second, others)
    made = []
    for (shape, dtype), (other, _) in zip(specs, others):
        made.append(KerasTensor([a if a == b else None for a, b in zip(shape, other)], dtype))
    return build(iter(made))
