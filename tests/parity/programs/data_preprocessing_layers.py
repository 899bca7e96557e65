"""Keras' preparing layers in map functions."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

from tensorflow import keras

x = np.arange(48, dtype=np.float32).reshape(2, 4, 2, 3)
d = Dataset.from_tensor_slices(x)
scale = keras.layers.Rescaling(1 / 24.0, offset=-1.0)
check("rescaling", list(d.map(lambda p: scale(p))))
both = keras.Sequential([keras.layers.Resizing(2, 2), keras.layers.Rescaling(0.1)])
check("sequential", list(d.batch(2).map(lambda p: both(p))), 1e-4)
flip = keras.layers.RandomFlip("horizontal")
flipped = list(d.map(lambda p: flip(p, training=True)))
check("flip", all(np.array_equal(f, a) or np.array_equal(f, a[:, ::-1]) for f, a in zip(flipped, x)))
norm = keras.layers.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0])
check("normalization", list(d.batch(1).map(lambda p: norm(p))), 1e-4)
check("utils", list(Dataset.range(3).map(lambda i: tf.one_hot(i, 3))))
