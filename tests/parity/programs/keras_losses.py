"""The losses of Keras, as classes with reductions and as functions."""
import numpy as np
from tensorflow import keras
from parity import check

L = keras.losses
y = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "float32")
p = np.array([[0.1, 0.8, 0.1], [0.2, 0.3, 0.5]], "float32")
signs = np.where(y > 0, 1.0, -1.0).astype("float32")
for cls in (L.MeanSquaredError, L.MeanAbsoluteError, L.MeanAbsolutePercentageError, L.MeanSquaredLogarithmicError,
            L.BinaryCrossentropy, L.CategoricalCrossentropy, L.KLDivergence, L.Poisson, L.Huber, L.LogCosh,
            L.CosineSimilarity, L.BinaryFocalCrossentropy, L.CategoricalFocalCrossentropy, L.Dice, L.Tversky):
    check(cls.__name__, cls()(y, p))
for cls in (L.Hinge, L.SquaredHinge, L.CategoricalHinge):
    check(cls.__name__, cls()(signs, p))
check("sparse", L.SparseCategoricalCrossentropy()(np.array([1, 2]), p))
check("sparse logits", L.SparseCategoricalCrossentropy(from_logits=True)(np.array([1, 2]), p))
check("binary logits", L.BinaryCrossentropy(from_logits=True)(y, p * 4 - 2))
check("smoothing", L.CategoricalCrossentropy(label_smoothing=0.1)(y, p))
check("none", L.MeanSquaredError(reduction="none")(y, p))
check("sum", L.MeanSquaredError(reduction="sum")(y, p))
check("weights", L.MeanSquaredError()(y, p, sample_weight=[2.0, 0.5]))
check("huber delta", L.Huber(delta=0.2)(y, p))
check("function", L.MSE(y, p))
check("function sparse", L.sparse_categorical_crossentropy(np.array([1, 2]), p))
check("by name", L.get("mse")(y, p))
check("binary function", L.binary_crossentropy(y, p))
check("ignore_class", L.SparseCategoricalCrossentropy(ignore_class=0)(np.array([0, 2]), p))
check("extremes", L.BinaryCrossentropy()(np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])), tol=1e-4)
check("name", L.MeanSquaredError().name)
check("config", L.MeanSquaredError(name="m").get_config()["name"])
