"""Functions of a functional model in configurations, as Keras writes them: a class of keras.src.ops, its settings, its calls."""
import operator

from snug.keras import _symbolic
from snug.keras._names import snake
from snug.keras._symbolic import Operation

_MODULES = {
    "nn": "Relu Relu6 Sigmoid SparseSigmoid Softplus Softsign Silu LogSigmoid LeakyRelu HardSigmoid HardSilu Elu Selu Gelu Celu Glu Softmax"
          " LogSoftmax MaxPool AveragePool Conv DepthwiseConv SeparableConv ConvTranspose OneHot BinaryCrossentropy"
          " CategoricalCrossentropy SparseCategoricalCrossentropy MultiHot Moments BatchNorm Normalize DotProductAttention RmsNorm"
          " LayerNorm",
    "core": "Map Scan Scatter ScatterUpdate Slice SliceUpdate Switch WhileLoop StopGradient ForiLoop Unstack Cast Cond VectorizedMap",
    "math": "SegmentSum SegmentMax TopK InTopK Logsumexp ExtractSequences Rsqrt Erf Erfinv",
    "image": "Resize AffineTransform ExtractPatches MapCoordinates PadImages CropImages",
    "linalg": "Cholesky Det Eigh Inv Norm Qr Solve SolveTriangular Lstsq"}
# What a setting is called that may be given by its place.
_PLACES = {"reshape": ("newshape",), "transpose": ("axes",), "cast": ("dtype",), "repeat": ("repeats", "axis"), "tile": ("repeats",),
           "clip": ("x_min", "x_max"), "broadcast_to": ("shape",), "one_hot": ("num_classes", "axis"), "pad": ("pad_width",),
           "resize": ("size",)}
_PLACES.update({word: ("axis",) for word in "mean sum max min prod std var any all argmax argmin expand_dims squeeze concatenate stack softmax"
                " log_softmax logsumexp flip cumsum sort argsort take take_along_axis".split()})
_OPERATORS = {word: getattr(operator, name) for name, word in _symbolic._WORDS.items() if name not in ("and", "or", "getitem")}
_OPERATORS.update(add=operator.add, matmul=operator.matmul, mod=operator.mod, logical_and=operator.and_, logical_or=operator.or_,
                  get_item=_symbolic._getitem)
# Whose arguments are all operands, tensors or not.
_OPERANDS = set(_OPERATORS) | {"where", "maximum", "minimum"}


def serialize(operation):
    """The row of a functional model's configuration, without its calls."""
    module = next((m for m, names in _MODULES.items() if operation.class_name in names.split()), "numpy")
    settings = dict(operation.settings)
    if operation._nodes:
        settings.update(_split(operation, operation._nodes[0])[1])
    return {"module": f"keras.src.ops.{module}", "class_name": operation.class_name, "config": {"name": operation.name, **settings},
            "registered_name": operation.class_name}


def _split(operation, node):
    """Operands of a call, and its settings by name."""
    if operation.word in _OPERANDS:
        return list(node.args), dict(node.kwargs)
    operands = [a for a in node.args if _symbolic.is_symbolic(a)]
    rest = node.args[len(operands):]
    names = _PLACES.get(operation.word, ())
    if len(rest) > len(names) or not all(_symbolic.is_symbolic(a) for a in node.args[:len(operands)]):
        return list(node.args), dict(node.kwargs)
    return operands, {**dict(zip(names, rest)), **node.kwargs}


def operands(operation, node):
    return _split(operation, node)[0]


def place(value):
    """A slice, as a configuration holds it; None for anything else."""
    if isinstance(value, slice):
        return {"class_name": "__slice__", "config": {"start": value.start, "stop": value.stop, "step": value.step}}
    return {"class_name": "__ellipsis__", "config": {}} if value is Ellipsis else None


def look(value):
    if value["class_name"] == "__ellipsis__":
        return Ellipsis
    return slice(*(value["config"][k] for k in ("start", "stop", "step")))


def deserialize(row):
    """The function of a row, or None where it is no function's."""
    if not str(row.get("module") or "").startswith("keras.src.ops"):
        return None
    word, settings = snake(str(row["class_name"])), dict(row["config"])
    name = settings.pop("name", None)
    function = _OPERATORS.get(word)
    if function is None:
        from snug.keras import ops
        function = ops.named(word, image=".image" in row["module"])
        if function is None:
            raise ValueError(f"the configuration names a function keras.ops.{word}, which Snug does not have")
    if word == "get_item":
        function = lambda x, key: x[tuple(key) if isinstance(key, list) else key]
    if "newshape" in settings or "axes" in settings:
        settings = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    return Operation(function, word, settings, name)
