#!/usr/bin/env python3
"""Every function of the table with arguments of every kind: a result or a Python exception, nothing else."""
import os
import random
import unittest

import numpy as np

import snug.tensorflow as tf
from snug import _C


class Weird:
    """Looks like a sequence and is none."""

    def __index__(self):
        raise RuntimeError("no index")

    def __len__(self):
        return 3

    def __getitem__(self, i):
        raise KeyError(i)


class Fuzz(unittest.TestCase):
    def setUp(self):
        self.r = random.Random(7)
        variable = tf.Variable(np.ones((2, 3), "f4"))
        self.kinds = [
            lambda: None, lambda: 1, lambda: -1, lambda: 0, lambda: 2.5, lambda: True, lambda: "same", lambda: "float32",
            lambda: tf.float32, lambda: tf.ones((2, 3)), lambda: tf.ones((3,)), lambda: tf.constant([1, 0]), lambda: variable,
            lambda: np.ones((2, 3)), lambda: np.int64(2), lambda: (1, 2), lambda: [], lambda: {}, Weird, lambda: 10 ** 30,
            lambda: float("nan"), lambda: b"x", lambda: tf.zeros((0, 2)), lambda: 2, lambda: -2, lambda: 1e300, lambda: 2 ** 31,
            lambda: 2 ** 63 - 1, lambda: -2 ** 63, lambda: -99, lambda: 32, lambda: (0, 0), lambda: [[0, 0], [0, 0]], lambda: [1] * 9,
            lambda: tf.constant(1), lambda: tf.constant([[1]]), lambda: tf.ones(()), lambda: tf.ones((3, 3)), lambda: tf.ones((1,) * 8),
            lambda: tf.ones((4, 4, 3)), lambda: tf.ones((1, 4, 4, 3)), lambda: tf.constant([-1, 5]), lambda: tf.constant([True, False]),
            lambda: [self.value() for _ in range(2)]]

    def value(self):
        return self.r.choice(self.kinds[:-1] + self.kinds[-1:] * 2)()

    def test_arguments_of_every_kind(self):
        rows = [(names.split()[0], signature) for names, signature, _ in _C.functions()]
        done = 0
        for i in range(30000 if os.environ.get("SNUG_TEST_FULL") else 3000):
            name, signature = self.r.choice(rows)
            words = [p.split(":")[0].lstrip("*") for p in signature.split()]
            args = [self.value() for _ in range(self.r.randrange(1, 4))]
            keywords = {self.r.choice(words): self.value()} if self.r.random() < 0.3 and words else {}
            try:
                result = _C.function(name)(*args, **keywords)
            except Exception as error:
                self.assertNotIsInstance(error, SystemError, (name, error))
                continue
            done += 1
            for t in result if isinstance(result, list) else [result]:
                if self.r.random() < 0.2 and t.shape.num_elements() < 1e6:
                    try:
                        t.numpy()
                    except tf.errors.OpError:
                        pass
        self.assertGreater(done, 100)
        self.assertEqual(float(tf.reduce_sum(tf.ones(3))), 3)


if __name__ == "__main__":
    unittest.main()
