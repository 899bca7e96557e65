"""Models as users write them, where a first try of Snug went another way than Keras."""
import keras
import numpy as np
from keras import layers as L
from record import IDS, SEQ, X, Y3, sgd

R = np.random.RandomState(11)
PADDED = np.where(np.arange(5) < R.randint(1, 6, size=(64, 1)), IDS + 1, 0).astype(np.int32)
SEQ_TARGETS = R.normal(size=(64, 5, 3))


def joined_features():
    """A step is valid where any of the joined inputs is: the loss sees the mask."""
    a, b = L.Input((5,), dtype="int32"), L.Input((5,), dtype="int32")
    table = L.Embedding(10, 3, mask_zero=True)
    x = L.Concatenate()([table(a), table(b)])
    return keras.Model([a, b], L.Dense(3)(x))


def joined_steps():
    """Masks follow each other along the steps; an input without one is valid."""
    a, b = L.Input((5,), dtype="int32"), L.Input((5, 4))
    x = L.Concatenate(axis=1)([L.Embedding(10, 4, mask_zero=True)(a), b])
    return keras.Model([a, b], L.Dense(3)(L.LSTM(4)(x)))


def added_masks():
    """A step of a sum is valid where any part is; with a part that has no mask, everywhere."""
    a, b, c = L.Input((5,), dtype="int32"), L.Input((5,), dtype="int32"), L.Input((5, 3))
    table = L.Embedding(10, 3, mask_zero=True)
    x = L.Add()([table(a), table(b)])
    y = L.Multiply()([table(a), c])
    return keras.Model([a, b, c], [L.Dense(3, name="some")(x), L.Dense(3, name="all")(y)])


def merged_masks():
    """What masks hide neither multiplies nor is the largest."""
    a, b, c = L.Input((5,), dtype="int32"), L.Input((5,), dtype="int32"), L.Input((5, 3))
    table = L.Embedding(10, 3, mask_zero=True)
    x, y = table(a), table(b)
    some = L.Concatenate()([L.Multiply()([x, y]), L.Maximum()([x, y]), L.Minimum()([x, y, x])])
    other = L.Concatenate()([L.Multiply()([c, y]), L.Maximum()([x, c]), L.Minimum()([c, y])])
    return keras.Model([a, b, c], [L.Dense(3, name="some")(some), L.Dense(3, name="all")(other)])


def twenty():
    """As many features as tables of people and shops have, joined at once."""
    inputs = L.Input((12,))
    return keras.Model(inputs, L.Dense(3)(L.Concatenate()([L.Dense(1)(inputs) for _ in range(20)])))


CASES = [
    ("mask_joined_features", joined_features, [PADDED, PADDED[::-1]], SEQ_TARGETS, sgd, "mse", [], 3),
    ("mask_added", added_masks, [PADDED, PADDED[::-1], SEQ[:, :, :3]], [SEQ_TARGETS, SEQ_TARGETS], sgd, "mse", [], 3),
    ("mask_merged", merged_masks, [PADDED, PADDED[::-1], SEQ[:, :, :3]], [SEQ_TARGETS, SEQ_TARGETS], sgd, "mse", [], 3),
    ("graph_twenty", twenty, X, Y3, sgd, "mse", [], 3),
    ("mask_joined_steps", joined_steps, [PADDED, SEQ], Y3, sgd, "mse", [], 3),
]
