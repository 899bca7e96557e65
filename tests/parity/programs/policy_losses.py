"""Losses of half predictions: in which type they are computed, with dtype= of their own, from logits, weighted, as functions."""
import keras
import numpy as np
import tensorflow as tf
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)
R = np.random.RandomState(0)
y, p = R.uniform(0.1, 0.9, size=(4, 3)).astype("float32"), R.uniform(0.1, 0.9, size=(4, 3)).astype("float32")
labels = np.array([0, 1, 2, 1])
LOSSES = ("MeanSquaredError", "MeanAbsoluteError", "Huber", "LogCosh", "BinaryCrossentropy", "CategoricalCrossentropy", "KLDivergence", "Poisson", "CosineSimilarity", "Hinge")
for policy in ("float32", "mixed_float16", "mixed_bfloat16", "bfloat16"):
    keras.config.set_dtype_policy(policy)
    for given in (tf.float16, tf.bfloat16):
        half = tf.cast(p, given)
        results = [getattr(keras.losses, k)()(y, half) for k in LOSSES]
        check(f"{policy} of {given.name}", [name(r) for r in results])
        check(f"{policy} of {given.name}: numbers", [tf.cast(r, tf.float32) for r in results], tol=2e-2)
keras.config.set_dtype_policy("float32")
half = tf.cast(p, tf.float16)
check("asked for", [name(keras.losses.MeanSquaredError(dtype=k)(y, half)) for k in ("float16", "bfloat16", "float64", "mixed_float16")])
check("functions", [name(keras.losses.mean_squared_error(y, half)), name(keras.losses.sparse_categorical_crossentropy(labels, half)), name(keras.losses.binary_crossentropy(y, half))])
check("from logits", [tf.cast(keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, half * 10), tf.float32),
                      tf.cast(keras.losses.BinaryCrossentropy(from_logits=True)(y, half * 10), tf.float32)], tol=1e-2)
check("weighted", keras.losses.MeanSquaredError()(y, half, sample_weight=np.array([1.0, 0.0, 2.0, 1.0])), tol=1e-2)
check("not reduced", name(keras.losses.MeanSquaredError(reduction=None)(y, half)))
check("tf.nn", [name(tf.nn.softmax_cross_entropy_with_logits(tf.cast(y, tf.float16), half)), name(tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(y, tf.float16), half)),
                name(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, half)), name(tf.nn.l2_loss(half))])
large = tf.constant([[6e4, -6e4]], tf.float16)
check("beyond float16", float(keras.losses.MeanSquaredError()(np.zeros((1, 2), "float32"), large)), tol=1e-3)
