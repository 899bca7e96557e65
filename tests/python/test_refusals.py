#!/usr/bin/env python3
"""What was accepted and gave something else, until an outsider tried: names that files cannot tell apart, answers that are no answers, counts
below one, and files whose text is damaged, which say where it stands."""
import os
import tempfile
import unittest

import numpy as np

import snug.tensorflow as tf

keras, Dataset, wrong = tf.keras, tf.data.Dataset, tf.errors.InvalidArgumentError


def values(dataset):
    return [v.tolist() for v in dataset.as_numpy_iterator()]


class Names(unittest.TestCase):
    def test_two_layers_of_one_name_are_refused(self):
        x = keras.Input((4,))
        y = keras.layers.Dense(4, name="a")(x)
        with self.assertRaisesRegex(ValueError, '"a".*unique'):
            keras.Model(x, keras.layers.Dense(4, name="a")(y))
        shared = keras.layers.Dense(4, name="b")
        self.assertEqual(len(keras.Model(x, shared(shared(x))).layers), 2)       # one layer, called twice

    def test_names_are_words_without_a_slash(self):
        for name in ("a/b", "../x", 3, b"a"):
            with self.assertRaisesRegex(ValueError, "cannot contain character `/`"):
                keras.layers.Dense(1, name=name)


class Pipelines(unittest.TestCase):
    numbers = Dataset.range(3)

    def test_a_predicate_says_true_or_false(self):
        for predicate in (lambda v: v, lambda v: tf.cast(v, tf.float32), lambda v: tf.stack([v > 0, v > 0]), lambda v: 1, lambda v: None):
            with self.assertRaisesRegex(ValueError, "must return a `tf.bool` scalar"):
                self.numbers.filter(predicate)
        for predicate in (lambda v: int(v) % 2, lambda v: np.array([int(v) > 0])):     # known when it is called alone
            with self.assertRaisesRegex(wrong, "must return a `tf.bool` scalar"):
                values(self.numbers.filter(predicate))
            with self.assertRaisesRegex(wrong, "must return a `tf.bool` scalar"):
                values(self.numbers.take_while(predicate))
        self.assertEqual(values(self.numbers.filter(lambda v: int(v) > 0)), [1, 2])
        self.assertEqual(values(self.numbers.filter(lambda v: True)), [0, 1, 2])
        self.assertEqual(values(self.numbers.filter(lambda v: tf.py_function(lambda x: x > 1, [v], tf.bool))), [2])
        self.assertEqual(values(self.numbers.take_while(lambda v: v < 2)), [0, 1])

    def test_counts_are_at_least_one(self):
        inner = lambda v: Dataset.range(1)
        for n in (0, -2):
            for make in (lambda: self.numbers.interleave(inner, cycle_length=n), lambda: self.numbers.map(lambda v: v, num_parallel_calls=n),
                         lambda: self.numbers.interleave(inner, cycle_length=1, block_length=n),
                         lambda: values(self.numbers.group_by_window(lambda v: v, lambda k, d: d.batch(2), window_size=n))):
                with self.assertRaisesRegex(wrong, "must be greater than zero"):
                    make()
        self.assertEqual(values(self.numbers.interleave(inner, cycle_length=tf.data.AUTOTUNE, num_parallel_calls=tf.data.AUTOTUNE)), [0, 0, 0])


class Texts(unittest.TestCase):
    """Never an error of the json module, which says nothing of a file."""

    def damaged(self, path, old, new, load):
        with open(path, "rb") as file:
            contents = file.read()
        self.assertIn(old, contents)
        with open(path, "wb") as file:
            file.write(contents.replace(old, new, 1))
        with self.assertRaisesRegex(ValueError, os.path.basename(path)) as caught:
            load()
        self.assertIs(type(caught.exception), ValueError)

    def test_the_file_is_named(self):
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        with tempfile.TemporaryDirectory() as folder:
            whole, saved = os.path.join(folder, "m.h5"), os.path.join(folder, "saved")
            model.save(whole)
            self.damaged(whole, b'"class_name": "Sequential"', b'"class_name": !Sequential"', lambda: keras.models.load_model(whole))
            model.export(saved, verbose=False)
            notes = os.path.join(saved, "snug_model.json")
            load = lambda: tf.saved_model.load(saved)
            self.damaged(notes, b'"kind"', b'"ki\xffd"', load)
            self.damaged(notes, b"{", b"{{", load)


if __name__ == "__main__":
    unittest.main()
