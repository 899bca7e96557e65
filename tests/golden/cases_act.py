"""Golden cases of activations: every name of Keras' list that record.py does not have, and the layers with settings."""
import numpy as np
from keras import ops
from record import L, activation_case, head, keras, sgd, slow

R = np.random.RandomState(4)
X, SEQ, Y = R.normal(size=(16, 12)), R.normal(size=(16, 5, 4)), R.normal(size=(16, 3))


def layer(name, x, *layers):
    """A layer on a Dense one, twice as wide as plain, so that all its pieces are met."""
    wide = lambda: L.Dense(6, kernel_initializer="he_normal", bias_initializer="random_normal")
    return ("layer_" + name, lambda: [L.Input(x.shape[1:]), wide()] + [l() for l in layers] + [L.Flatten()] + head(), x, Y, sgd, "mse", [], 3)


def glu():
    """It halves an axis, which Keras' layers do not expect of an activation."""
    x = L.Input((12,))
    y = keras.activations.glu(L.Dense(8)(x))
    return keras.Model(x, head()[0](y))


def functional(x, function):
    """A Dense layer, the function of its output, and a head."""
    def make():
        inputs = L.Input(x.shape[1:])
        return keras.Model(inputs, head()[0](L.Flatten()(function(L.Dense(6)(inputs)))))
    return make


def waves(x):
    angle = ops.arctan2(ops.sin(x) + 1.5, ops.cos(x))
    return angle + ops.log1p(ops.expm1(ops.abs(x))) + ops.arcsinh(x) * ops.tanh(ops.sinh(0.3 * x)) + ops.arctan(ops.logaddexp(x, 0.5 - x))


def powers(x):
    rest = ops.mod(x, 0.7) + ops.floor_divide(x, 0.7) * ops.floor(x) + ops.round(2 * x) + ops.trunc(x)
    return rest * ops.power(ops.abs(x) + 0.1, 1.0 + 0.1 * ops.sigmoid(x)) + ops.where(ops.less(x, 0.2), x, ops.log2(ops.abs(x) + 1.0))


def reductions(x):
    spread = ops.std(x, axis=-1, keepdims=True) + ops.norm(x, axis=1, keepdims=True) + ops.logsumexp(x, axis=[1, 2], keepdims=True)
    ends = ops.max(x, axis=1, keepdims=True) - ops.min(x, axis=1, keepdims=True) + ops.prod(x, axis=-1, keepdims=True)
    return 0.1 * ops.cumsum(x, axis=1) * spread + 0.1 * ops.cumprod(0.5 * x + 1.0, axis=-1) * ends


def sorting(x):
    values, places = ops.top_k(x, 3)
    return ops.concatenate([values, ops.sort(x, axis=-1), ops.cast(places, x.dtype), ops.cast(ops.argsort(x, axis=-1), x.dtype)], axis=-1)


def activations(x):
    a = keras.activations
    y = ops.elu(x, alpha=0.5) + ops.celu(x, alpha=0.7) + ops.gelu(x) * a.gelu(x) + ops.hard_shrink(x, 0.3) + ops.soft_shrink(x, 0.2)
    return y + ops.threshold(x, 0.1, 0.4) + ops.squareplus(x, b=3) + a.relu(x, max_value=0.8) + ops.softmax(x, axis=1)


CASES = [(f"math_{f.__name__}", functional(SEQ, f), SEQ, Y, slow, "mse", [], 3) for f in
         (waves, powers, reductions, sorting, activations)] + [("act_glu", glu, X, Y, sgd, "mse", [], 3)] + [(f"act_{a}", activation_case(a), X, Y, slow, "mse", [], 3) for a in
         ("relu6", "celu", "squareplus", "soft_shrink", "sparse_plus", "tanh_shrink", "sparse_sigmoid", "hard_sigmoid", "hard_silu",
          "hard_tanh", "hard_shrink", "log_sigmoid", "sparsemax")] + [
    layer("relu_max", X, lambda: L.ReLU(max_value=0.7)),
    layer("relu_six", X, lambda: L.ReLU(6.0)),
    layer("relu_threshold", X, lambda: L.ReLU(threshold=0.3)),
    layer("relu_settings", X, lambda: L.ReLU(max_value=0.9, negative_slope=0.15, threshold=0.2)),
    layer("relu_slope_max", X, lambda: L.ReLU(max_value=1.1, negative_slope=0.15)),
    layer("leaky_relu", X, lambda: L.LeakyReLU()),
    layer("prelu", X, lambda: L.PReLU(alpha_initializer=keras.initializers.Constant(0.25))),
    layer("prelu_shared", SEQ, lambda: L.PReLU(alpha_initializer="random_uniform", shared_axes=[1])),
    layer("elu", X, lambda: L.ELU(alpha=0.6)),
    layer("softmax_axis", SEQ, lambda: L.Softmax(axis=1)),
    layer("softmax_axes", SEQ, lambda: L.Softmax(axis=[1, 2])),
    layer("activations", SEQ, lambda: L.Activation("swish"), lambda: L.Activation("hard_swish"), lambda: L.Activation("linear")),
]
