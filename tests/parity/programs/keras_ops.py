"""keras.ops: the functions under Keras 3's names."""
import numpy as np
import keras
from keras import ops
from parity import check

x = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]], "float32")
for name in ("abs", "exp", "sqrt", "square", "sum", "mean", "max", "min", "std", "var", "prod", "sign", "tanh", "sigmoid", "relu",
             "softmax", "log_softmax", "gelu", "silu", "elu", "softplus", "floor", "ceil", "round", "transpose", "argmax", "argmin",
             "cumsum", "sort", "argsort", "ravel", "zeros_like", "ones_like", "isnan", "negative", "sin", "cos", "log1p", "any", "all"):
    value = np.abs(x) if name in ("sqrt", "log1p") else x
    check(name, getattr(ops, name)(value), tol=2e-5)
check("matmul", ops.matmul(x, x.T))
check("dot", ops.dot(x, x.T))
check("einsum", ops.einsum("ij,kj->ik", x, x))
check("add", ops.add(x, 1.0))
check("maximum", ops.maximum(x, 0.0))
check("where", ops.where(x > 0, x, 0.0))
check("concatenate", ops.concatenate([x, x], axis=0))
check("stack", ops.stack([x, x], axis=1))
check("split", ops.split(x, 3, axis=1))
check("reshape", ops.reshape(x, (3, 2)))
check("expand_dims", ops.expand_dims(x, -1).shape)
check("squeeze", ops.squeeze(ops.ones((1, 3))).shape)
check("tile", ops.tile(x, (1, 2)))
check("pad", ops.pad(x, ((1, 0), (0, 1))))
check("take", ops.take(x, [2, 0], axis=1))
check("take_along_axis", ops.take_along_axis(x, np.array([[0], [1]]), axis=1))
check("one_hot", ops.one_hot([1, 0], 3))
check("arange", ops.arange(5))
check("linspace", ops.linspace(0.0, 1.0, 5))
check("zeros", ops.zeros((2, 2)))
check("eye", ops.eye(2))
check("full", ops.full((2,), 3.0))
check("cast", ops.cast(x, "int32"))
check("convert_to_numpy", ops.convert_to_numpy(ops.convert_to_tensor(x)))
check("shape", ops.shape(x))
check("clip", ops.clip(x, -1.0, 1.0))
check("norm", ops.norm(x))
check("top_k", list(ops.top_k(x, 2)))
check("scatter", ops.scatter(np.array([[0], [2]]), np.array([1.0, 2.0], "float32"), (4,)))
check("slice", ops.slice(x, (0, 1), (2, 2)))
check("cond", ops.cond(True, lambda: ops.ones(()), lambda: ops.zeros(())))
check("stop_gradient", ops.stop_gradient(x))
check("logsumexp", ops.logsumexp(x, axis=1))
check("binary_crossentropy", ops.binary_crossentropy(np.array([1.0], "float32"), np.array([0.8], "float32")))
check("conv", ops.conv(np.ones((1, 4, 4, 1), "float32"), np.ones((2, 2, 1, 1), "float32"), padding="valid"))
check("max_pool", ops.max_pool(np.arange(16.0, dtype="float32").reshape(1, 4, 4, 1), 2))
check("vectorized_map", ops.vectorized_map(lambda r: ops.sum(r), ops.convert_to_tensor(x)))
