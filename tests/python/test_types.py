#!/usr/bin/env python3
"""dtypes, shapes, structures, names: what needs no tensor."""
import unittest

import numpy as np

import snug.tensorflow as tf
from snug import _check, _hook


class DTypes(unittest.TestCase):
    def test_equal_to_names_and_numpy(self):
        self.assertTrue(tf.float32 == "float32" and tf.float32 == np.float32 and tf.float32 == np.dtype("f4"))
        self.assertFalse(tf.float32 == tf.float64 or tf.float32 == "float64" or tf.float32 == None)
        self.assertEqual({tf.int32: 1}[tf.as_dtype("int32")], 1)

    def test_say_what_they_are(self):
        self.assertIs(tf.float32.as_numpy_dtype, np.float32)
        self.assertEqual((tf.int8.max, tf.int8.min, tf.bool.name, tf.half.name), (127, -128, "bool", "float16"))
        self.assertTrue(tf.float16.is_floating and tf.uint8.is_unsigned and tf.int64.is_integer)
        self.assertEqual((repr(tf.float32), str(tf.float32)), ("tf.float32", "<dtype: 'float32'>"))

    def test_refuse_what_is_none(self):
        self.assertRaises(TypeError, tf.as_dtype, "flot32")


class Shapes(unittest.TestCase):
    def test_are_like_tuples(self):
        s = tf.TensorShape([2, None, 3])
        self.assertEqual((s.as_list(), s.rank, s[0], s[1:].as_list()), ([2, None, 3], 3, 2, [None, 3]))
        self.assertEqual((repr(s), str(s), str(tf.TensorShape([4]))), ("TensorShape([2, None, 3])", "(2, None, 3)", "(4,)"))
        self.assertTrue(tf.TensorShape([2, 3]) == (2, 3) and tf.TensorShape([2, 3]) == [2, 3])
        self.assertEqual(tf.TensorShape([2]) + [3], tf.TensorShape([2, 3]))

    def test_of_unknown_rank(self):
        s = tf.TensorShape(None)
        self.assertIsNone(s.rank)
        self.assertTrue(s.is_compatible_with([1, 2]))
        self.assertRaises(ValueError, s.as_list)

    def test_compatible_where_unknown(self):
        self.assertTrue(tf.TensorShape([None, 2]).is_compatible_with([5, 2]))
        self.assertFalse(tf.TensorShape([None, 2]).is_compatible_with([5, 3]))


class Structures(unittest.TestCase):
    def test_flatten_goes_by_sorted_keys(self):
        self.assertEqual(tf.nest.flatten({"b": 1, "a": (2, [3])}), [2, 3, 1])

    def test_pack_is_the_way_back(self):
        s = {"b": 1, "a": (2, [3])}
        self.assertEqual(tf.nest.pack_sequence_as(s, tf.nest.flatten(s)), s)
        self.assertRaises(ValueError, tf.nest.pack_sequence_as, s, [1])

    def test_map(self):
        self.assertEqual(tf.nest.map_structure(lambda a, b: a + b, [1, (2,)], [10, (20,)]), [11, (22,)])


class Names(unittest.TestCase):
    def test_missing_names_the_nearest(self):
        with self.assertRaisesRegex(AttributeError, "not in Snug.*tf.TensorShape"):
            tf.TensorShap
        with self.assertRaisesRegex(AttributeError, "not in Snug"):
            tf.nonsense_that_is_nowhere

    def test_every_name_of_python_files_is_there(self):
        from snug import _names
        for full in _names.PYTHON:
            path, _, name = full.rpartition(".")
            _names.find(path, name)

    def test_real_names(self):
        self.assertEqual(_hook.real_name("tensorflow.keras.layers"), "snug.keras.layers")
        self.assertEqual(_hook.real_name("tensorflow"), "snug.tensorflow")
        self.assertIsNone(_hook.real_name("numpy.linalg"))

    def test_check_finds_what_is_missing(self):
        self.assertIsNone(_check.lacks("tensorflow.nest.flatten"))
        self.assertEqual(_check.lacks("tensorflow.nest.flat_map_up_to")[0], "tensorflow.nest.flat_map_up_to")


class Errors(unittest.TestCase):
    def test_budget_error_is_a_memory_error(self):
        import snug
        self.assertIs(snug.BudgetError, tf.errors.ResourceExhaustedError)
        self.assertTrue(issubclass(snug.BudgetError, MemoryError))
        e = tf.errors.InvalidArgumentError(None, None, "words")
        self.assertEqual((e.message, str(e), e.error_code), ("words", "words", tf.errors.INVALID_ARGUMENT))


if __name__ == "__main__":
    unittest.main()
