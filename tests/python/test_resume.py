#!/usr/bin/env python3
"""A fit that was interrupted goes on, in another process, to the same bits: weights, slots, iterations, order of rows, dropout."""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from snug import keras
from snug.keras import layers as L

# Trains; stops before epoch STOP (-1: never); prints a digest of all that counts.
PROGRAM = """
import hashlib, sys
import numpy as np
import snug.tensorflow as tf
from snug import keras
folder, optimizer, stop = sys.argv[1], sys.argv[2], int(sys.argv[3])
X = np.random.RandomState(0).rand(96, 16).astype("float32")
Y = np.random.RandomState(1).randint(0, 4, 96)


class Stop(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == stop:
            sys.exit(9)


class Drops(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.random = [keras.random.SeedGenerator(5), keras.random.SeedGenerator(6)]
        self.other = tf.random.Generator.from_seed(7)

    def call(self, x, training=False):
        if training:
            x = keras.random.dropout(x, 0.3, seed=self.random[0]) + keras.random.normal(x.shape, seed=self.random[1])
            x = tf.nn.dropout(x, 0.2, seed=4)
            x += self.other.normal(x.shape) + tf.random.get_global_generator().normal(x.shape)
        return x


def seeded(mixes):
    # mixes: one that draws on the host, too, so that no step is traced
    L = keras.layers
    first = [L.RandomBrightness(0.3, value_range=(0, 1), seed=1), L.RandomGrayscale(0.5, seed=2), L.Reshape((8, 6)),
             L.LSTM(6, recurrent_dropout=0.4, dropout=0.2, seed=3)]
    return keras.Sequential([keras.Input((4, 4, 3)), *([L.MixUp(seed=9)] if mixes else []), *first, L.Dense(16), L.Dropout(0.3, seed=7), Drops(),
                             L.GaussianNoise(0.2, seed=8), L.Dropout(0.3), L.Dense(4, activation="softmax")])


keras.utils.set_random_seed(3)
if optimizer == "scaled":       # overflows at first, and grows in between
    keras.config.set_dtype_policy("mixed_float16")
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01), initial_scale=2.0 ** 24, dynamic_growth_steps=4)
if optimizer in ("seeded", "eager", "mixed"):
    model = seeded(optimizer == "mixed")
else:
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dropout(0.5),
                              keras.layers.BatchNormalization(), keras.layers.Dense(4, activation="softmax")])
if optimizer == "scheduled":
    optimizer = keras.optimizers.AdamW(keras.optimizers.schedules.ExponentialDecay(0.01, 3, 0.9), use_ema=True)
eager = optimizer == "eager"
if optimizer in ("seeded", "eager", "mixed"):
    X, optimizer = np.random.RandomState(0).rand(96, 4, 4, 3).astype("float32"), "adam"
model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"], run_eagerly=eager)
callbacks = ([keras.callbacks.BackupAndRestore(folder)] if folder else []) + [Stop()]
history = model.fit(X, Y, epochs=5, batch_size=16, verbose=0, callbacks=callbacks)
arrays = [np.asarray(v.numpy()) for v in model.weights + model.optimizer.variables]
if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
    assert 0 < int(optimizer.iterations) < 30 and float(optimizer.dynamic_scale) < 2 ** 23
print(hashlib.md5(b"".join(a.tobytes() for a in arrays)).hexdigest(), history.history["loss"][-1], int(model.optimizer.iterations))
"""


def run(folder, optimizer, stop=-1):
    r = subprocess.run([sys.executable, "-B", "-c", PROGRAM, folder, optimizer, str(stop)], capture_output=True, text=True)
    return r.returncode, r.stdout.strip(), r.stderr


class ResumeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = lambda name: os.path.join(self.folder.name, name)

    def test_resumed_is_as_never_stopped(self):
        for optimizer in ("adam", "rmsprop", "scheduled", "scaled"):
            with self.subTest(optimizer):
                code, whole, said = run("", optimizer)
                self.assertEqual(code, 0, said)
                for stop in (2, 4):
                    folder = self.path(f"{optimizer}{stop}")
                    self.assertEqual(run(folder, optimizer, stop)[0], 9)
                    self.assertEqual(len(os.listdir(folder)), 1)            # one file: nothing can be of two moments
                    self.assertEqual(run(folder, optimizer)[1], whole)
                    self.assertFalse(os.path.exists(folder))

    def test_layers_with_seeds_of_their_own_draw_on(self):
        for kind in ("seeded", "eager", "mixed"):
            with self.subTest(kind):
                code, whole, said = run("", kind)
                self.assertEqual(code, 0, said)
                folder = self.path(kind)
                self.assertEqual(run(folder, kind, 2)[0], 9)
                self.assertEqual(run(folder, kind)[1], whole)

    def test_a_layer_draws_on_when_its_rate_changes(self):
        x, (a, b) = np.ones((4, 50), "float32"), (L.Dropout(0.5, seed=1) for _ in range(2))
        for layer in (a, b):
            layer(x, training=True)
        a.rate = 0.25
        a.rate = 0.5
        self.assertTrue(np.array_equal(a(x, training=True), b(x, training=True)))

    def test_a_rate_is_what_a_file_holds_of_it(self):
        optimizer = keras.optimizers.Adam(0.001)
        self.assertEqual(optimizer._engine().rate, float(np.float32(0.001)))
        optimizer.learning_rate = 0.1
        self.assertEqual(optimizer._engine().rate, float(np.float32(0.1)))

    def fitted(self, units=3, optimizer="adam"):
        model = keras.Sequential([keras.Input((2,)), L.Dense(units)])
        model.compile(optimizer, "mse")
        return model, (np.ones((4, 2), "float32"), np.ones((4, units), "float32"))

    def test_a_state_of_another_fit_is_refused_and_changes_nothing(self):
        model, data = self.fitted()
        backup = keras.callbacks.BackupAndRestore(self.path("b"), delete_checkpoint=False)
        model.fit(*data, verbose=0, callbacks=[backup])
        file = self.path("b/latest.ckpt")
        for units, optimizer in ((4, "adam"), (3, "sgd")):
            other, data = self.fitted(units, optimizer)
            before = other.get_weights()
            with self.assertRaises(ValueError):
                other.fit(*data, epochs=2, verbose=0, callbacks=[keras.callbacks.BackupAndRestore(self.path("b"))])
            self.assertTrue(all(np.array_equal(a, b) for a, b in zip(before, other.get_weights())))
        with open(file, "rb") as f:
            raw = f.read()
        other, data = self.fitted()
        flipped = bytearray(raw)
        flipped[raw.index(np.asarray(model.get_weights()[0]).tobytes()) + 5] ^= 4           # one bit of one weight
        for bad in (b"", raw[:100], raw[:len(raw) // 2], raw[:-20], flipped):
            with open(file, "wb") as f:
                f.write(bad)
            with self.assertRaises(ValueError):
                other.fit(*data, epochs=2, verbose=0, callbacks=[keras.callbacks.BackupAndRestore(self.path("b"))])
        other.save_weights(self.path("w.weights.h5"))
        os.replace(self.path("w.weights.h5"), file)
        with self.assertRaisesRegex(ValueError, "does not begin as one"):
            other.fit(*data, epochs=2, verbose=0, callbacks=[keras.callbacks.BackupAndRestore(self.path("b"))])


if __name__ == "__main__":
    unittest.main()
