#!/usr/bin/env python3
"""Loops find their plans again: what changes from step to step (numbers, rows, draws, learning rates, who looks) is no structure."""
import os
import resource
import unittest

import numpy as np

import snug

snug.install()
import tensorflow as tf  # noqa: E402
from snug import _C  # noqa: E402

STEPS = 1000


class Loops(unittest.TestCase):
    def setUp(self):
        r = np.random.RandomState(0)
        self.x, self.y = tf.constant(r.rand(1010, 8).astype("f4")), tf.constant(r.rand(1010, 1).astype("f4"))
        self.model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dropout(0.1),
                                          tf.keras.layers.Dense(1)])
        self.optimizer = tf.keras.optimizers.Adam()

    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.model(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    def plans(self, body):
        before = _C.info()["misses"]
        for i in range(STEPS):
            body(i)
        return _C.info()["misses"] - before

    def test_a_loop_that_prints_nothing(self):
        self.assertLessEqual(self.plans(lambda i: self.step(self.x[:32], self.y[:32])), 3)

    def test_a_loop_that_looks_at_each_loss(self):
        self.assertLessEqual(self.plans(lambda i: float(self.step(self.x[:32], self.y[:32]))), 3)

    def test_a_loop_that_keeps_each_loss(self):
        kept = []
        self.assertLessEqual(self.plans(lambda i: kept.append(self.step(self.x[:32], self.y[:32]))), 3)
        self.assertTrue(np.isfinite([float(v) for v in kept]).all())

    def test_another_learning_rate_in_each_step(self):
        def body(i):
            self.optimizer.learning_rate.assign(0.1 / (i + 1))
            float(self.step(self.x[:32], self.y[:32]))
        self.assertLessEqual(self.plans(body), 3)

    def test_rows_that_move_on_and_a_short_last_batch(self):
        def body(i):
            k = i % 32  # the last one has 18 rows
            float(self.step(self.x[k * 32:(k + 1) * 32], self.y[k * 32:(k + 1) * 32]))
        self.assertLessEqual(self.plans(body), 3)

    def test_random_numbers_in_each_step(self):
        self.assertLessEqual(self.plans(lambda i: float(self.step(tf.random.normal((32, 8)), tf.random.uniform((32, 1))))), 3)

    def test_many_lengths_do_not_grow(self):
        lstm = tf.keras.layers.LSTM(4)
        for i in range(500):
            float(tf.reduce_sum(lstm(tf.ones((2, i + 1, 3)))))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for i in range(500):
            float(tf.reduce_sum(lstm(tf.ones((2, i + 1, 3)))))
        if "SNUG_TEST_SANITIZED" not in os.environ:     # freed blocks are there for a while
            self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak, 4096)
        self.assertLessEqual(_C.info()["plans"], 256)


if __name__ == "__main__":
    unittest.main()
