"""ONNX' operators in Snug's: THE TABLE maps an ONNX name to a function (g, a, *inputs) -> value or list of values. To extend it, add
a line to UNARY, BINARY or REDUCTIONS, or a function named as the operator with @onnx. `a` are the node's attributes; an input that a
graph needs as a number (axes, shapes) is read with numbers(). Unmapped: the row exists, this form of it does not."""
import array
import itertools
import math

LEAST = 700  # as many cases must be mapped: a table that lost its lines must not pass


class Unmapped(Exception):
    pass


TABLE = {}


def onnx(function):
    TABLE[function.__name__] = function
    return function


def apply(g, node, inputs, opset):
    if node.op not in TABLE:
        raise Unmapped(node.op)
    made = TABLE[node.op](g, Attributes(node.attributes, len(node.outputs), opset), *inputs)
    return made if isinstance(made, list) else [made]


class Attributes(dict):
    def __init__(self, values, n_out, opset):
        super().__init__(values)
        self.n_out, self.opset = n_out, opset

    def want(self, **plain):
        """These attributes have these values, or the case is not mapped."""
        for key, value in plain.items():
            if self.get(key, value) != value:
                raise Unmapped(key)


def numbers(value):
    """What an input or a result so far holds: ONNX computes shapes and axes as it runs, a graph of Snug is made for them."""
    if value is None:
        raise Unmapped("numbers of nothing")
    return value.tensor.data.tolist() if value.tensor is not None else value.graph.run([value])[0]


# --- what the functions share -------------------------------------------------------------------
def number(g, like, value):
    return g.op("fill", dtype=like.dtype, value=repr(float(value)).replace("inf", "1e400"))


def affine(g, x, scale=1.0, shift=0.0):
    return g.op("affine", x, scale=repr(float(scale)), shift=repr(float(shift)))


def cast(g, x, dtype):
    return x if x.dtype == dtype else g.op("cast", x, dtype=dtype)


def reshape(g, x, dims):
    return x if x.shape == list(dims) else g.op("reshape", x, dims=list(dims))


def transpose(g, x, perm):
    return x if list(perm) == sorted(perm) else g.op("transpose", x, perm=list(perm))


def positive(axis, rank):
    return axis + rank if axis < 0 else axis


def along(g, x, axis, rows):
    """rows(x) works on the last axis."""
    axis, perm = positive(axis, x.rank), list(range(x.rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    return transpose(g, rows(transpose(g, x, perm)), perm)


def images(g, x):
    """[N,C,H,W] as [N,H,W,C]; a single axis of steps becomes a width."""
    if x.rank == 3:
        x = reshape(g, x, x.shape[:2] + [1] + x.shape[2:])
    if x.rank != 4:
        raise Unmapped("volumes")
    return transpose(g, x, [0, 2, 3, 1])


def channels_first(g, y, rank):
    y = transpose(g, y, [0, 3, 1, 2])
    return reshape(g, y, y.shape[:2] + y.shape[3:]) if rank == 3 else y


def part(g, x, start, size, stride=None):
    return g.op("slice", x, sizes=list(size), strides=list(stride or [1] * x.rank), start=list(start))


# --- one input, two inputs ----------------------------------------------------------------------
UNARY = {"Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh", "Ceil": "ceil",
         "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor", "HardSwish": "hard_silu", "Identity": "identity",
         "IsNaN": "isnan", "Log": "log", "Neg": "neg", "Not": "logical_not", "Reciprocal": "reciprocal", "Relu": "relu", "Round": "round",
         "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Softplus": "softplus", "Sqrt": "sqrt", "Tan": "tan",
         "Tanh": "tanh"}
BINARY = {"Add": "add", "And": "logical_and", "Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Mul": "mul",
          "Or": "logical_or", "Sub": "sub", "Xor": "not_equal"}
SWAPPED = {"Less": "greater", "LessOrEqual": "greater_equal"}
MANY = {"Max": "maximum", "Min": "minimum", "Sum": "add"}
for name, row in UNARY.items():
    TABLE[name] = lambda g, a, x, row=row: g.op(row, x)
for name, row in BINARY.items():
    TABLE[name] = lambda g, a, x, y, row=row: g.op(row, x, y)
for name, row in SWAPPED.items():
    TABLE[name] = lambda g, a, x, y, row=row: g.op(row, y, x)


def many(g, row, values):
    total = values[0]
    for v in values[1:]:
        total = g.op(row, total, v)
    return g.op("identity", total) if len(values) == 1 else total


for name, row in MANY.items():
    TABLE[name] = lambda g, a, *values, row=row: many(g, row, values)


@onnx
def Mean(g, a, *values):
    return affine(g, many(g, "add", values), 1 / len(values))


@onnx
def Div(g, a, x, y):
    return g.op("div" if x.dtype[0] == "f" else "floor_div", x, y)


@onnx
def Mod(g, a, x, y):
    if not a.get("fmod", 0):
        return g.op("mod", x, y)
    if x.dtype[0] != "f":  # the sign of x: of magnitudes, then signed
        return g.op("mul", g.op("sign", x), g.op("mod", g.op("abs", x), g.op("abs", y)))
    return g.op("sub", x, g.op("mul", g.op("trunc", g.op("div", x, y)), y))


@onnx
def Pow(g, a, x, y):
    if x.dtype[0] == "f" or y.dtype[0] != "f":
        return g.op("pow", x, cast(g, y, x.dtype))
    return cast(g, g.op("pow", cast(g, x, y.dtype), y), x.dtype)


@onnx
def Where(g, a, test, x, y):
    return g.op("select", test, x, y)


@onnx
def IsInf(g, a, x):
    sides = [row for row, flag in ((1, "detect_positive"), (-1, "detect_negative")) if a.get(flag, 1)]
    found = g.op("isinf", x)
    if len(sides) == 2:
        return found
    zero = number(g, x, 0)
    return g.op("logical_and", found, g.op("greater", x, zero) if sides == [1] else g.op("greater", zero, x))


@onnx
def Cast(g, a, x):
    names = {1: "f32", 2: "u8", 3: "i8", 6: "i32", 7: "i64", 9: "bool", 11: "f64"}
    if a["to"] not in names:
        raise Unmapped("dtype")
    return cast(g, x, names[a["to"]])


@onnx
def CastLike(g, a, x, like):
    return cast(g, x, like.dtype)


@onnx
def Clip(g, a, x, low=None, high=None):
    bounds = {"i8": (-128, 127), "i32": (-2**31, 2**31 - 1)}.get(x.dtype, (-3e38, 3e38))
    low, high = (numbers(v)[0] if v is not None else bound for v, bound in zip((low, high), bounds))
    return g.op("clip", x, low=repr(low), high=repr(high))


@onnx
def Constant(g, a):
    from snug import Value
    if a.get("value") is None or a["value"].dtype is None:
        raise Unmapped("constant")
    return Value(g, tensor=a["value"])


# --- activations --------------------------------------------------------------------------------
@onnx
def Elu(g, a, x):
    return g.op("elu", x, value=a.get("alpha", 1.0))


@onnx
def Selu(g, a, x):
    return affine(g, g.op("elu", x, value=a.get("alpha", 1.67326319217681884765625)), a.get("gamma", 1.05070102214813232421875))


@onnx
def Celu(g, a, x):
    alpha = a.get("alpha", 1.0)
    return affine(g, g.op("elu", affine(g, x, 1 / alpha), value=1), alpha)


@onnx
def LeakyRelu(g, a, x):
    return g.op("leaky_relu", x, value=a.get("alpha", 0.01))


@onnx
def PRelu(g, a, x, slope):
    return g.op("sub", g.op("relu", x), g.op("mul", slope, g.op("relu", g.op("neg", x))))


@onnx
def HardSigmoid(g, a, x):
    return g.op("clip", affine(g, x, a.get("alpha", 0.2), a.get("beta", 0.5)), low=0, high=1)


@onnx
def ThresholdedRelu(g, a, x):
    return g.op("select", g.op("greater", x, number(g, x, a.get("alpha", 1.0))), x, number(g, x, 0))


@onnx
def Shrink(g, a, x):
    limit, bias = a.get("lambd", 0.5), a.get("bias", 0.0)
    above = g.op("select", g.op("greater", x, number(g, x, limit)), affine(g, x, 1, -bias), number(g, x, 0))
    return g.op("select", g.op("greater", number(g, x, -limit), x), affine(g, x, 1, bias), above)


@onnx
def Softsign(g, a, x):
    return g.op("div", x, affine(g, g.op("abs", x), 1, 1))


def rowwise(row):
    return lambda g, a, x: along(g, x, a.get("axis", -1 if a.opset >= 13 else 1), lambda v: g.op(row, v))


TABLE["Softmax"], TABLE["LogSoftmax"] = rowwise("softmax"), rowwise("log_softmax")


@onnx
def Hardmax(g, a, x):
    rows = lambda v: g.op("one_hot", g.op("argmax", v, axis=v.rank - 1, dtype="i32"), depth=v.shape[-1], dtype=v.dtype)
    return along(g, x, a.get("axis", -1), rows)


@onnx
def Dropout(g, a, x, ratio=None, training=None):
    if training is not None and numbers(training)[0] and (ratio is None or numbers(ratio)[0] != 0):
        raise Unmapped("random numbers of its own")
    y = g.op("identity", x)
    return [y, g.op("fill", dims=x.shape, dtype="bool", value=1)][:a.n_out] if a.n_out > 1 else y


# --- reductions ---------------------------------------------------------------------------------
REDUCTIONS = {  # before, the row, after
    "ReduceSum": (None, "sum", None), "ReduceProd": (None, "prod", None), "ReduceMax": (None, "max", None), "ReduceMin": (None, "min", None),
    "ReduceL1": ("abs", "sum", None), "ReduceL2": ("square", "sum", "sqrt"), "ReduceLogSum": (None, "sum", "log"),
    "ReduceLogSumExp": ("exp", "sum", "log"), "ReduceSumSquare": ("square", "sum", None), "ReduceMean": (None, "sum", None)}


def reduction(name):
    before, row, after = REDUCTIONS[name]

    def build(g, a, x, axes=None):
        which = a.get("axes", [] if axes is None else numbers(axes))
        if not which and a.get("noop_with_empty_axes", 0):
            return g.op("identity", x)
        which = sorted(positive(k, x.rank) for k in which)
        y = g.op(before, x) if before else x
        y = g.op(row, y, axes=which, keepdims=a.get("keepdims", 1))
        if name == "ReduceMean":
            y = affine(g, y, 1 / math.prod(x.shape[k] for k in which or range(x.rank)))
        return g.op(after, y) if after else y
    return build


for name in REDUCTIONS:
    TABLE[name] = reduction(name)


def place(row):
    def build(g, a, x):
        axis = positive(a.get("axis", 0), x.rank)
        if a.get("select_last_index", 0):  # the first from behind
            at = lambda here, other: [here if k == axis else other for k in range(x.rank)]
            back = part(g, x, at(x.shape[axis] - 1, 0), x.shape, at(-1, 1))
            y = g.op(row, back, axis=axis, dtype="i64")
            y = g.op("sub", number(g, y, x.shape[axis] - 1), y)
        else:
            y = g.op(row, x, axis=axis, dtype="i64")
        return reshape(g, y, x.shape[:axis] + [1] + x.shape[axis + 1:]) if a.get("keepdims", 1) else y
    return build


TABLE["ArgMax"], TABLE["ArgMin"] = place("argmax"), place("argmin")


@onnx
def CumSum(g, a, x, axis):
    return g.op("cumsum", x, axis=positive(numbers(axis)[0], x.rank), exclusive=a.get("exclusive", 0), reverse=a.get("reverse", 0))


@onnx
def TopK(g, a, x, k):
    axis = positive(a.get("axis", -1), x.rank)
    if axis != x.rank - 1:
        raise Unmapped("axis")
    return g.op("sort", x, n_out=2, descending=a.get("largest", 1), k=numbers(k)[0], dtype="i64")


# --- shapes -------------------------------------------------------------------------------------
@onnx
def Reshape(g, a, x, shape):
    dims = numbers(shape)
    if not a.get("allowzero", 0):
        dims = [x.shape[i] if d == 0 else d for i, d in enumerate(dims)]
    return g.op("reshape", x, dims=dims)


@onnx
def Flatten(g, a, x):
    axis = positive(a.get("axis", 1), x.rank)
    return g.op("reshape", x, dims=[math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])


@onnx
def Transpose(g, a, x):
    return g.op("transpose", x, perm=a.get("perm", list(range(x.rank))[::-1]))


@onnx
def Squeeze(g, a, x, axes=None):
    gone = [positive(k, x.rank) for k in a.get("axes") or numbers(axes)]
    return g.op("reshape", x, dims=[d for k, d in enumerate(x.shape) if k not in gone])


@onnx
def Unsqueeze(g, a, x, axes=None):
    dims, new = list(x.shape), a.get("axes") or numbers(axes)
    for k in sorted(positive(k, x.rank + len(new)) for k in new):
        dims.insert(k, 1)
    return g.op("reshape", x, dims=dims)


@onnx
def Expand(g, a, x, shape):
    dims = numbers(shape)
    rank = max(len(dims), x.rank)
    here, there = [1] * (rank - x.rank) + x.shape, [1] * (rank - len(dims)) + dims
    return g.op("broadcast_to", x, dims=[max(p, q) for p, q in zip(here, there)])


@onnx
def Tile(g, a, x, repeats):
    y = x
    for axis, n in enumerate(numbers(repeats)):
        y = g.op("concat", *[y] * n, axis=axis)
    return y


@onnx
def Concat(g, a, *values):
    return g.op("concat", *values, axis=positive(a["axis"], values[0].rank))


@onnx
def Split(g, a, x, split=None):
    axis = positive(a.get("axis", 0), x.rank)
    sizes = numbers(split) if split is not None else a.get("split") or [x.shape[axis] // a.n_out] * a.n_out
    starts = [0] + list(itertools.accumulate(sizes))
    put = lambda value, all: all[:axis] + [value] + all[axis + 1:]
    return [part(g, x, put(at, [0] * x.rank), put(n, x.shape)) for at, n in zip(starts, sizes)]


@onnx
def Slice(g, a, x, starts, ends, axes=None, steps=None):
    starts, ends = numbers(starts), numbers(ends)
    axes = [positive(k, x.rank) for k in numbers(axes)] if axes else range(len(starts))
    begin, size, stride = [0] * x.rank, list(x.shape), [1] * x.rank
    for k, lo, hi, step in zip(axes, starts, ends, numbers(steps) if steps else [1] * len(starts)):
        chosen = range(x.shape[k])[lo:hi:step]
        begin[k], size[k], stride[k] = (chosen[0] if len(chosen) else 0), len(chosen), step
    return part(g, x, begin, size, stride)


@onnx
def Pad(g, a, x, pads, value=None):
    pads, rank = numbers(pads), x.rank
    before, after = pads[:rank], pads[rank:]
    if a.get("mode", "constant") == "constant":
        return g.op("pad", x, before=before, after=after, value=repr(numbers(value)[0] if value else 0))
    for k in range(rank):
        n, at = x.shape[k], range(-before[k], x.shape[k] + after[k])
        if a["mode"] == "edge":
            places = [min(max(i, 0), n - 1) for i in at]
        else:
            places = [n - 1 - abs(n - 1 - abs(i)) for i in at]
        if before[k] or after[k]:
            x = g.op("concat", *[part(g, x, [p if j == k else 0 for j in range(rank)], [1 if j == k else x.shape[j] for j in range(rank)])
                                 for p in places], axis=k)
    return x


def in_range(g, indices, extent):
    """Negative ones count from the end."""
    end = number(g, indices, extent)
    return g.op("select", g.op("greater", number(g, indices, 0), indices), g.op("add", indices, end), indices)


@onnx
def Gather(g, a, x, indices):
    axis = positive(a.get("axis", 0), x.rank)
    return g.op("gather", x, in_range(g, indices, x.shape[axis]), axis=axis)


@onnx
def GatherElements(g, a, x, indices):
    axis, rank = positive(a.get("axis", 0), x.rank), x.rank
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    at = transpose(g, in_range(g, indices, x.shape[axis]), perm)
    y = g.op("gather_nd", transpose(g, x, perm), reshape(g, at, at.shape + [1]), batch=rank - 1)
    return transpose(g, y, perm)


@onnx
def GatherND(g, a, x, indices):
    return g.op("gather_nd", x, indices, batch=a.get("batch_dims", 0))


@onnx
def OneHot(g, a, indices, depth, values):
    depth, (off, on) = int(numbers(depth)[0]), numbers(values)
    dtype = values.dtype
    at = in_range(g, cast(g, indices, "i64"), depth)
    y = affine(g, g.op("one_hot", at, depth=depth, dtype="f32"), on - off, off)
    axis = positive(a.get("axis", -1), y.rank)
    perm = list(range(y.rank - 1))
    perm.insert(axis, y.rank - 1)
    return cast(g, transpose(g, y, perm), dtype)


@onnx
def Trilu(g, a, x, k=None):
    k = numbers(k)[0] if k else 0
    far = 2**31 - 1
    return g.op("band", x, low=k, high=far) if a.get("upper", 1) else g.op("band", x, low=-far, high=k)


@onnx
def DepthToSpace(g, a, x):
    n, c, h, w = x.shape
    s = a["blocksize"]
    if a.get("mode", "DCR") == "DCR":
        y = transpose(g, reshape(g, x, [n, s, s, c // s // s, h, w]), [0, 3, 4, 1, 5, 2])
    else:
        y = transpose(g, reshape(g, x, [n, c // s // s, s, s, h, w]), [0, 1, 4, 2, 5, 3])
    return reshape(g, y, [n, c // s // s, h * s, w * s])


@onnx
def SpaceToDepth(g, a, x):
    n, c, h, w = x.shape
    s = a["blocksize"]
    y = transpose(g, reshape(g, x, [n, c, h // s, s, w // s, s]), [0, 3, 5, 1, 2, 4])
    return reshape(g, y, [n, c * s * s, h // s, w // s])


@onnx
def ConstantOfShape(g, a, shape):
    like = a.get("value")
    return g.op("fill", dims=numbers(shape), dtype=like.dtype if like else "f32", value=like.data[0] if like else 0)


def fixed(g, numbers_, dtype="i64", shape=None):
    """A value known when the graph is made."""
    from snug import CODES, Value
    tensor = type("Fixed", (), {})()
    tensor.dtype, tensor.shape = dtype, [len(numbers_)] if shape is None else shape
    tensor.data = array.array(CODES[dtype], numbers_)
    return Value(g, tensor=tensor)


@onnx
def Shape(g, a, x):
    return fixed(g, x.shape[a.get("start", 0):a.get("end", x.rank)])


@onnx
def Size(g, a, x):
    return fixed(g, [math.prod(x.shape)], shape=[])


@onnx
def Range(g, a, start, limit, delta):
    first, step = numbers(start)[0], numbers(delta)[0]
    n = max(math.ceil((numbers(limit)[0] - first) / step), 0)
    return fixed(g, [first + i * step for i in range(n)], start.dtype)


@onnx
def EyeLike(g, a, x):
    names = {1: "f32", 6: "i32", 7: "i64", 11: "f64"}
    ones = g.op("fill", dims=x.shape, dtype=names[a["dtype"]] if "dtype" in a else x.dtype, value=1)
    return g.op("band", ones, low=a.get("k", 0), high=a.get("k", 0))


@onnx
def Compress(g, a, x, condition):
    x = x if "axis" in a else reshape(g, x, [math.prod(x.shape)])
    return g.op("gather", x, fixed(g, [i for i, c in enumerate(numbers(condition)) if c]), axis=positive(a.get("axis", 0), x.rank))


def replace(g, x, indices, updates, batch):
    """x with the updates in place of what is there: no position comes twice."""
    put = lambda v: g.op("scatter_nd", indices, v, dims=x.shape, batch=batch)
    there = put(g.op("fill", dims=updates.shape, dtype=x.dtype, value=1))
    return g.op("select", g.op("greater", there, number(g, x, 0)), put(updates), x)


@onnx
def ScatterND(g, a, x, indices, updates):
    way = a.get("reduction", "none")
    if way == "add":
        return g.op("add", x, g.op("scatter_nd", indices, updates, dims=x.shape, batch=0))
    a.want(reduction="none")
    return replace(g, x, indices, updates, 0)


@onnx
def ScatterElements(g, a, x, indices, updates):
    """A position in each axis, as ONNX defines it, for scatter_nd."""
    axis, shape = positive(a.get("axis", 0), x.rank), indices.shape
    at = numbers(indices)
    rows = [list(p) for p in itertools.product(*map(range, shape))]
    for row, i in zip(rows, at):
        row[axis] = positive(i, x.shape[axis])
    places = fixed(g, [k for row in rows for k in row], shape=[len(rows), x.rank])
    flat = reshape(g, updates, [len(rows)])
    if a.get("reduction", "none") == "add":
        return g.op("add", x, g.op("scatter_nd", places, flat, dims=x.shape, batch=0))
    a.want(reduction="none")
    return replace(g, x, places, flat, 0)


TABLE["Scatter"] = ScatterElements


# --- matrices, convolution, pooling -------------------------------------------------------------
@onnx
def MatMul(g, a, x, y):
    return g.op("matmul", x, y)


@onnx
def Gemm(g, a, x, y, c=None):
    out = g.op("matmul", x, y, trans_a=a.get("transA", 0), trans_b=a.get("transB", 0))
    out = affine(g, out, a.get("alpha", 1.0))
    return out if c is None else g.op("add", out, affine(g, c, a.get("beta", 1.0)))


@onnx
def Einsum(g, a, *values):
    forms = {"bij, bjk -> bik": lambda x, y: g.op("matmul", x, y), "ij->i": lambda x: g.op("sum", x, axes=[1]),
             "ij->ji": lambda x: g.op("transpose", x, perm=[1, 0]), "i,i": lambda x, y: g.op("sum", g.op("mul", x, y))}
    if a["equation"] not in forms:
        raise Unmapped("equation")
    return forms[a["equation"]](*values)


def windows(a, x, kernel, dilation=(1, 1)):
    """Kernel, stride and pad (top, bottom, left, right) of two axes."""
    a.want(ceil_mode=0)
    two = lambda v, fill: [fill] * (2 - len(v)) + list(v)
    kernel, stride = two(kernel, 1), two(a.get("strides", [1] * len(kernel)), 1)
    pads, mode = a.get("pads"), a.get("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        pad = []
        for n, k, s, d in zip(two(x.shape[2:], 1), kernel, stride, dilation):
            total = max((math.ceil(n / s) - 1) * s + (k - 1) * d + 1 - n, 0)
            small, large = total // 2, total - total // 2
            pad += [small, large] if mode == "SAME_UPPER" else [large, small]
        return kernel, stride, pad
    pads = pads or [0] * (2 * (x.rank - 2))
    half = len(pads) // 2
    before, after = two(pads[:half], 0), two(pads[half:], 0)
    return kernel, stride, [before[0], after[0], before[1], after[1]]


@onnx
def Conv(g, a, x, w, bias=None):
    dilation = [1] * (4 - x.rank) + a.get("dilations", [1] * (x.rank - 2))
    kernel, stride, pad = windows(a, x, w.shape[2:], dilation)
    kernels = transpose(g, reshape(g, w, w.shape[:2] + kernel), [2, 3, 1, 0])
    ins = [images(g, x), kernels] + ([bias] if bias else [])
    y = g.op("conv2d", *ins, stride=stride, pad=pad, dilation=dilation, groups=a.get("group", 1))
    return channels_first(g, y, x.rank)


@onnx
def ConvTranspose(g, a, x, w, bias=None):
    a.want(group=1)
    if x.rank > 4:
        raise Unmapped("volumes")
    two = lambda v, fill: [fill] * (2 - len(v)) + list(v)
    dilation = two(a.get("dilations", []), 1)
    kernel, stride, pad = windows(a, x, w.shape[2:], dilation)
    extra, mode = two(a.get("output_padding", []), 0), a.get("auto_pad", "NOTSET")
    full = [s * (n - 1) + d * (k - 1) + 1 + e for n, s, d, k, e in zip(two(x.shape[2:], 1), stride, dilation, kernel, extra)]
    wanted = a.get("output_shape") or ([n * s for n, s in zip(x.shape[2:], stride)] if mode[:4] == "SAME" else None)
    if wanted:  # the padding that gives it; the odd one goes behind, as SAME_UPPER has it
        total = [max(f - n, 0) for f, n in zip(full, two(wanted, 1))]
        pad = [p for t in total for p in ((t // 2, t - t // 2) if mode == "SAME_UPPER" else (t - t // 2, t // 2))]
    size = two(wanted, 1) if wanted else [f - p - q for f, p, q in zip(full, pad[::2], pad[1::2])]
    kernels = transpose(g, reshape(g, w, w.shape[:2] + kernel), [2, 3, 1, 0])
    y = g.op("conv2d_dx", images(g, x), kernels, stride=stride, pad=pad, dilation=dilation, input=size)
    y = channels_first(g, y, x.rank)
    return y if bias is None else g.op("add", y, reshape(g, bias, bias.shape + [1] * (x.rank - 2)))


@onnx
def MaxPool(g, a, x):
    a.want(dilations=[1] * (x.rank - 2))
    if a.n_out > 1:
        raise Unmapped("positions")
    kernel, stride, pad = windows(a, x, a["kernel_shape"])
    pixels = images(g, x if x.dtype[0] == "f" else cast(g, x, "f32"))
    return cast(g, channels_first(g, g.op("maxpool", pixels, kernel=kernel, stride=stride, pad=pad), x.rank), x.dtype)


@onnx
def AveragePool(g, a, x):
    kernel, stride, pad = windows(a, x, a["kernel_shape"])
    y = images(g, x)
    if a.get("count_include_pad", 0):
        y = g.op("pad", y, before=[0, pad[0], pad[2], 0], after=[0, pad[1], pad[3], 0], value=0)
        pad = [0] * 4
    return channels_first(g, g.op("avgpool", y, kernel=kernel, stride=stride, pad=pad), x.rank)


@onnx
def GlobalAveragePool(g, a, x):
    return TABLE["ReduceMean"](g, Attributes({"axes": list(range(2, x.rank))}, 1, a.opset), x)


@onnx
def GlobalMaxPool(g, a, x):
    return g.op("max", x, axes=list(range(2, x.rank)), keepdims=1)


# --- normalisation ------------------------------------------------------------------------------
@onnx
def BatchNormalization(g, a, x, scale, bias, mean, variance):
    a.want(training_mode=0)
    perm = [0] + list(range(2, x.rank)) + [1]
    back = [0, x.rank - 1] + list(range(1, x.rank - 1))
    y = g.op("normalise", transpose(g, x, perm), mean, variance, scale, bias, epsilon=a.get("epsilon", 1e-5))
    return transpose(g, y, back)


@onnx
def LayerNormalization(g, a, x, scale, bias):
    axis = positive(a.get("axis", -1), x.rank)
    rows, width = math.prod(x.shape[:axis]), math.prod(x.shape[axis:])
    y, mean, rest = g.op("layernorm", reshape(g, x, [rows, width]), reshape(g, scale, [width]), reshape(g, bias, [width]), n_out=3,
                         epsilon=a.get("epsilon", 1e-5))
    narrow = x.shape[:axis] + [1] * (x.rank - axis)
    return [reshape(g, y, x.shape), reshape(g, mean, narrow), reshape(g, rest, narrow)]


@onnx
def InstanceNormalization(g, a, x, scale, bias):
    n, c, width = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    one, zero = (g.op("fill", dims=[width], dtype=x.dtype, value=v) for v in (1, 0))
    y = reshape(g, g.op("layernorm", reshape(g, x, [n * c, width]), one, zero, epsilon=a.get("epsilon", 1e-5)), x.shape)
    shape = [c] + [1] * (x.rank - 2)
    return g.op("add", g.op("mul", y, reshape(g, scale, shape)), reshape(g, bias, shape))


@onnx
def MeanVarianceNormalization(g, a, x):
    axes = a.get("axes", [0, 2, 3])
    mean = lambda v: affine(g, g.op("sum", v, axes=axes, keepdims=1), 1 / math.prod(x.shape[k] for k in axes))
    off = g.op("sub", x, mean(x))
    return g.op("div", off, affine(g, g.op("sqrt", mean(g.op("square", off))), 1, 1e-9))


# --- pictures -----------------------------------------------------------------------------------
def resized(g, x, size, method):
    return channels_first(g, g.op("resize", images(g, x), size=size, method=method), 4)


@onnx
def Resize(g, a, x, roi=None, scales=None, sizes=None):
    """Snug's pixels lie half a pixel off the edge; what starts at the edge is the same only where a pixel becomes a block."""
    if x.rank != 4:
        raise Unmapped("rank")
    factors = numbers(scales) if scales is not None and numbers(scales) else [p / q for p, q in zip(numbers(sizes), x.shape)]
    size = [math.floor(n * f) for n, f in zip(x.shape[2:], factors[2:])]
    mode, where, cubic = a.get("mode", "nearest"), a.get("coordinate_transformation_mode", "half_pixel"), a.get("cubic_coeff_a", -0.75)
    if any(n * f != s for n, f, s in zip(x.shape[2:], factors[2:], size)):
        raise Unmapped("a scale that is not the ratio of the sizes")
    if mode == "nearest" and all(f == int(f) for f in factors):
        a.want(nearest_mode={"asymmetric": "floor"}.get(where, "round_prefer_floor"))
        return resized(g, x, size, 0)
    if mode == "linear" and where == "half_pixel":
        return resized(g, x, size, 1)
    if mode == "cubic" and where == "half_pixel" and cubic == -0.5 and a.get("exclude_outside", 0):
        return resized(g, x, size, 2)
    raise Unmapped("form")


@onnx
def Upsample(g, a, x, scales):
    return resized(g, x, [int(n * f) for n, f in zip(x.shape[2:], numbers(scales)[2:])], 0)


# --- losses -------------------------------------------------------------------------------------
def weighted(g, a, terms, labels, weight, n_classes):
    """The mean of ONNX is over the weights of what counts."""
    ignored, reduction = a.get("ignore_index"), a.get("reduction", "mean")
    like = terms
    factor = number(g, like, 1) if weight is None else None
    if weight is not None:
        safe = g.op("clip", labels, low=0, high=n_classes - 1)
        factor = g.op("gather", weight, safe, axis=0)
    if ignored is not None:
        factor = g.op("select", g.op("equal", labels, number(g, labels, ignored)), number(g, like, 0), factor)
    terms = g.op("mul", terms, factor)
    if reduction == "none":
        return terms
    total = g.op("sum", terms)
    if reduction == "sum":
        return total
    return g.op("div", total, g.op("sum", g.op("broadcast_to", factor, dims=terms.shape)))


def classes_last(g, x):
    return transpose(g, x, [0] + list(range(2, x.rank)) + [1])


@onnx
def SoftmaxCrossEntropyLoss(g, a, x, labels, weight=None):
    rows = classes_last(g, x)
    terms = g.op("sparse_xent", rows, labels, skip=1)
    loss = weighted(g, a, terms, labels, weight, x.shape[1])
    if a.n_out == 1:
        return loss
    back = [0, x.rank - 1] + list(range(1, x.rank - 1))
    return [loss, transpose(g, g.op("log_softmax", rows), back)]


@onnx
def NegativeLogLikelihoodLoss(g, a, x, labels, weight=None):
    rows = classes_last(g, x)
    safe = g.op("clip", labels, low=0, high=x.shape[1] - 1)
    picked = g.op("gather_nd", rows, reshape(g, safe, safe.shape + [1]), batch=x.rank - 1)
    return weighted(g, a, g.op("neg", picked), labels, weight, x.shape[1])


# --- recurrent networks -------------------------------------------------------------------------
def steps(g, a, x, w, r, bias, order, n_gates):
    """x W + b of all steps [B,T,GH], U [H,GH], the hidden size; gates in Snug's order."""
    a.want(direction="forward", clip=None, activations=None)
    if w.shape[0] != 1:
        raise Unmapped("directions")
    hidden = r.shape[2]
    batch_first = a.get("layout", 0)

    def gates(v, last):
        rows = reshape(g, v, [n_gates, hidden] + ([last] if last else []))
        zeros = [0] * rows.rank
        return [part(g, rows, [k] + zeros[1:], [1] + rows.shape[1:]) for k in order]

    def matrix(v):
        width = v.shape[2]
        rows = g.op("concat", *gates(v, width), axis=0)
        return transpose(g, reshape(g, rows, [n_gates * hidden, width]), [1, 0])

    def vector(v):
        return reshape(g, g.op("concat", *gates(v, 0), axis=0), [n_gates * hidden])

    seq = x if batch_first else transpose(g, x, [1, 0, 2])
    y = g.op("matmul", seq, matrix(w))
    halves = None
    if bias is not None:
        wide = reshape(g, bias, [2, n_gates * hidden])
        halves = [vector(part(g, wide, [k, 0], [1, n_gates * hidden])) for k in (0, 1)]
    return y, matrix(r), hidden, halves


def states(g, a, ys, last):
    """All states and the last, with ONNX' axis of directions."""
    batch_first = a.get("layout", 0)
    n, t, h = ys.shape
    every = reshape(g, ys, [n, t, 1, h]) if batch_first else reshape(g, transpose(g, ys, [1, 0, 2]), [t, 1, n, h])
    return [every] + [reshape(g, v, [n, 1, h] if batch_first else [1, n, h]) for v in last]


def zero_state(g, y, hidden):
    return g.op("fill", dims=[y.shape[0], hidden], dtype=y.dtype, value=0)


@onnx
def RNN(g, a, x, w, r, bias=None, lengths=None, h0=None):
    if lengths is not None or h0 is not None:
        raise Unmapped("lengths")
    y, u, hidden, b = steps(g, a, x, w, r, bias, [0], 1)
    y = g.op("add", y, g.op("add", *b)) if b else y
    ys, last = g.op("simple_rnn", y, u, zero_state(g, y, hidden), n_out=2, act="tanh")
    return states(g, a, ys, [last])


@onnx
def GRU(g, a, x, w, r, bias=None, lengths=None, h0=None):
    a.want(linear_before_reset=0)
    if lengths is not None or h0 is not None:
        raise Unmapped("lengths")
    y, u, hidden, b = steps(g, a, x, w, r, bias, [0, 1, 2], 3)
    y = g.op("add", y, g.op("add", *b)) if b else y
    gates, ys, last = g.op("gru", y, u, zero_state(g, y, hidden), n_out=3, act="tanh", gate_act="sigmoid")
    return states(g, a, ys, [last])


@onnx
def LSTM(g, a, x, w, r, bias=None, lengths=None, h0=None, c0=None, peepholes=None):
    if lengths is not None or h0 is not None or c0 is not None or peepholes is not None:
        raise Unmapped("lengths")
    y, u, hidden, b = steps(g, a, x, w, r, bias, [0, 2, 3, 1], 4)  # ONNX: i o f c; Snug: i f g o
    y = g.op("add", y, g.op("add", *b)) if b else y
    zero = zero_state(g, y, hidden)
    gates, ys, last, cells = g.op("lstm", y, u, zero, zero, n_out=4, act="tanh", gate_act="sigmoid")
    both = [part(g, last, [0, at], [y.shape[0], hidden]) for at in (0, hidden)]  # h, c
    return states(g, a, ys, both)
