#!/usr/bin/env python3
"""Whatever makes bytes asks the budget first: scripts in memory cgroups of exactly their budget stay within it or get an error with
numbers, and are never killed. The number that a refusal names suffices, and so does every larger one."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

CAGE = os.environ.get("SNUG_IN_CGROUP")
FULL = bool(os.environ.get("SNUG_TEST_FULL"))
MIB = 1 << 20
BELOW_ANY = MIB     # what no process starts in
TF = "import tensorflow as tf\n"


NUMBER = r"smallest budget for it is ([\d.]+) MiB|([\d.]+) MiB would do"


def number_in(text):
    """The budget that a refusal names, in whole pages."""
    found = re.search(NUMBER, text)
    return int(float(found.group(1) or found.group(2)) * MIB) // 4096 * 4096


class Held(unittest.TestCase):
    empty = 0       # bytes that a script counts that computes one number, with NumPy

    def with_room(self, mib):
        """A budget of so many MiB more than that."""
        if not Held.empty:
            code, _, err = self.run_within(1024 * MIB, "import numpy\n" + TF + "float(tf.ones(()))\n")
            self.assertEqual(code, 0, err)
            Held.empty = self.counted
        return (Held.empty + mib * MIB) // 4096 * 4096

    def run_within(self, budget, text, *options):
        """(exit code, stdout, stderr) in a cgroup of the budget; never killed, never counted beyond it."""
        if not CAGE:
            self.skipTest("SNUG_IN_CGROUP does not name the program in_cgroup")
        with tempfile.TemporaryDirectory() as folder:
            script, report = os.path.join(folder, "script.py"), os.path.join(folder, "report.json")
            with open(script, "w") as f:
                f.write(text)
            command = [CAGE, str(budget), report, sys.executable, "-B", "-m", "snug", "--budget", str(budget), *options, script]
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=600)
            if done.returncode == 77:
                self.skipTest(done.stderr)
            with open(report) as f:
                told = json.load(f)
        self.assertFalse(told["killed"], text)
        self.assertEqual(told["signal"], 0, done.stderr)
        self.assertLessEqual(told["counted_peak_bytes"], budget, text + done.stderr)
        self.counted = told["counted_peak_bytes"]
        return done.returncode, done.stdout, done.stderr

    def refused(self, budget, text, error="ResourceExhaustedError"):
        code, _, err = self.run_within(budget, text)
        self.assertEqual(code, 1, text + err)
        self.assertIn(error, err, text)
        self.assertRegex(err, r"budget of [\d.]+ MiB", text)
        self.assertRegex(err, NUMBER, text)


class Start(Held):
    def test_below_the_interpreter_is_refused_at_once(self):
        code, out, err = self.run_within_any(BELOW_ANY, "print('ran')")
        self.assertEqual((code, out), (3, ""))
        enough = number_in(err)
        self.assertEqual(self.run_within(1024 * MIB, "print('ran')")[:2], (0, "ran\n"))
        self.assertTrue(self.counted < enough < self.counted + 10 * MIB, f"{self.counted}: {err}")
        self.assertEqual(self.run_within(enough + MIB, "print('ran')")[:2], (0, "ran\n"))

    def run_within_any(self, budget, text):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "script.py")
            with open(script, "w") as f:
                f.write(text)
            done = subprocess.run([sys.executable, "-B", "-m", "snug", "--budget", str(budget), script], capture_output=True, text=True)
            return done.returncode, done.stdout, done.stderr

    def test_a_budget_set_too_late_is_refused_and_the_one_before_stays(self):
        first = self.with_room(25)
        text = (f"import snug\nsnug.budget({first})\ntry:\n    snug.budget({BELOW_ANY})\nexcept snug.BudgetError as error:\n    print(error)\n"
                "print(snug.memory().budget_bytes)\n")
        code, out, err = self.run_within_any(self.with_room(61), text)
        self.assertEqual(code, 0, err)
        self.assertIn("would do", out)
        self.assertEqual(out.splitlines()[-1], str(first))


class Bytes(Held):
    def test_arrays_of_tensors(self):
        for text in ("tf.zeros((12000, 12000)).numpy()", "tf.ones((32, 1 << 20)).numpy()", "tf.fill((32, 1 << 20), 2.0).numpy()",
                     "tf.random.normal((32, 1 << 20)).numpy()", "kept = [tf.random.normal((512, 512)).numpy() for i in range(200)]",
                     "tf.data.Dataset.from_tensor_slices(tf.random.normal((12000, 12000)))"):
            self.refused(self.with_room(57), TF + text)

    def test_the_number_named_first_suffices_for_tensor_and_array(self):
        """What is recorded and its copy are judged together; what can be made number by number needs no bytes of its own."""
        for text, most in (("tf.zeros((4000, 4000)).numpy()", 76), ("(tf.random.normal((4000, 4000)) * 2).numpy()", 136),
                           ("tf.data.Dataset.from_tensor_slices(tf.random.normal((4000, 4000)))", 77)):
            code, _, err = self.run_within(self.with_room(33), TF + text)
            self.assertEqual(code, 1, err)
            enough = number_in(err)
            self.assertLess(enough, self.with_room(most), text)
            code, _, err = self.run_within(enough, TF + text)
            self.assertEqual(code, 0, text + err)

    def test_printing_makes_only_what_is_printed(self):
        code, out, err = self.run_within(self.with_room(57), TF + "x = tf.random.normal((12000, 12000))\nprint(x)\nprint(repr(x)[:40])\n"
                                         "tf.print(tf.ones((12000, 12000)))\n")
        self.assertEqual(code, 0, err)
        self.assertIn("shape=(12000, 12000), dtype=float32)", out)

    def test_files_texts_and_functions(self):
        many = ("with open('lines', 'w') as f:\n    for _ in range(2000):\n"
                "        f.write('a line of text that is some letters long\\n' * 1000)\n")
        for text in ("next(iter(tf.data.Dataset.range(1 << 25).batch(1 << 25)))", many + "tf.io.read_file('lines')",
                     "tf.strings.as_string(tf.range(4000000))", "tf.io.serialize_tensor(tf.random.normal((32, 1 << 19)))"):
            self.refused(self.with_room(41), TF + text)
        for text in (many + "kept = list(tf.data.TextLineDataset('lines'))", "tf.random.gamma((1 << 24,), 2.0)",
                     "tf.unique(tf.random.uniform((4000000,), maxval=10**6, dtype=tf.int32))[0].numpy()"):
            self.refused(self.with_room(41), TF + text, "Error")

    def test_numpy_and_the_interpreter_ask(self):
        for text in ("import numpy as np\nkept = [np.ones(1 << 20) for i in range(50)]", "import numpy as np\nnp.zeros(20 << 20)",
                     "import numpy as np\nkept = [np.ones(5000) for i in range(20000)]", "kept = list(range(3000000))", "s = b'x' * (55 << 20)\ns + s",
                     TF + "float(tf.ones(()))\nimport numpy as np\nx = np.zeros(20 << 20)",
                     "kept = [str(i) for i in range(10**7)]", "kept = [bytes(5000) for i in range(10**5)]"):
            self.refused(self.with_room(57), text, "MemoryError")

    def test_threads_ask_and_what_was_refused_is_no_harm(self):
        text = TF + ("import threading, numpy as np\nfailed = []\ndef work():\n    float(tf.ones(()))\n    try:\n        np.ones(1 << 24)\n"
                     "    except MemoryError:\n        failed.append(1)\nt = threading.Thread(target=work)\nt.start(), t.join()\n"
                     "a = np.arange(100000).astype('f8')\na.resize(400000, refcheck=False)\nb = np.zeros((300, 300))\n"
                     "print(failed, a.sum(), b.sum(), float(tf.reduce_sum(tf.ones((50, 50)))))\n")
        code, out, err = self.run_within(self.with_room(57), text)
        self.assertEqual((code, out), (0, "[1] 4999950000.0 0.0 2500.0\n"), err)

    def test_what_numpy_holds_is_told_and_given_back(self):
        text = ("import numpy as np, snug\nsnug.memory()\na = np.ones(1 << 20)\nprint(snug.memory()['arrays']['bytes'] >= a.nbytes)\n"
                "del a\nprint(snug.memory()['arrays']['bytes'])\n")
        code, out, err = self.run_within(self.with_room(57), text)
        self.assertEqual((code, out), (0, "True\n0\n"), err)


class Spill(Held):
    def test_shuffles_and_caches_larger_than_the_budget(self):
        data = TF + "d = tf.data.Dataset.range(3000).map(lambda i: tf.fill((64, 64, 3), tf.cast(i, tf.float32)))\n"
        count = ".batch(16)\nn, s = 0, 0\nfor _ in range(2):\n    for x in d:\n        n, s = n + len(x), s + float(tf.reduce_sum(x[:, 0, 0, 0]))\nprint(n, s)\n"
        for stage, what in (("d = d.shuffle(3000)", "the shuffle holds"), ("d = d.cache()", "the cache holds")):
            code, _, err = self.run_within(self.with_room(33), data + stage + count)
            self.assertEqual(code, 1, err)
            self.assertIn(what, err)
            self.assertIn("give a folder to spill to", err)
            self.assertEqual(self.run_within(number_in(err), data + stage + count)[:2], (0, f"6000 {3000 * 2999 / 2 * 2}\n"), err)
            with tempfile.TemporaryDirectory(dir=os.path.dirname(CAGE)) as folder:      # a disk, where others may be memory
                code, out, err = self.run_within(self.with_room(33), data + stage + count, "--spill", folder)
            self.assertEqual((code, out), (0, f"6000 {3000 * 2999 / 2 * 2}\n"), err)


FIT = """
import numpy as np, tensorflow as tf
from tensorflow import keras
x = np.ones((100, 1024), "f4")
m = keras.Sequential([keras.Input((1024,)), keras.layers.Dense(%d), keras.layers.Dense(1)])
m.compile("adam", "mse")
m.fit(x, x[:, :1], verbose=0, epochs=3, validation_split=.25, callbacks=[%s])
print("done")
"""
PICTURES = """
import numpy as np, tensorflow as tf
from tensorflow import keras
L = keras.layers
m = keras.Sequential([keras.Input((32, 32, 3)), L.Conv2D(32, 3, activation="relu"), L.Conv2D(32, 3, activation="relu"), L.Flatten(),
                      L.Dense(256), L.Dense(10)])
m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
x, y = np.ones((70, 32, 32, 3), "f4"), np.zeros(70)
m.fit(x, y, batch_size=32, verbose=0, epochs=2, validation_data=(x[:40], y[:40]), callbacks=[%s])
print("done")
"""


LARGE_BATCH = """
import numpy as np, tensorflow as tf
from tensorflow import keras
L = keras.layers
m = keras.Sequential([keras.Input((256,)), L.Dense(64, activation="relu"), L.Dense(10)])
m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x, y = np.ones((20000, 256), "%s"), np.zeros(20000, "i4")
m.fit(x, y, batch_size=8192, epochs=2, verbose=0)
print("done")
"""


# Batches that come from others: what makes them may run ahead of the step.
STREAMS = """
import numpy as np, tensorflow as tf
from tensorflow import keras
L = keras.layers
x, y = np.ones((400, 32, 32, 3), "f4"), np.zeros(400, "i4")
m = keras.Sequential([keras.Input((32, 32, 3)), L.Conv2D(16, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(), L.Dense(10)])
m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
d = tf.data.Dataset.from_tensor_slices((x, y))
def rows():
    for i in range(0, 400, 100):
        yield x[i:i + 100], y[i:i + 100]
%s
print("done")
"""
STREAMED = ("m.fit(d.shuffle(64).batch(100).prefetch(2), epochs=2, verbose=0)", "m.fit(rows(), verbose=0)",
            "m.fit(d.map(lambda a, b: (a * 2, b), num_parallel_calls=4).batch(100).prefetch(-1), epochs=2, verbose=0)",
            "m.evaluate(d.batch(100).prefetch(4), verbose=0)", "m.predict(d.batch(100).map(lambda a, b: a).prefetch(2), verbose=0)",
            "m.fit(x, y, batch_size=16, verbose=0, validation_data=d.batch(200))")


class Fit(Held):
    def test_one_number_for_batches_of_others_and_their_step(self):
        """Refused for the first batch or for its step: what the refusal names suffices for both, and for batches that are made ahead."""
        for call in STREAMED if FULL else STREAMED[:2]:
            text, budget, refusals = STREAMS % call, self.with_room(11), 0
            for _ in range(4):      # objects of the interpreter come first
                code, out, err = self.run_within(budget, text)
                if code == 0:
                    break
                refusals += "ResourceExhaustedError" in err
                budget = number_in(err)
            self.assertEqual((code, out[-5:]), (0, "done\n"), call + err)
            self.assertIn(refusals, (1, 2), call)  # one more where the first was of less than a batch
            self.assertEqual(self.run_within(int(budget * 1.02) // 4096 * 4096, text)[0], 0)

    def told(self, budget, text):
        code, _, err = self.run_within(budget, text)
        self.assertEqual(code, 1, err)
        self.assertIn("smallest budget for it is", err)
        return number_in(err)

    def test_the_number_named_first_suffices_for_all_of_fit(self):
        early = "keras.callbacks.EarlyStopping(patience=1, restore_best_weights=True)"
        for text in (FIT % (3000, ""), FIT % (3000, early), FIT % (3000, "keras.callbacks.BackupAndRestore('backup')"),
                     PICTURES % ("keras.callbacks.ModelCheckpoint('m.keras'), " + early)):
            code, out, err = self.run_within(self.told(self.with_room(11), text), text)
            self.assertEqual((code, out), (0, "done\n"), text + err)

    def test_the_number_for_a_large_batch_is_what_it_takes(self):
        """Rows of arrays are cut when the batch before them has gone: no second one is booked."""
        for kind in ("f4", "f8") if FULL else ("f8",):
            text, enough, code = LARGE_BATCH % kind, self.with_room(33 if kind == "f4" else 69), 1
            for _ in range(4):      # the arrays, a batch, the step
                code, out, err = self.run_within(enough, text)
                if code == 0:
                    break
                enough = number_in(err)
            self.assertEqual((code, out), (0, "done\n"), err)
            self.assertGreater(self.counted, .95 * enough)
            self.assertEqual(self.run_within(int(enough * 1.02) // 4096 * 4096, text)[:2], (0, "done\n"))

    def test_callbacks_that_save_need_little_more(self):
        self.assertEqual(self.run_within(self.with_room(91), FIT % (6000, ""))[0], 0)
        for callback in ("ModelCheckpoint('m.keras')", "ModelCheckpoint('m.h5')", "BackupAndRestore('backup')",
                         "ModelCheckpoint('m.weights.h5', save_weights_only=True)"):
            code, out, err = self.run_within(self.with_room(91), FIT % (6000, "keras.callbacks." + callback))
            self.assertEqual((code, out), (0, "done\n"), callback + err)


PREDICT = """
import numpy as np, tensorflow as tf
from tensorflow import keras
m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(128)])
x = np.arange(400000, dtype="f4").reshape(50000, 8) / 400000
n = 0
def rows():
    for i in range(0, len(x), 250):
        yield x[i:i + 250]
p = %s
p = np.concatenate(p) if isinstance(p, list) else p
assert all(np.array_equal(p[i:i + 10], m.predict(x[i:i + 10], verbose=0)) for i in (0, 10240, len(p) - 10))
print(p.shape)
"""


class Predict(Held):
    def hops(self, text):
        """Refusals from a budget with room for data, but none for the result, until all of it runs; and the budget it has then."""
        budget, n = self.with_room(25), 0
        while True:
            code, out, err = self.run_within(budget, text)
            if code == 0:
                self.assertEqual(out.splitlines()[-1], "(50000, 128)")
                return n, budget
            n, budget = n + 1, number_in(err)
            self.assertLess(n, 12, err)

    def test_the_number_named_first_suffices_for_the_whole_result(self):
        more = ("m.predict(tf.data.Dataset.from_tensor_slices(x).batch(256), verbose=0)", "m.predict(rows(), steps=200, verbose=0)")
        for call in ("m.predict(x, batch_size=256, verbose=0)", "m.predict_on_batch(x)") + (more if FULL else ()):
            hops, enough = self.hops(PREDICT % call)
            self.assertEqual(hops, 1, call)
            self.assertLess(enough, self.with_room(69 if "on_batch" in call else 45), call)

    def test_one_number_for_large_batches_and_a_remainder(self):
        """Results of one batch have gone when those of the next come, and rows that are left over are one plan more."""
        text = PREDICT.split("n = 0")[0] + ("x = x[:20000]\nsaid = keras.callbacks.LambdaCallback()\n"
                                            "said.on_predict_batch_end = lambda i, logs=None: print(i)\n"
                                            "m.predict(x, batch_size=4096, verbose=0, callbacks=[said])\n")
        code, _, err = self.run_within(self.with_room(22), text)
        self.assertEqual(code, 1)
        enough = number_in(err)
        for below in (0, 1, 2, 3, 4, 5, 6, 7):      # what has a first batch has them all
            code, out, err = self.run_within(enough - below * MIB // 4, text)
            self.assertEqual((code, out), (0, "0\n1\n2\n3\n4\n") if out or below == 0 else (1, ""), err)

    def test_a_result_of_unknown_length_grows_by_half_and_is_never_there_twice(self):
        hops, enough = self.hops(PREDICT % "m.predict(rows(), verbose=0)")
        self.assertLess(hops, 5)
        self.assertLess(enough, self.with_room(57))


STEP = """
import tensorflow as tf
m = tf.keras.Sequential([tf.keras.layers.Conv2D(8, 3, activation="relu"), tf.keras.layers.MaxPooling2D(), tf.keras.layers.Flatten(),
                         tf.keras.layers.Dense(10)])
optimizer = tf.keras.optimizers.Adam(1e-3)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, m(x, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, m.trainable_variables), m.trainable_variables))
    return loss
for i in range(3):
    x = tf.random.normal((4096, 16, 16, 3))
    y = tf.random.uniform((4096,), 0, 10, dtype=tf.int32)
    loss = float(train(x, y))
print(loss)
"""


class Monotone(Held):
    def at_start(self, budget):
        code, _, err = Start.run_within_any(self, budget, STEP)
        self.assertEqual(code, 3, err)
        return err

    def test_what_fits_fits_in_more(self):
        budget, code = BELOW_ANY, 1
        for hop in range(4):        # below what the interpreter needs, below its objects', the step's
            code, loss, err = self.run_within(budget, STEP) if hop > 0 else (1, "", self.at_start(budget))
            if code == 0:
                break
            budget = number_in(err)
        self.assertEqual(code, 0, err)
        steps = range(1, 9) if FULL else (1, 2, 3, 5, 8)
        for b in [budget] * 3 + [budget + i * MIB for i in steps] + [int(budget * k) // 4096 * 4096 for k in (1.01, 1.03, 1.15, 2)]:
            code, out, err = self.run_within(b, STEP)
            self.assertEqual(code, 0, f"{budget} suffices, {b} does not: {err}")
            self.assertAlmostEqual(float(out), float(loss), 4)


if __name__ == "__main__":
    unittest.main()
