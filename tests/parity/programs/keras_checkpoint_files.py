"""Which files ModelCheckpoint writes, and what it says; batches of text whose last one is smaller."""
import contextlib
import io
import os
import tempfile

import numpy as np
import tensorflow as tf
from parity import check
from tensorflow import keras

layers = keras.layers
x, y = np.ones((12, 2), "float32"), np.ones((12, 1), "float32")


def model():
    made = keras.Sequential([keras.Input((2,)), layers.Dense(1, kernel_initializer="zeros")])
    made.compile(keras.optimizers.SGD(0.01), "mse")
    return made


def files(name, **settings):
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
        saved = keras.callbacks.ModelCheckpoint(os.path.join(folder, "new", name), verbose=1, **settings)
        model().fit(x, y, batch_size=4, epochs=4, verbose=0, shuffle=False, validation_data=(x, y), callbacks=[saved])
        found = sorted(os.listdir(os.path.join(folder, "new")))
        return found, said.getvalue().replace(folder, "FOLDER").split("\n")


check("each epoch", files("at-{epoch:02d}.weights.h5", save_weights_only=True))
check("every five batches", files("at-{epoch:02d}.weights.h5", save_weights_only=True, save_freq=5))
check("best", files("best-{epoch}.keras", save_best_only=True))
check("none is better", files("best-{epoch}-{val_loss:.3f}.keras", save_best_only=True, mode="max"))

words = layers.TextVectorization(output_sequence_length=3)
words.adapt(["a b", "c"])
free = layers.TextVectorization()
free.adapt(["a b", "c"])
lines = tf.data.Dataset.from_tensor_slices((["a", "b c", "c", "d", "a b c"], [1.0, 2.0, 3.0, 4.0, 5.0])).batch(2)
check("remainder", [(t, n) for t, n in lines.map(lambda t, n: (words(t), n))])
check("widths", [t for t, _ in lines.map(lambda t, n: (free(t), n))])
check("one by one", [t for t, _ in lines.unbatch().map(lambda t, n: (free(t), n)).padded_batch(3)])
numbers = tf.data.Dataset.range(5).batch(2)
check("numbers", [v for v in numbers.map(lambda v: v * 2 if tf.reduce_sum(v) > 1 else v)])
