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
CASES += [(f"rows_{name}", classifier, IDS, LABELS, optimizer, SPARSE, [], 5) for name, optimizer in {
    "momentum": lambda: O.SGD(0.1, momentum=0.9), "nesterov": lambda: O.SGD(0.1, momentum=0.9, nesterov=True), "amsgrad": lambda: O.Adam(0.01, amsgrad=True),
    "rmsprop": lambda: O.RMSprop(0.01), "rmsprop_centered": lambda: O.RMSprop(0.01, centered=True, momentum=0.9), "adagrad": lambda: O.Adagrad(0.1),
    "adadelta": lambda: O.Adadelta(1.0), "adamax": lambda: O.Adamax(0.01), "nadam": lambda: O.Nadam(0.01), "lion": lambda: O.Lion(0.01), "ftrl": lambda: O.Ftrl(0.1),
    "adafactor": lambda: O.Adafactor(0.01), "lamb": lambda: O.Lamb(0.01), "clipnorm": lambda: O.Adam(0.01, clipnorm=0.02), "clipvalue": lambda: O.Adam(0.01, clipvalue=0.001),
    "global_clipnorm": lambda: O.Adam(0.01, global_clipnorm=0.05), "decay": lambda: O.SGD(0.1, weight_decay=0.1), "accumulated": lambda: O.Adam(0.01, gradient_accumulation_steps=2)}.items()]
F64_ONLY = ["transformer_adam"]  # the gradient of a key's bias is zero but for rounding, and Adam makes steps of it
