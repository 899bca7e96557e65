"""tf.raw_ops: operations under their own names, called by keyword. Each is a function of tf; some arguments are called otherwise."""
from snug._lazy import tf

_SAME = """Abs:abs Acos:acos Add:add AddV2:add Asin:asin Atan:atan Atan2:atan2 BiasAdd:nn.bias_add
BroadcastTo:broadcast_to Ceil:math.ceil Cos:cos Cosh:cosh Cumprod:math.cumprod Cumsum:cumsum Digamma:math.digamma
DivNoNan:math.divide_no_nan Elu:nn.elu Equal:equal Erf:math.erf Erfc:math.erfc Exp:exp ExpandDims:expand_dims Expm1:math.expm1
Fill:fill Floor:floor FloorDiv:math.floordiv FloorMod:math.floormod GatherNd:gather_nd GatherV2:gather Greater:greater GreaterEqual:greater_equal
Identity:identity IsFinite:math.is_finite IsInf:math.is_inf IsNan:math.is_nan L2Loss:nn.l2_loss LeakyRelu:nn.leaky_relu Less:less LessEqual:less_equal
Lgamma:math.lgamma Log:math.log Log1p:math.log1p LogSoftmax:nn.log_softmax LogicalAnd:logical_and LogicalNot:logical_not LogicalOr:logical_or
MatMul:matmul MaxPool:nn.max_pool Maximum:maximum Minimum:minimum Mul:multiply Neg:negative NotEqual:not_equal OneHot:one_hot Pack:stack
Pow:pow Range:range Rank:rank RealDiv:divide Reciprocal:math.reciprocal Relu:nn.relu Relu6:nn.relu6 Reshape:reshape
Rint:math.rint Round:round Rsqrt:math.rsqrt ScatterNd:scatter_nd SegmentMax:math.segment_max SegmentMean:math.segment_mean
SegmentMin:math.segment_min SegmentProd:math.segment_prod SegmentSum:math.segment_sum Selu:nn.selu Shape:shape Sigmoid:sigmoid Sign:sign Sin:sin Sinh:sinh Size:size
Softmax:nn.softmax Softplus:nn.softplus Softsign:nn.softsign Sqrt:sqrt Square:square SquaredDifference:math.squared_difference
Squeeze:squeeze Sub:subtract Tan:tan Tanh:tanh TensorScatterAdd:tensor_scatter_nd_add TensorScatterUpdate:tensor_scatter_nd_update Tile:tile
TopKV2:math.top_k Where:where Xlogy:math.xlogy"""
_REDUCES = {"input": "input_tensor", "keep_dims": "keepdims"}
_OTHERWISE = {"All": ("reduce_all", _REDUCES), "Any": ("reduce_any", _REDUCES), "Max": ("reduce_max", _REDUCES), "Mean": ("reduce_mean", _REDUCES),
              "Min": ("reduce_min", _REDUCES), "Prod": ("reduce_prod", _REDUCES), "Sum": ("reduce_sum", _REDUCES),
              "ArgMax": ("argmax", {"dimension": "axis"}), "ArgMin": ("argmin", {"dimension": "axis"}), "AvgPool": ("nn.avg_pool", {"value": "input"}),
              "BatchMatMulV2": ("matmul", {"x": "a", "y": "b", "adj_x": "adjoint_a", "adj_y": "adjoint_b"}), "Cast": ("cast", {"DstT": "dtype"}),
              "ConcatV2": ("concat", {}), "Conv2D": ("nn.conv2d", {"filter": "filters"}), "Einsum": ("einsum", {"inputs": "*"}),
              "OnesLike": ("ones_like", {"x": "input"}), "ZerosLike": ("zeros_like", {"x": "input"}),
              "SelectV2": ("where", {"t": "x", "e": "y"}), "Split": ("split", {"num_split": "num_or_size_splits"}), "Transpose": ("transpose", {"x": "a"}),
              "AddN": ("add_n", {}), "Pad": ("pad", {"input": "tensor"}), "PadV2": ("pad", {"input": "tensor"}), "Unpack": ("unstack", {}),
              "ReverseV2": ("reverse", {}), "Slice": ("slice", {"input": "input_"}), "Cholesky": ("linalg.cholesky", {})}
_FOUND = {**{word.partition(":")[0]: (word.partition(":")[2], {}) for word in _SAME.split()}, **_OTHERWISE}


def _div(x, y, name=None):
    """Of whole numbers the quotient towards zero."""
    x = tf.convert_to_tensor(x)
    return (tf.truncatediv if x.dtype.is_integer else tf.divide)(x, y)


def _select(condition, x=None, y=None, t=None, e=None, name=None):
    """A vector of conditions chooses rows."""
    x, y, condition = tf.convert_to_tensor(t if x is None else x), e if y is None else y, tf.convert_to_tensor(condition)
    deeper = len(x.shape) - 1 if len(condition.shape) == 1 else 0
    return tf.where(tf.reshape(condition, list(condition.shape) + [1] * deeper), x, y)


_OWN = {"Div": _div, "Select": _select}
NAMES = {*_FOUND, *_OWN}


def function(name):
    """The operation of this name; None where Snug has none."""
    if name not in _FOUND:
        return _OWN.get(name)
    path, called = _FOUND[name]
    found = tf
    for word in path.split("."):
        found = getattr(found, word)

    def call(**kwargs):
        several = [v for key in list(kwargs) if called.get(key) == "*" for v in kwargs.pop(key)]
        first = [kwargs.pop("equation")] if several else []
        return found(*first, *several, **{called.get(key, key): value for key, value in kwargs.items() if key not in ("T", "Tidx", "name")})
    call.__name__ = name
    return call
