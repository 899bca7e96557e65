#!/usr/bin/env python3
"""The parity runner itself: what differs is found, what agrees is not. Needs neither TensorFlow nor Snug.
usage: selftest.py"""
import copy
import json
import os
import sys
import tempfile
import unittest

import numpy as np

import parity
import run


def entry(value, tol=None):
    del parity._entries[:]
    parity.check("v", value, tol)
    return json.loads(json.dumps(parity._entries.pop()))


def differs(want, got, tol=None):
    return run.compare(entry(want)["value"], entry(got)["value"], tol) is not None


class Compare(unittest.TestCase):
    def test_equal_values_agree(self):
        for value in (1, 1.5, True, None, "text", [1, (2.0, {"a": np.arange(3)})], np.float32(0.1), np.array([np.nan, np.inf])):
            self.assertFalse(differs(value, copy.deepcopy(value)), value)

    def test_small_errors_are_within_tolerance(self):
        a = np.array([1.0, 1000.0, 1e-6], "float32")
        self.assertFalse(differs(a, a * np.float32(1 + 5e-6)))
        self.assertTrue(differs(a, a * np.float32(1 + 5e-5)))
        self.assertFalse(differs(a, a * np.float32(1 + 5e-5), tol=1e-4))

    def test_double_is_compared_more_closely(self):
        a = np.array([1.0])
        self.assertTrue(differs(a, a + 1e-7))
        self.assertFalse(differs(a, a + 1e-10))

    def test_kinds_dtypes_and_shapes_count(self):
        self.assertTrue(differs(1, 1.0))
        self.assertTrue(differs(1, True))
        self.assertTrue(differs([1], (1,)))
        self.assertTrue(differs(np.zeros(2, "float32"), np.zeros(2, "float64")))
        self.assertTrue(differs(np.zeros((2, 1)), np.zeros((1, 2))))
        self.assertTrue(differs(np.zeros(2), np.zeros(3)))
        self.assertTrue(differs(None, 0))

    def test_nan_agrees_only_with_nan(self):
        self.assertTrue(differs(np.array([np.nan]), np.array([0.0])))
        self.assertTrue(differs(np.array([0.0]), np.array([np.nan])))
        self.assertTrue(differs(np.array([np.inf]), np.array([1e30])))
        self.assertTrue(differs(np.array([np.inf]), np.array([-np.inf])))

    def test_integers_are_exact(self):
        self.assertTrue(differs(np.array([10 ** 6]), np.array([10 ** 6 + 1])))

    def test_keys_of_dictionaries_count(self):
        self.assertTrue(differs({"a": 1}, {"b": 1}))
        self.assertTrue(differs({"a": 1}, {"a": 2}))

    def test_large_values_are_refused(self):
        with self.assertRaises(ValueError):
            parity.check("v", np.zeros(parity.MAX_ELEMENTS + 1))

    def test_printed_numbers_may_differ_in_their_last_digit(self):
        same = run.compare_lines
        self.assertIsNone(same(["loss 0.123 (3, 4)"], ["loss 0.124 (3, 4)"]))
        self.assertIsNotNone(same(["loss 0.123"], ["loss 0.133"]))
        self.assertIsNotNone(same(["loss 0.123"], ["cost 0.123"]))
        self.assertIsNotNone(same(["step 3"], ["step 4"]))
        self.assertIsNotNone(same(["a"], ["a", "b"]))
        self.assertIsNotNone(same(["a", "b"], ["a"]))


class Raises(unittest.TestCase):
    def outcome(self, kind, function):
        del parity._entries[:]
        parity.raises(kind, function)
        return parity._entries.pop()["value"]

    def test_classes_are_compared(self):
        want = self.outcome(ArithmeticError, lambda: 1 / 0)
        self.assertEqual(want["data"], ["ArithmeticError", "ZeroDivisionError"])
        self.assertIsNotNone(run.compare(want, self.outcome(ArithmeticError, lambda: 2.0 ** 10000), None))

    def test_a_tuple_takes_any(self):
        kinds = (ZeroDivisionError, OverflowError)
        want = self.outcome(kinds, lambda: 1 / 0)
        self.assertIsNone(run.compare(want, self.outcome(kinds, lambda: 2.0 ** 10000), None))

    def test_nothing_or_another_class_is_found(self):
        want = self.outcome(ValueError, lambda: int("x"))
        self.assertIsNotNone(run.compare(want, self.outcome(ValueError, lambda: 1), None))
        self.assertIsNotNone(run.compare(want, self.outcome(ValueError, lambda: 1 / 0), None))

    def test_what_is_returned_is_read(self):
        class Late:
            def numpy(self):
                raise ValueError("late")
        self.assertEqual(self.outcome(ValueError, Late)["data"], ["ValueError", "ValueError"])


class Processes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.here, parity.HERE = parity.HERE, self.folder.name
        for name in parity.FOLDERS + ("expected",):
            os.mkdir(os.path.join(parity.HERE, name))

    def tearDown(self):
        parity.HERE = self.here
        self.folder.cleanup()

    def judge(self, text, expected=None, limit_s=20):
        with open(os.path.join(parity.HERE, "programs", "p.py"), "w") as f:
            f.write(text)
        (_, outcome), = parity.run_all(["p"], lambda: None, limit_s=limit_s)
        with open(os.path.join(parity.HERE, "expected", "p.json"), "w") as f:
            json.dump(outcome["entries"] if expected is None else expected, f)
        return run.judge("p", outcome), outcome

    def test_a_program_that_repeats_itself_passes(self):
        found, outcome = self.judge("from parity import check\ncheck('a', 1)\ncheck('b', [2.0])\n")
        self.assertEqual((found, len(outcome["entries"])), ([], 2))

    def test_missing_and_changed_checks_are_found(self):
        _, outcome = self.judge("from parity import check\ncheck('a', 1)\ncheck('b', 2)\n")
        for text in ("check('a', 1)", "check('a', 1)\ncheck('c', 2)", "check('a', 2)\ncheck('b', 2)"):
            found, _ = self.judge("from parity import check\n" + text, outcome["entries"])
            self.assertNotEqual(found, [], text)

    def test_exceptions_name_the_line(self):
        found, _ = self.judge("from parity import check\ncheck('a', 1)\n1 / 0\n")
        self.assertIn("ZeroDivisionError", found[0])
        self.assertIn("line 3", found[0])

    def test_a_process_that_dies_or_hangs_is_found(self):
        self.assertIn("died", self.judge("import os\nos.abort()\n")[0][0])
        self.assertIn("timeout", self.judge("while True: pass\n", limit_s=1)[0][0])

    def test_every_program_is_recorded_and_says_what_it_shows(self):
        parity.HERE = self.here
        for name in parity.all_names():
            self.assertTrue(os.path.exists(os.path.join(parity.HERE, "expected", name + ".json")), name)
            with open(parity.path_of(name)) as f:
                self.assertTrue(f.read().startswith('"""'), name)
        recorded = sorted(f[:-5] for f in os.listdir(os.path.join(parity.HERE, "expected")))
        self.assertEqual(recorded, parity.all_names())


if __name__ == "__main__":
    sys.exit(unittest.main())
