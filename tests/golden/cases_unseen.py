"""Models in the style of documentation and blog posts that differed from Keras once, and what stood beside them."""
import keras
import numpy as np
from keras import layers as L
from keras import ops
from record import IDS, LABELS, ONEHOT, SPARSE, X, Y3, adam, sgd

R = np.random.RandomState(41)
floatx = lambda: keras.config.floatx()
PAIRS = np.eye(2)[R.randint(0, 2, 64)]
WEIGHTED = np.abs(R.normal(size=(64, 4)))  # rows that do not add up to 1
one = lambda n, activation=None: lambda: [L.Input((12,)), L.Dense(n, activation=activation)]
PADDED = IDS.copy()
PADDED[:20, :2] = 0
PADDED[20:24] = 0
PADDED[30:40, 3:] = 0


def likes_of_integers():
    x = L.Input((5,), dtype="int32")
    table = L.Embedding(9, 4)
    rows = [table(ops.ones_like(x) + x // 2), table(ops.zeros_like(x) + 1), L.Reshape((5, 1))(ops.ones_like(x, dtype=floatx()) / 2)]
    return keras.Model(x, L.Dense(3)(L.Flatten()(ops.concatenate(rows, axis=-1))))


def masked_from_states():
    """The output before the first valid step is zeros, whatever the state is."""
    x, s = L.Input((5,), dtype="int32"), L.Input((12,))
    e = L.Embedding(9, 4, mask_zero=True)(x)
    y, h, c = L.LSTM(3, return_state=True)(e, initial_state=[L.Dense(3)(s), L.Dense(3)(s)])
    z = L.GRU(3, return_sequences=True, go_backwards=True)(e, initial_state=L.Dense(3)(s))
    return keras.Model([x, s], L.Dense(3)(L.Concatenate()([y, h, c, L.Flatten()(z)])))


def long_array():
    a = lambda *shape: np.round(R.normal(size=shape), 2).astype(floatx())
    x = L.Input((12,))
    y = ops.multiply(ops.reshape(L.Dense(20)(x), (-1, 20, 1)), a(20, 14))
    return keras.Model(x, L.Dense(3)(ops.matmul(ops.mean(y, axis=1), a(14, 20))))


CASES = [
    ("unseen_likes_of_integers", likes_of_integers, IDS, Y3, adam, "mse", [], 3),
    ("unseen_masked_from_states", masked_from_states, [PADDED, X], Y3, adam, "mse", [], 3),
    ("unseen_long_array", long_array, X, Y3, adam, "mse", [], 3),
    ("unseen_binary_of_softmax", one(2, "softmax"), X, PAIRS, sgd, "binary_crossentropy", ["binary_crossentropy", "accuracy"], 3),
    ("unseen_categorical_of_sigmoid", one(4, "sigmoid"), X, ONEHOT, sgd, "categorical_crossentropy", ["categorical_crossentropy"], 3),
    ("unseen_sparse_of_sigmoid", one(4, "sigmoid"), X, LABELS, sgd, SPARSE, ["sparse_categorical_crossentropy"], 3),
    ("unseen_weighted_labels", one(4, "softmax"), X, WEIGHTED, sgd, "categorical_crossentropy", ["categorical_crossentropy"], 3),
]
