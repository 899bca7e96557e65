#!/usr/bin/env python3
"""Doors x models x batches x budgets, each in a memory cgroup of exactly its budget: from the smallest one that the refusals name
upward none is killed, counted beyond it or refused, and what was foreseen of each before there was an arena is what it takes, within 2 %
or 1 MiB. Says how many were held."""
import itertools
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_asks

HEAD = """
import numpy as np, tensorflow as tf
from tensorflow import keras
L = keras.layers
rng = np.random.default_rng(0)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
"""
MODELS = {
    "dense": "m = keras.Sequential([keras.Input((64,)), L.Dense(256, activation='relu'), L.Dense(10)])\nx = rng.random((n, 64), dtype='f4')\n",
    "pictures": "m = keras.Sequential([keras.Input((16, 16, 3)), L.Conv2D(16, 3, activation='relu'), L.MaxPooling2D(), L.Flatten(),"
                " L.Dense(10)])\nx = rng.random((n, 16, 16, 3), dtype='f4')\n",
    "words": "i = keras.Input((20,), dtype='int64')\nh = L.Embedding(500, 32)(i)\nh = L.LayerNormalization()(h + L.MultiHeadAttention(2, 16)(h, h))\n"
             "m = keras.Model(i, L.Dense(10)(L.GlobalAveragePooling1D()(h)))\nx = rng.integers(0, 500, (n, 20))\n",
    "series": "m = keras.Sequential([keras.Input((12, 8)), L.LSTM(32, return_sequences=True), L.GRU(16), L.Dense(10)])\n"
              "x = rng.random((n, 12, 8), dtype='f4')\n",
}
# The same under a policy, which comes first; and where layers have their own.
HALVES = ("mixed_bfloat16", "mixed_float16", "bfloat16")
MODELS["own policies"] = MODELS["pictures"].replace("16, 3,", "16, 3, dtype='mixed_bfloat16',").replace("Dense(10", "Dense(10, dtype='float32'")
STEP = """opt = keras.optimizers.Adam()
%sdef step(a, b):
    with tf.GradientTape() as tape:
        value = loss(b, m(a, training=True))
    opt.apply_gradients(zip(tape.gradient(value, m.trainable_variables), m.trainable_variables))
    return value
for k in range(3):
    float(step(tf.constant(x), tf.constant(y)))
"""
COMPILED = "m.compile('adam', loss, metrics=['accuracy'])\n"
DOORS = {
    "fit": COMPILED + "m.fit(x, y, batch_size=max(1, n * 2 // 3), epochs=2, verbose=0, validation_data=(x[:n // 4 + 1], y[:n // 4 + 1]))\n",
    "tf.function": STEP % "@tf.function\n",
    "tape": STEP % "",
    "dataset": COMPILED + "d = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(32).batch(n // 2 + 1).prefetch(2)\nm.fit(d, epochs=2, verbose=0)\n",
    "cache": COMPILED + "d = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (a, b)).cache().batch(n // 2 + 1)\nm.fit(d, epochs=3, verbose=0)\n",
    "callbacks": COMPILED + "m.fit(x, y, batch_size=n, epochs=2, verbose=0, validation_split=.25, callbacks=[keras.callbacks.ModelCheckpoint('m.keras'),"
                 " keras.callbacks.EarlyStopping(patience=1, restore_best_weights=True)])\n",
    "predict": "p = m.predict(x, batch_size=n // 2 + 1, verbose=0)\nassert p.shape == (n, 10)\n",
}
# Slots of 24 MiB: losses, what is saved of them, what NumPy sees, what a plan that reads one makes of it, and a step after an assignment.
SLOTS = """import hashlib, snug, zipfile
keras.utils.set_random_seed(1)
m = keras.Sequential([keras.Input((512,))] + [L.Dense(512, activation='relu') for _ in range(12)] + [L.Dense(1)])
x = rng.random((100, 512), dtype='f4')
y = x[:, :1].copy()
loss, opt = keras.losses.MeanSquaredError(), keras.optimizers.Adam()
m.compile(opt, loss)
%s
for k in range(3):
    print([float(v).hex() for v in train()], sep='')
spilled = snug.memory().info['spilled_bytes']
m.save('m.keras')
with zipfile.ZipFile('m.keras') as z:
    print([hashlib.file_digest(z.open(name), 'sha1').hexdigest() for name in z.namelist() if name.endswith('.h5')])
slots = [v for v in opt.variables if len(v.shape) == 2]
print([hashlib.sha1(v.numpy()).hexdigest() for v in slots], float(tf.reduce_sum(slots[3])).hex())
slots[3].assign(slots[3] * 2.0)
print(train() and hashlib.sha1(slots[3].numpy()).hexdigest(), hashlib.sha1(m.weights[0].numpy()).hexdigest(), float(tf.reduce_sum(slots[3])).hex())
print(np.ones(1 << 20).sum(), train()[0])
print(spilled)
"""
TRAIN = """%sdef step(a, b):
    with tf.GradientTape() as tape:
        value = loss(b, m(a, training=True))
    opt.apply_gradients(zip(tape.gradient(value, m.trainable_variables), m.trainable_variables))
    return value
def train():
    return [step(tf.constant(x[:64]), tf.constant(y[:64]))]
"""
SLOT_DOORS = {
    "fit": "def train():\n    h = m.fit(x, y, batch_size=32, verbose=0, validation_data=(x[:10], y[:10])).history\n    return h['loss'] + h['val_loss']\n",
    "tf.function": TRAIN % "@tf.function\n",
    "tape": TRAIN % "",
}
TELL = "import snug\nprint(snug.memory().info['predicted_peak_bytes'])\n"
MORE_HOPS = 9       # refusals before a script runs whole: the interpreter, NumPy, data, each step


class Doors(test_asks.Held):
    held = halves = 0

    @classmethod
    def tearDownClass(cls):
        print(f"{cls.held} configurations were held, {cls.halves} of them in halves")

    def floor(self, text, *options):
        budget = test_asks.BELOW_ANY
        for _ in range(MORE_HOPS):
            code, _, err = self.run_often(budget, text, *options) if budget > test_asks.BELOW_ANY else self.run_at_start(budget, text)
            if code == 0:
                return budget
            told = test_asks.number_in(err)
            self.assertGreater(told, budget, err)
            budget, self.is_of_a_step = told, "smallest budget for it is" in err
        self.fail(f"{MORE_HOPS} refusals and none suffices: {err}")

    def run_often(self, budget, text, *options):
        """What was named for NumPy's code alone may by chance be, but for some pages, what the steps need."""
        for _ in range(3):
            code, out, err = self.run_within(budget, text, *options)
            if code != 0:
                break
        return code, out, err

    def run_at_start(self, budget, text):
        """The interpreter alone may be beyond that: it is refused before anything runs."""
        start = test_asks.Start("run_within_any")
        return start.run_within_any(budget, text)

    def hold(self, what, text, factors):
        """From what a step's refusal names. Where all steps ran in what was named for less, that may be by chance, as often as it was tried: then
        a step names its number here."""
        floor = self.floor(text)
        for k in factors:
            budget = int(floor * k) // 4096 * 4096
            code, out, err = self.run_within(budget, text + TELL)
            if code != 0 and k == 1 and not self.is_of_a_step:
                floor = budget = test_asks.number_in(err)
                self.is_of_a_step = True
                code, out, err = self.run_within(budget, text + TELL)
            self.assertEqual(code, 0, f"{what}: {floor} suffices, {budget} does not: {err}")
            self.foreseen(f"{what}, {budget}", int(out.splitlines()[-1]), self.counted)
            type(self).held += 1

    def foreseen(self, what, predicted, peak):
        self.assertLessEqual(abs(predicted - peak), max(test_asks.MIB, peak // 50), f"{what}: {predicted} foreseen, {peak} taken")

    def check(self, door, model, n, threads, factors, policy=""):
        text = (HEAD + (policy and f"keras.config.set_dtype_policy('{policy}')\n") + f"tf.config.threading.set_intra_op_parallelism_threads({threads})\nn = {n}\n" + MODELS[model]
                + "y = rng.integers(0, 10, n)\n" + DOORS[door])
        self.hold(f"{door}, {model}, {n}, {threads} threads, {policy}", text, factors)
        type(self).halves += len(factors) if policy or model == "own policies" else 0

    def test_doors(self):
        for door, model, n, threads in (("fit", "dense", 300, 2), ("tf.function", "pictures", 512, 1), ("tape", "words", 16, 2),
                                        ("dataset", "pictures", 40, 1), ("cache", "pictures", 300, 2), ("callbacks", "series", 32, 1),
                                        ("predict", "dense", 2000, 2)):
            self.check(door, model, n, threads, (1, 1, 1.01, 1.15, 2))

    def test_halves(self):
        self.check("fit", "pictures", 64, 2, (1, 1.15), "mixed_float16")
        self.check("tf.function", "own policies", 256, 1, (1, 1.15))

    @unittest.skipUnless(test_asks.FULL, "of make test-full: all doors in halves")
    def test_halves_by_all_doors(self):
        for i, (door, (k, policy)) in enumerate(itertools.product(DOORS, enumerate(HALVES))):
            models = ("dense", "pictures", "words", "series")[:4 if "mixed" in policy else 3]   # orthogonal weights are no halves
            self.check(door, models[(i + k) % len(models)], (1 if door in ("tape", "predict") else 8, 256, 2000)[(i + k) % 3], 1 + i % 2, (1, 1.03, 1.15, 2), policy)
        for i, door in enumerate(DOORS):
            self.check(door, "own policies", 100, 1 + i % 2, (1, 1.03, 1.15, 2))

    def test_factors(self):
        """LAPACK's code comes with the first plan that wants it, and is in the budget that a refusal names; NumPy has brought it, or nobody."""
        bare = "import tensorflow as tf\na = tf.random.normal((200, 200), seed=1)\n"
        few = "[tf.add_n([tf.reduce_sum(tf.cast(f(tf.cast(a[:9, :9], t))[0], 'float32')) for t in ('float32', 'float64') for f in ("
        every = few + "tf.linalg.eigh, tf.linalg.svd, tf.linalg.qr, lambda x: tf.linalg.lstsq(x, x), tf.linalg.inv, " \
                      "tf.linalg.lu, lambda x: tf.linalg.cholesky(x + 99 * tf.eye(9, dtype=t)))])]"
        for head, one in ((HEAD, "tf.linalg.eigh(a)"), (HEAD, "tf.linalg.svd(a, full_matrices=True)"), (bare, "tf.linalg.qr(a)"),
                          (bare, "tf.linalg.lstsq(a, a[:, :3])"), (bare, "tf.linalg.svd(tf.cast(a, 'float64'))"), (bare, "tf.linalg.inv(a)"),
                          (HEAD, "tf.linalg.cholesky(a + 999 * tf.eye(200))"), (bare, every)):
            a = "a = tf.constant(rng.random((200, 200), dtype='f4'))\n" if head is HEAD else ""
            text = f"{head}{a}for k in range(3):\n    print(float(tf.reduce_sum({one}[0])))\n"
            self.hold(one, text, (1, 1, 1.01, 1.15))

    def test_spilled_slots(self):
        """With a folder the floor is far below that without; the numbers are those of a run with room. Slots make way for an array."""
        for door in SLOT_DOORS:
            text = HEAD + SLOTS % SLOT_DOORS[door]
            plain = self.floor(text)
            _, want, _ = self.run_within(4 * plain, text)
            with tempfile.TemporaryDirectory(dir=os.path.dirname(test_asks.CAGE)) as folder:  # a disk, where others may be memory
                floor = self.floor(text, "--spill", folder)
                self.assertLess(floor + 10 * test_asks.MIB, plain, door)
                for k in (1, 1, 1.01, 1.15) if test_asks.FULL else (1, 1.05):
                    code, out, err = self.run_within(int(floor * k) // 4096 * 4096, text + TELL, "--spill", folder)
                    self.assertEqual(code, 0, f"{door}: {floor} suffices, {k} times that does not: {err}")
                    *got, spilled, predicted = out.splitlines()
                    self.assertEqual(got, want.splitlines()[:-1], door)
                    self.assertGreater(int(spilled), test_asks.MIB, door)
                    self.foreseen(door, int(predicted), self.counted)
                    type(self).held += 1

    @unittest.skipUnless(test_asks.FULL, "of make test-full: all doors and models")
    def test_all_doors(self):
        for door in DOORS:
            for threads, model in enumerate(m for m in MODELS if m != "own policies"):
                for n in (1 if door in ("tape", "predict") else 8, 256):
                    self.check(door, model, n, 1 + threads % 2, (1, 1.01, 1.03, 1.15))



if __name__ == "__main__":
    unittest.main()
