"""More functions of keras.ops as nodes, functions as activations, and layers that encode categories."""
import keras
import numpy as np
from keras import layers as L
from keras import ops
from record import IDS, IMAGES, SEQ, X, Y3, sgd, slow

R = np.random.RandomState(15)
floatx = lambda: keras.config.floatx()
array = lambda *shape: R.normal(size=shape).astype(floatx())


def pooled():
    x = L.Input((7, 6, 3))
    a = L.Conv2D(4, 2)(x)
    y = L.Concatenate()([L.Flatten()(v) for v in (ops.max_pool(a, (2, 3), strides=1, padding="same"), ops.average_pool(a, 2), ops.max_pool(a, 3, strides=(2, 1)))])
    b = ops.average_pool(ops.transpose(a, (0, 3, 1, 2)), 2, data_format="channels_first")
    c = ops.max_pool(ops.reshape(a, (-1, 30, 4)), 4, padding="same")
    return keras.Model(x, L.Dense(3)(L.Concatenate()([y, L.Flatten()(b), L.Flatten()(c)])))


def statistics():
    x = L.Input((5, 4))
    a = L.Dense(4)(x)
    rows = [ops.median(a, axis=1), ops.median(a, axis=-1), ops.quantile(a, 0.3, axis=1), ops.quantile(a, 0.7, axis=2),  # Keras 3.15 forgets other methods in a model
            ops.reshape(ops.quantile(a, [0.0, 0.25, 1.0], axis=(1, 2))[:, :, None], (3, -1, 1))[2], L.Flatten()(ops.median(a, axis=(1, 2), keepdims=True)),
            L.Flatten()(ops.diff(a, axis=1)), L.Flatten()(ops.diff(a, n=2, axis=-1)), ops.cast(ops.count_nonzero(ops.relu(a), axis=1), floatx())]
    return keras.Model(x, L.Dense(3)(ops.concatenate(rows, axis=-1)))


def numbers():
    x = L.Input((5, 4))
    a = L.Dense(4)(x)
    y = ops.deg2rad(a) + ops.rad2deg(a) * 0.01 + ops.cbrt(a) + ops.nan_to_num(ops.log(a), nan=0.5, posinf=2.0, neginf=-2.0)
    y = y + ops.layer_normalization(a) + ops.rms_normalization(a, axis=-1) + ops.layer_normalization(a, axis=1, epsilon=1e-3)
    y = y + ops.cast(ops.isclose(a, x, 0.5, 0.1), floatx()) + ops.layer_normalization(a, gamma=L.Dense(4)(x), beta=x) + ops.nan_to_num(a)
    return keras.Model(x, L.Dense(3)(L.Flatten()(y)))


def matrices():
    x = L.Input((5, 4))
    a = L.Dense(6)(x)
    square = L.Dense(3)(L.Reshape((5, 2, 3))(a))
    vector = L.Dense(3)(x)
    rows = [ops.cross(vector, ops.tanh(vector)), ops.cross(L.Permute((2, 1))(vector), L.Permute((2, 1))(x[..., :3]), axis=1), ops.diagonal(square, axis1=2, axis2=3),
            ops.diagonal(square, offset=1, axis1=2, axis2=3), ops.diagonal(square, offset=-1, axis1=1, axis2=3), ops.trace(square, axis1=1, axis2=2),
            ops.trace(square, offset=-1, axis1=-2, axis2=1), ops.rot90(a, axes=(1, 2)), ops.rot90(square, k=3, axes=(3, 1)),
            ops.tensordot(a, array(6, 2), axes=1), ops.tensordot(a, array(2, 6, 5), axes=[[1, 2], [2, 1]]), ops.tensordot(square, array(3, 2, 2), axes=[[3, 2], [0, 1]])]
    return keras.Model(x, L.Dense(3)(ops.concatenate([L.Flatten()(r) for r in rows], axis=-1)))


def encoded_ops():
    x = L.Input((5,), dtype="int32")
    y = ops.cast(ops.multi_hot(x, num_classes=9), floatx())
    z = ops.cast(ops.zeros_like(x) + ops.ones_like(x) * x // 2, floatx())
    return keras.Model(x, L.Dense(3)(ops.concatenate([y, z], axis=-1)))


def function_activations():
    x = L.Input((12,))
    y = L.Dense(6, activation=ops.tanh)(x)
    y = L.Dense(6, activation=ops.silu)(y)
    return keras.Model(x, L.Dense(3)(L.Activation(ops.softplus)(y)))


def encode(mode, one=False):
    def make():
        x = L.Input((5,), dtype="int32")
        y = x[:, :1] if one else x
        return keras.Model(x, L.Dense(3)(L.Flatten()(L.CategoryEncoding(9, output_mode=mode)(y))))
    return make


def weighted_count():
    x, w = L.Input((5,), dtype="int32"), L.Input((5,))
    return keras.Model([x, w], L.Dense(3)(L.CategoryEncoding(9, output_mode="count")(x, count_weights=w)))


def binned(mode, one=False):
    def make():
        x = L.Input((12,))
        y = L.Discretization(bin_boundaries=[-1.5, -0.5, 0.0, 0.25, 1.0], output_mode=mode)(x[:, 3:4] if one else x)
        y = L.Embedding(6, 2)(y) if mode == "int" else y
        return keras.Model(x, L.Dense(3)(L.Flatten()(y)))
    return make


CASES = [
    ("ops_pool", pooled, IMAGES, Y3, slow, "mse", [], 3),
    ("ops_statistics", statistics, SEQ, Y3, slow, "mse", [], 3),
    ("ops_numbers", numbers, SEQ, Y3, slow, "mse", [], 3),
    ("ops_matrices", matrices, SEQ, Y3, slow, "mse", [], 3),
    ("ops_encoded", encoded_ops, IDS, Y3, slow, "mse", [], 3),
    ("act_functions", function_activations, X, Y3, slow, "mse", [], 3),
    ("encode_one_hot", encode("one_hot"), IDS, Y3, sgd, "mse", [], 3),
    ("encode_one_hot_of_one", encode("one_hot", True), IDS, Y3, sgd, "mse", [], 3),
    ("encode_multi_hot", encode("multi_hot"), IDS, Y3, sgd, "mse", [], 3),
    ("encode_count", encode("count"), IDS, Y3, sgd, "mse", [], 3),
    ("encode_count_weighted", weighted_count, [IDS, np.abs(X[:, :5])], Y3, sgd, "mse", [], 3),
    ("bins_int", binned("int"), X, Y3, sgd, "mse", [], 3),
    ("bins_one_hot", binned("one_hot"), X, Y3, sgd, "mse", [], 3),
    ("bins_one_hot_of_one", binned("one_hot", True), X, Y3, sgd, "mse", [], 3),
    ("bins_multi_hot", binned("multi_hot"), X, Y3, sgd, "mse", [], 3),
    ("bins_count", binned("count"), X, Y3, sgd, "mse", [], 3),
]
