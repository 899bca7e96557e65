#!/usr/bin/env python3
"""Files that Python writes: whole or not there, and two writers of one path never mix."""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from snug import _files, keras
from snug import tensorflow as tf
from snug.keras import layers as L

# Saves a model whose weights are all one number, again and again.
SAVER = """
import sys, numpy as np
from snug import keras
path, value, times = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(512), keras.layers.Dense(4)])
model.set_weights([np.full(w.shape, value, "float32") for w in model.get_weights()])
for _ in range(times):
    (model.save if path.endswith(".keras") else model.save_weights)(path)
"""


class WritersTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_two_writers_have_two_files(self):
        path = self.path("file")
        with _files._whole(path) as one:
            with _files._whole(path) as two:
                self.assertNotEqual(one, two)
                for name, text in ((one, "one"), (two, "two, longer")):
                    with open(name, "w") as file:
                        file.write(text)
                self.assertFalse(os.path.exists(path))
            with open(path) as file:
                self.assertEqual(file.read(), "two, longer")
        with open(path) as file:
            self.assertEqual(file.read(), "one")
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            with _files._whole(path) as name:
                with open(name, "w") as file:
                    file.write("half")
                1 / 0
        with open(path) as file:
            self.assertEqual(file.read(), "one")
        self.assertEqual(os.listdir(self.folder.name), ["file"])
        with self.assertRaises(FileNotFoundError):
            with _files._whole(self.path("nowhere/file")):
                pass

    def test_savers_in_two_processes_do_not_mix(self):
        for name in ("m.keras", "m.weights.h5", "m.safetensors", "m.npz"):
            path = self.path(name)
            model = keras.Sequential([keras.Input((64,)), L.Dense(512), L.Dense(4)])
            savers = [subprocess.Popen([sys.executable, "-B", "-c", SAVER, path, str(k), "15"]) for k in (1, 2)]
            read = 0
            while any(s.poll() is None for s in savers) or not read:
                if not os.path.exists(path):
                    continue
                if name.endswith(".keras"):
                    model = keras.models.load_model(path)
                else:
                    model.load_weights(path)
                self.assertEqual(len({float(v) for w in model.get_weights() for v in (w.min(), w.max())}), 1)
                read += 1
            self.assertEqual([s.returncode for s in savers], [0, 0])
        self.assertEqual(sorted(os.listdir(self.folder.name)), sorted(["m.keras", "m.weights.h5", "m.safetensors", "m.npz"]))

    def test_a_finished_cache_is_not_written_over(self):
        def numbers(n):
            return tf.data.Dataset.range(n).map(lambda x: x * n).cache(self.path("cache"))
        slow, fast = iter(numbers(4)), iter(numbers(3))
        self.assertEqual(int(next(slow)), 0)
        self.assertEqual([int(x) for x in fast], [0, 3, 6])
        self.assertEqual([int(x) for x in slow], [4, 8, 12])
        self.assertEqual([int(x) for x in numbers(5)], [0, 3, 6])
        self.assertEqual(os.listdir(self.folder.name), ["cache"])

    def test_checkpoints_and_saved_modules_are_whole(self):
        """The file that names another is written last, and what it named before goes then."""
        module = tf.Module()
        module.v = tf.Variable([1.0, 2.0])
        for k in range(2):
            module.v.assign([k, k])
            tf.saved_model.save(module, self.path("out"))
            self.assertEqual(tf.saved_model.load(self.path("out")).v.numpy().tolist(), [k, k])
            self.assertEqual(len([n for n in os.listdir(self.path("out")) if n.startswith("variables")]), 1)
        checkpoint = tf.train.Checkpoint(v=module.v)
        path = checkpoint.save(self.path("ckpt/c"))
        self.assertEqual(sorted(os.listdir(self.path("ckpt"))), ["c-1.npz", "checkpoint"])
        module.v.assign([9, 9])
        checkpoint.restore(path)
        self.assertTrue(np.array_equal(module.v, [1, 1]))


if __name__ == "__main__":
    unittest.main()
