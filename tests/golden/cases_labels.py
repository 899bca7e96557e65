"""Categorical cross-entropy with labels that do not sum up to 1: TensorFlow's gradient takes them to; and of a softmax along
another axis, whose logits Keras takes along the last one."""
import numpy as np
from record import L, SEQ, X, keras, sgd

LABELS = np.random.RandomState(31).uniform(size=(64, 4)) * 0.7
STEPS = np.eye(3)[np.random.RandomState(32).randint(0, 3, (64, 5))]
F = keras.losses
CASES = [
    ("labels_softmax", lambda: [L.Input((12,)), L.Dense(4, activation="softmax")], X, LABELS, sgd, "categorical_crossentropy", [], 3),
    ("labels_logits", lambda: [L.Input((12,)), L.Dense(4)], X, LABELS, sgd, lambda: F.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1), [], 3),
    ("labels_probabilities", lambda: [L.Input((12,)), L.Dense(4, activation="softmax"), L.Rescaling(0.8, offset=0.1)], X, LABELS, sgd, "categorical_crossentropy", [], 3),
    ("labels_kl", lambda: [L.Input((12,)), L.Dense(4, activation="softmax")], X, LABELS, sgd, "kl_divergence", [], 3),
    ("labels_softmax_axis", lambda: [L.Input((5, 4)), L.Dense(3), L.Softmax(axis=1)], SEQ, STEPS, sgd, "categorical_crossentropy", [], 3),
    ("labels_softmax_axis_sparse", lambda: [L.Input((5, 4)), L.Dense(3), L.Softmax(axis=1)], SEQ, STEPS.argmax(-1), sgd, "sparse_categorical_crossentropy", [], 3),
]
