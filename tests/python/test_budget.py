#!/usr/bin/env python3
"""Programs stay inside their budget: `python -m snug --budget B` in a memory cgroup whose limit is B, interpreter and NumPy included.
Nobody is killed and the counted peak stays within B. The large case is conv32-pool-dense10 on 256 pictures of 1024x1024x3 in 2 GiB, traced
and as a plain eager loop: one step each, ten with SNUG_TEST_FULL."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

IN_CGROUP = os.path.join(os.path.dirname(sys.prefix), "in_cgroup")
FULL = bool(os.environ.get("SNUG_TEST_FULL"))
MIB = 1 << 20

PROGRAM = """
import sys
import tensorflow as tf
mode, batch, side, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
model = tf.keras.Sequential([tf.keras.layers.Conv2D(32, 3, activation="relu", input_shape=(side, side, 3)),
                             tf.keras.layers.MaxPooling2D(), tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam()
def step(x, y):
    with tf.GradientTape() as tape:
        prediction = model(x, training=True)
        loss = loss_of(y, prediction)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss
if mode == "function":
    step = tf.function(step)
for _ in range(steps):
    x = tf.random.normal((batch, side, side, 3))
    y = tf.random.uniform((batch,), 0, 10, dtype=tf.int32)
    print("loss", float(step(x, y)))
"""


class Held(unittest.TestCase):
    def run_one(self, mode, batch, side, steps, budget):
        with tempfile.TemporaryDirectory() as folder:
            report, program = os.path.join(folder, "report.json"), os.path.join(folder, "train.py")
            with open(program, "w") as f:
                f.write(PROGRAM)
            run = subprocess.run([IN_CGROUP, str(budget), report, sys.executable, "-B", "-m", "snug", "--budget", str(budget), program,
                                  mode, str(batch), str(side), str(steps)], capture_output=True, text=True)
            if run.returncode == 77:
                self.skipTest(run.stderr)
            with open(report) as f:
                group = json.load(f)
        self.assertFalse(group["killed"], run.stderr)
        self.assertLessEqual(group["counted_peak_bytes"], budget, run.stderr)
        return run

    def test_small_steps_in_few_bytes(self):
        for mode in ("function", "eager"):
            for batch, budget in ((32, 96), (64, 96), (256, 112)):
                with self.subTest(mode=mode, batch=batch, budget=budget):
                    run = self.run_one(mode, batch, 64, 3, budget * MIB)
                    self.assertEqual(run.returncode, 0, run.stderr)
                    self.assertEqual(run.stdout.count("loss"), 3)

    def test_what_does_not_fit_is_refused_and_not_killed(self):
        run = self.run_one("function", 32, 512, 1, 160 * MIB)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("ResourceExhaustedError", run.stderr)
        self.assertRegex(run.stderr, "smallest budget")

    def test_256_large_pictures_in_2_gib(self):
        for mode in ("function", "eager"):
            with self.subTest(mode=mode):
                run = self.run_one(mode, 256, 1024, 10 if FULL else 1, 2048 * MIB)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertIn("loss", run.stdout)


if __name__ == "__main__":
    unittest.main()
