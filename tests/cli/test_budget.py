#!/usr/bin/env python3
"""Budgets at the command's level: what `plan --curve` says is what `plan --budget` gives, floors run, less is refused before data
are opened, spilling trains the same weights, and what is no budget or no folder is refused by name.
usage: test_budget.py PATH_OF_SNUG [unittest options]"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import files  # noqa: E402

SNUG = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/snug"
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = os.path.join(os.path.dirname(TESTS), "examples", "models")
MIB, PAGE = 1 << 20, 4096


class Case(unittest.TestCase):
    """A folder on a disk, with a model whose slots are worth a file."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="snug-budget-", dir="/var/tmp")  # /tmp is often memory
        layers = [files.dense("a", 2048, "relu"), files.dense("b", 1024, "relu"), files.dense("c", 10)]
        cls.wide = files.model(cls.at("wide.json"), 512, layers, optimizer="adam", loss="mse")
        cls.cnn = os.path.join(MODELS, "shapes_cnn.json")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    @classmethod
    def at(cls, name):
        return os.path.join(cls.dir, name)

    def run_snug(self, *args):
        return subprocess.run([SNUG, *map(str, args)], capture_output=True, text=True, timeout=60)

    def plan(self, *args):
        r = self.run_snug("plan", *args, "--train", "--threads", 1, "--json")
        self.assertIn(r.returncode, (0, 3), r.stderr)
        return json.loads(r.stdout)


class Curve(Case):
    def check(self, *args, least_points):
        points = self.plan(*args, "--curve")["points"]
        self.assertGreaterEqual(len(points), least_points)
        for p in points:
            at = self.plan(*args, "--budget", p["budget_bytes"])
            below = self.plan(*args, "--budget", p["budget_bytes"] - PAGE)
            self.assertTrue(at["fits"], p)
            for key in ("slices", "step_seconds", "spilled_bytes"):
                self.assertEqual(at[key], p[key], p)
            self.assertTrue(not below["fits"] or below["step_seconds"] >= p["step_seconds"], (p, below["step_seconds"]))
        for fast, small in zip(points, points[1:]):
            self.assertLess(small["budget_bytes"], fast["budget_bytes"])
            self.assertGreater(small["step_seconds"], fast["step_seconds"])
        self.assertFalse(self.plan(*args, "--budget", points[-1]["budget_bytes"] - MIB)["fits"])
        return points

    def test_of_slices_and_recomputation(self):
        points = self.check(self.cnn, "--batch", 64, least_points=10)
        self.assertGreater(points[-1]["slices"], 1)

    def test_of_gradients_that_die_in_their_updates(self):
        points = self.check(self.wide, "--batch", 512, least_points=1)
        unlimited = self.plan(self.wide, "--batch", 512)
        self.assertEqual(points[0]["step_seconds"], unlimited["step_seconds"])
        self.assertLess(points[0]["budget_bytes"], unlimited["peak_bytes"] + 12 * MIB)

    def test_of_slots_in_a_file(self):
        points = self.check(self.wide, "--batch", 512, "--spill", self.dir, least_points=6)
        self.assertEqual(points[0]["spilled_bytes"], 0)
        self.assertGreater(points[-1]["spilled_bytes"], 16 * MIB)
        memory = self.plan(self.wide, "--batch", 512, "--curve")["points"]
        self.assertLess(points[-1]["budget_bytes"], memory[-1]["budget_bytes"] - 10 * MIB)
        table = self.run_snug("plan", self.wide, "--batch", 512, "--train", "--spill", self.dir, "--curve")
        self.assertIn("in a file", table.stdout)


if __name__ == "__main__":
    unittest.main()
