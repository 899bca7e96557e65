"""Embeddings whose indices repeat, under optimizers that square gradients."""
import keras
import numpy as np
from cases_attention import NEXT, TOKENS, transformer
from keras import layers as L
from record import SPARSE

R = np.random.RandomState(3)
IDS = R.randint(0, 6, size=(64, 8)).astype(np.int32)
LABELS = R.randint(0, 4, size=(64,)).astype(np.int32)
O = keras.optimizers


def classifier():
    return [L.Input((8,), dtype="int32"), L.Embedding(7, 5), L.Flatten(), L.Dense(4, activation="softmax")]


def twice():
    """One table, looked up for two inputs."""
    inputs, table = L.Input((8,), dtype="int32"), L.Embedding(7, 5)
    x = L.Concatenate()([table(inputs), table(inputs[:, ::-1])])
    return keras.Model(inputs, L.Dense(4, activation="softmax")(L.Flatten()(x)))


CASES = [
    ("embedding_adam", classifier, IDS, LABELS, lambda: O.Adam(0.01), SPARSE, [], 20),
    ("embedding_adamw", classifier, IDS, LABELS, lambda: O.AdamW(0.01, weight_decay=0.02), SPARSE, [], 5),
    ("transformer_adam", lambda: transformer("silu"), TOKENS, NEXT, lambda: O.Adam(0.001), SPARSE, [], 20),
    ("embedding_twice", twice, IDS, LABELS, lambda: O.Adam(0.01), SPARSE, [], 5),
]
F64_ONLY = ["transformer_adam"]  # the gradient of a key's bias is zero but for rounding, and Adam makes steps of it
