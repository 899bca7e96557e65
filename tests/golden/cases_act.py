"""Golden cases of activations: every name of Keras' list that record.py does not have, and the layers with settings."""
import numpy as np
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


CASES = [("act_glu", glu, X, Y, sgd, "mse", [], 3)] + [(f"act_{a}", activation_case(a), X, Y, slow, "mse", [], 3) for a in
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
