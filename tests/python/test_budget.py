#!/usr/bin/env python3
"""The example of the README: Conv2D(32)-MaxPooling-Dense(10) on 256 random pictures, trained with Adam in a cgroup of less
bytes than the pictures alone have, interpreter and NumPy included: traced, and as a plain eager loop, two steps each. Pictures
of 256x256x3 in 176 MiB; with SNUG_TEST_FULL those of the README, 1024x1024x3 in 2 GiB (a step of them takes two minutes of a core)."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

STEPS = 2
SCRIPT = """
import sys
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Conv2D(32, 3, activation="relu"), tf.keras.layers.MaxPooling2D(),
                             tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
optimizer = tf.keras.optimizers.Adam(1e-3)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def train(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


size = int(sys.argv[3])
step = tf.function(train) if sys.argv[1] == "traced" else train
for i in range(int(sys.argv[2])):
    x = tf.random.normal((256, size, size, 3))
    y = tf.random.uniform((256,), 0, 10, dtype=tf.int32)
    print(float(step(x, y)))
"""

UNDO = """
import tensorflow as tf

n = 4000000
v, w = tf.Variable(tf.ones((n,))), tf.Variable(tf.zeros((n,)))


@tf.function
def step(x):
    v.assign_add(tf.ones((n,)))
    w.assign(tf.debugging.check_numerics(v / x, "nan"))


try:
    step(tf.constant(2.0))
    before = float(v[0])
    try:
        step(tf.constant(0.0))
        float(w[0])
    except tf.errors.InvalidArgumentError:
        print("taken back" if float(v[0]) == before else "lost")
except tf.errors.ResourceExhaustedError as e:
    print(e)
"""


class Budget(unittest.TestCase):
    def train(self, mode):
        cage = os.environ.get("SNUG_IN_CGROUP")
        if not cage:
            self.skipTest("SNUG_IN_CGROUP does not name the program in_cgroup")
        size, budget = (1024, "2GiB") if os.environ.get("SNUG_TEST_FULL") else (256, "176MiB")
        with tempfile.TemporaryDirectory() as folder:
            script, report = os.path.join(folder, "train.py"), os.path.join(folder, "report.json")
            with open(script, "w") as f:
                f.write(SCRIPT)
            command = [cage, budget, report, sys.executable, "-B", "-m", "snug", "--budget", budget, script, mode, str(STEPS), str(size)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 77:
                self.skipTest(done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(report) as f:
                counted = json.load(f)
            self.assertLess(counted["counted_peak_bytes"], counted["limit_bytes"])
        losses = [float(line) for line in done.stdout.split()]
        self.assertEqual(len(losses), STEPS)
        self.assertTrue(all(0 < loss < 1e4 for loss in losses), losses)
        return losses

    def test_a_write_that_may_be_taken_back_is_booked(self):
        """What is written before it may be refused is copied first: in its bytes, or the step is refused. A model is never torn."""
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "undo.py")
            with open(script, "w") as f:
                f.write(UNDO)

            def run(budget):
                done = subprocess.run([sys.executable, "-B", "-m", "snug", "--budget", budget, script], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                return done.stdout

            told = re.search(r"smallest budget for it is ([0-9.]+) MiB", run("80MiB"))
            self.assertTrue(told)
            self.assertIn("taken back", run(told[1] + "MiB"))
            for part in (0.86, 0.9, 0.94, 0.98):  # without the copy it would run at all of them
                self.assertRegex(run(f"{part * float(told[1]):.1f}MiB"), "taken back|smallest budget")

    def test_traced_and_eager_steps_fit_and_agree(self):
        """But for rounding: what the process takes itself differs by some pages, and with it the number of slices."""
        for traced, eager in zip(self.train("traced"), self.train("eager")):
            self.assertLess(abs(traced - eager), 1e-6 * eager)


if __name__ == "__main__":
    unittest.main()
