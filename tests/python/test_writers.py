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
from snug.keras import _saving
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


# The same into one folder: a dataset, a module, numbered checkpoints.
FOLDER_SAVER = """
import sys, numpy as np
import snug.tensorflow as tf
path, value, times = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
module = tf.Module()
module.a, module.b = tf.Variable(np.full(500, value, "float32")), tf.Variable(np.full(90, value, "float32"))
data = tf.data.Dataset.from_tensor_slices(np.full((2, 500), value, "float32"))
checkpoint = tf.train.Checkpoint(v=module.a)
for k in range(times):
"""
FOLDERS = {"data": "    data.save(path)", "module": "    tf.saved_model.save(module, path)",
           "manager": "    tf.train.CheckpointManager(checkpoint, path, max_to_keep=1).save(2 * k + int(value))"}


# Under a budget: the most that was written of a file before the disk was waited for.
SLOW = """
import os, sys
import numpy as np, tensorflow as tf
from tensorflow import keras
from snug import _files
most, sync = [0], os.fdatasync
def write(self, data, real=_files._Written.write):
    before, n = self.waiting, real(self, data)
    most[0] = max(most[0], before + n)
    return n
def fdatasync(fd):
    synced.append(fd)
    sync(fd)
synced, os.fdatasync, _files._Written.write = [], fdatasync, write
m = keras.Sequential([keras.Input((1024,)), keras.layers.Dense(3072)])
getattr(m, sys.argv[2])(sys.argv[1])
print(most[0], len(synced))
"""


class WritersTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_under_a_budget_little_waits_in_the_cache(self):
        for name, how, files in (("m.keras", "save", 2), ("m.weights.h5", "save_weights", 1), ("m.npz", "save_weights", 1),
                                 ("m.safetensors", "save_weights", 1), ("m.h5", "save", 1)):
            path = self.path(name)
            with open(self.path("slow.py"), "w") as file:
                file.write(SLOW)
            done = subprocess.run([sys.executable, "-B", "-m", "snug", "--budget", "200MiB", self.path("slow.py"), path, how], capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            most, times = map(int, done.stdout.split())
            self.assertGreater(os.path.getsize(path), 12 << 20)
            self.assertLessEqual(most, 5 << 20, name)
            self.assertGreaterEqual(times, 2 * files, name)

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

    def test_savers_into_one_folder_leave_no_file_and_fail_not(self):
        """Each removes what the notes named before, which another one may have removed already; a reader finds what they name."""
        for name, program in FOLDERS.items():
            path = self.path(name)
            savers = [subprocess.Popen([sys.executable, "-B", "-c", FOLDER_SAVER + program, path, str(k), "8"]) for k in (1, 2)]
            read = 0
            while any(s.poll() is None for s in savers) or not read:
                if not os.path.exists(os.path.join(path, {"data": "dataset.json", "module": "snug_model.json", "manager": "checkpoint"}[name])):
                    continue
                if name == "data":
                    try:
                        found = [float(x) for row in tf.data.Dataset.load(path) for x in (row[0], row[-1])]
                    except tf.errors.NotFoundError:         # saved anew between load and the first element
                        continue
                elif name == "module":
                    module = tf.saved_model.load(path)
                    found = [float(module.a[0]), float(module.b[-1])]
                else:
                    found = [0.0]
                    self.assertTrue(tf.train.latest_checkpoint(path))
                self.assertEqual(len(set(found)), 1)
                read += 1
            self.assertEqual([s.returncode for s in savers], [0, 0], name)
            if name != "manager":
                self.assertEqual(len([n for n in os.listdir(path) if n.startswith(("elements", "variables-"))]), 1, name)

    def test_a_reader_of_a_whole_model_stays_with_the_file_it_opened(self):
        for k in (1, 2):
            model = keras.Sequential([keras.Input((4,)), L.Dense(k)])
            model.set_weights([np.full(w.shape, k, "float32") for w in model.get_weights()])
            model.save(self.path(f"{k}.keras"))
        real = _saving._config_of

        def replaced(archive):
            os.replace(self.path("2.keras"), self.path("1.keras"))
            return real(archive)
        _saving._config_of = replaced
        try:
            model = keras.models.load_model(self.path("1.keras"))
        finally:
            _saving._config_of = real
        self.assertEqual(model.get_weights()[0].tolist(), [[1.0]] * 4)

    def test_what_killed_writers_left_goes(self):
        """Unfinished files under names of their own, and finished ones that no notes name."""
        model = keras.Sequential([keras.Input((4,)), L.Dense(2)])
        code = "import os, sys; sys.argv[2:] = ['1', '1']; from snug.keras import _hdf5; _hdf5.write = lambda *a: os._exit(9)\n"
        subprocess.run([sys.executable, "-B", "-c", code + SAVER, self.path("m.keras")])
        left = os.listdir(self.folder.name)
        self.assertEqual(len(left), 2)
        module = tf.Module()
        module.v = tf.Variable([1.0])
        tf.saved_model.save(module, self.path("out"))
        tf.data.Dataset.range(2).save(self.path("data"))
        left = [self.path(n) for n in left] + [self.path("out/variables-0123456789abcdef.npz"), self.path("data/elements-0123456789abcdef")]
        for name in left:
            open(name, "a").close()
            os.utime(name, (1, 1))
        open(self.path("data/elements-0123456789abcdee"), "w").close()         # of a writer that is at work
        model.save(self.path("m.keras"))
        tf.saved_model.save(module, self.path("out"))
        tf.data.Dataset.range(2).save(self.path("data"))
        self.assertEqual([n for n in left if os.path.exists(n)], [])
        self.assertTrue(os.path.exists(self.path("data/elements-0123456789abcdee")))

    def test_a_manager_removes_its_own_files_alone(self):
        """What the state of a folder says is a file's word."""
        os.makedirs(self.path("c"))
        v, mine = tf.Variable([1.0]), self.path("mine.npz")
        tf.train.Checkpoint(v=v).write(mine[:-4])
        with open(self.path("c/checkpoint"), "w") as file:
            file.write('model_checkpoint_path: "../mine"\n' + f'all_model_checkpoint_paths: "../mine"\nall_model_checkpoint_paths: "{mine[:-4]}"\n')
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), self.path("c"), max_to_keep=1)
        manager.save()
        self.assertTrue(os.path.exists(mine))
        real, named = os.unlink, []

        def unlink(path):
            named.append(tf.train.latest_checkpoint(self.path("c")))
            real(path)
        os.unlink = unlink
        try:
            new = manager.save()
        finally:
            os.unlink = real
        self.assertEqual(named, [new])          # a kill there leaves a state whose file is there

    def test_rows_of_two_loggers_do_not_overlap(self):
        one, two = (keras.callbacks.CSVLogger(self.path("log")) for _ in range(2))
        one.on_train_begin()
        one.on_epoch_end(0, {"loss": 0.123456789})
        two.on_train_begin()
        for k in range(3):
            two.on_epoch_end(k, {"loss": 0.5})
            one.on_epoch_end(k + 1, {"loss": 0.123456789})
        one.on_train_end(), two.on_train_end()
        with open(self.path("log")) as file:
            self.assertEqual({line.count(",") for line in file.read().splitlines()}, {2})

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
