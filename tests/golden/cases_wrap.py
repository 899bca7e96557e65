"""Models inside TimeDistributed that train step by step, and operations on pictures."""
import keras
import numpy as np
from keras import layers as L
from keras import ops
from record import IMAGES, Y3, adam, head, sgd, slow

R = np.random.RandomState(21)
MOVIES, Y = R.normal(size=(16, 3, 5, 4, 2)), R.normal(size=(16, 3))


def distributed():
    inner = keras.Sequential([L.Input((5, 4, 2)), L.Conv2D(3, 2), L.BatchNormalization(momentum=0.8), L.ReLU(), L.GlobalAveragePooling2D()], name="inner")
    x = L.Input((3, 5, 4, 2))
    return keras.Model(x, L.Dense(3)(L.Flatten()(L.TimeDistributed(inner)(x))))


def distributed_graph():
    """Batch normalisation twice in a Functional model inside, once of axis 1."""
    a = L.Input((5, 4, 2))
    b = L.BatchNormalization(momentum=0.9)(L.Flatten()(L.BatchNormalization(axis=1)(a)))
    inner = keras.Model(a, L.Dense(4, activation="tanh")(b), name="inner")
    x = L.Input((3, 5, 4, 2))
    return keras.Model(x, L.Dense(3)(L.GRU(4)(L.TimeDistributed(inner)(x))))


def patches():
    x = L.Input((7, 6, 3))
    a = L.Conv2D(3, 2)(x)
    rows = [ops.image.extract_patches(a, 2), ops.image.extract_patches(a, (3, 2), strides=(1, 2)), ops.image.extract_patches(a, (2, 3), strides=2, padding="same"),
            ops.image.extract_patches(a[:, :6, :4], (3, 4)), ops.image.extract_patches(a, (5, 4), strides=1), ops.image.rgb_to_grayscale(a), ops.round(a, 2), ops.sinc(a), ops.ptp(a, axis=1)]
    return keras.Model(x, L.Dense(3)(ops.concatenate([L.Flatten()(r) for r in rows], axis=-1)))


LATE = np.tile(R.randint(1, 9, size=(16, 6)).astype(np.int32), (3, 1))
LATE[::2, 0] = LATE[::3, 1] = LATE[::6, 2] = 0  # steps that do not count, some before all others


def late():
    layers = [c(n, return_sequences=True, stateful=True) for c, n in ((L.LSTM, 4), (L.GRU, 3), (L.SimpleRNN, 3))]
    return [L.Input(batch_shape=(16, 6), dtype="int32"), L.Embedding(9, 3, mask_zero=True)] + layers + [L.Flatten()] + head()


CASES = [
    ("stateful_masked", late, LATE, np.tile(Y, (3, 1)), sgd, "mse", [], 3),
    ("distributed_norm", distributed, MOVIES, Y, sgd, "mse", [], 3),
    ("distributed_norm_graph", distributed_graph, MOVIES, Y, sgd, "mse", [], 3),
    ("ops_patches", patches, IMAGES, Y3, slow, "mse", [], 3),
]
