#!/usr/bin/env python3
"""The trade of memory for time at the command's level: what `plan --curve` says is what `plan --budget` gives, and what waits in a
file trains the same weights. usage: test_trade.py PATH_OF_SNUG [unittest options]"""
import array
import json
import os
import unittest

from budget_case import MIB, Case, files


class Curve(Case):
    def check(self, *args, least_points):
        points = self.plan(*args, "--curve")["points"]
        self.assertGreaterEqual(len(points), least_points)
        for p in points:
            at = self.plan(*args, "--budget", p["budget_bytes"])
            below = self.plan(*args, "--budget", p["budget_bytes"] - MIB // 2)  # told with a margin for a remainder and for pages
            self.assertTrue(at["fits"], p)
            self.assertLessEqual(at["step_seconds"], p["step_seconds"], p)
            self.assertTrue(not below["fits"] or below["step_seconds"] >= at["step_seconds"], (p, below["step_seconds"]))
        for fast, small in zip(points, points[1:]):
            self.assertLess(small["budget_bytes"], fast["budget_bytes"])
            self.assertGreaterEqual(small["step_seconds"], fast["step_seconds"])
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

    def test_a_saved_plan_of_fused_updates_is_run(self):
        path = self.at("plan.txt")
        plan = self.plan(self.wide, "--batch", 32, "--save-plan", path)
        with open(path) as file:
            self.assertIn("matmul_adam", file.read())
        fit = self.run_snug("fit", self.wide, "--x", "normal:64x512@1", "--y", "normal:64x10@2", "--batch", 32, "--plan", path, "--threads", 1, "--json")
        self.assertEqual(fit.returncode, 0, fit.stderr)
        self.assertEqual(json.loads(fit.stdout)["arena_bytes"], plan["arena_bytes"])

    def test_of_slices_beside_a_step_whose_gradients_die(self):
        args = self.wide, "--batch", 8192
        point = self.plan(*args, "--curve")["points"][-1]
        within = self.plan(*args, "--budget", point["budget_bytes"])
        self.assertGreater(within["slices"], 1)
        self.assertEqual(within["plain_seconds"], self.plan(*args)["step_seconds"])

    def test_of_slots_in_a_file(self):
        points = self.check(self.wide, "--batch", 512, "--spill", self.dir, least_points=6)
        self.assertEqual(points[0]["spilled_bytes"], 0)
        self.assertGreater(points[-1]["spilled_bytes"], 16 * MIB)
        memory = self.plan(self.wide, "--batch", 512, "--curve")["points"]
        self.assertLess(points[-1]["budget_bytes"], memory[-1]["budget_bytes"] - 10 * MIB)
        table = self.run_snug("plan", self.wide, "--batch", 512, "--train", "--spill", self.dir, "--curve")
        self.assertIn("in a file", table.stdout)
        p = self.plan(self.wide, "--batch", 512, "--spill", self.dir, "--budget", points[-1]["budget_bytes"])
        spill = [mean for mean in p["means"] if mean["name"] == "spill"][0]
        self.assertEqual(spill["bytes"], p["spilled_bytes"])
        self.assertGreater(spill["seconds"], 0)
        self.assertAlmostEqual(sum(mean["seconds"] for mean in p["means"]), p["step_seconds"] - p["plain_seconds"], delta=0.01 * p["step_seconds"])


class Spill(Case):
    """Slots, and values, in a file: fewer bytes, the same weights."""

    def floor(self, *args):
        return self.plan(self.wide, *args, "--budget", "1MiB")["floor_bytes"]

    def fit(self, name, *more):
        """Trains with a remainder, saves, and evaluates in between."""
        rows = 80 if "32" in map(str, more) else 600
        r = self.run_snug("fit", self.wide, "--x", f"normal:{rows}x512@1", "--y", f"normal:{rows}x10@2", "--val-x", "normal:40x512@3", "--val-y",
                          "normal:40x10@4", "--epochs", 2, "--threads", 1, "--save", self.at(name), *more)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertFalse([n for n in os.listdir(self.dir) if n.startswith("snug-spill")])
        return files.read(self.at(name))

    def test_optimizers_train_the_same_weights(self):
        for switches in ([], ["--optimizer", "adam:gradient_accumulation_steps=2"], ["--optimizer", "adamw"], ["--optimizer", "lamb"]):
            high, low = (self.floor("--batch", 32, *switches, "--spill", folder) for folder in ("off", self.dir))
            self.assertLess(low + 10 * MIB, high)
            plain = self.fit("plain", "--batch", 32, *switches)
            for budget in (low, (low + high) // 2):
                spilled = self.plan(self.wide, "--batch", 32, *switches, "--spill", self.dir, "--budget", budget)
                self.assertGreater(spilled["spilled_bytes"], 8 * MIB)
                self.assertEqual(self.fit("small", "--batch", 32, *switches, "--spill", self.dir, "--budget", budget), plain)

    def test_slots_wait_beside_slices_too(self):
        """Their updates run behind the last slice; sums of slices differ from whole ones in their last bits."""
        switches = ["--batch", 512, "--optimizer", "sgd:lr=0.1,momentum=0.9"]
        budget = self.floor(*switches, "--spill", self.dir)
        p = self.plan(self.wide, *switches, "--spill", self.dir, "--budget", budget)
        self.assertGreater(p["slices"], 1)
        means = {m["name"]: m for m in p["means"]}
        self.assertEqual(means["slices"]["count"], p["slices"])
        self.assertIn(means["slices"]["operators"], range(1, p["steps"]))
        self.assertGreater(p["spilled_bytes"], 11 * MIB)
        plain, small = (array.array("f", files.tensors(self.fit(name, *switches, *more)))
                        for name, more in (("plain", []), ("small", ["--spill", self.dir, "--budget", budget])))
        self.assertEqual(len(plain), 512 * 2048 + 2048 + 2048 * 1024 + 1024 + 1024 * 10 + 10)
        self.assertLess(max(abs(a - b) for a, b in zip(plain, small)), 1e-6)

    def test_a_file_that_is_no_use_is_not_made(self):
        high = self.floor("--batch", 32)
        self.assertEqual(self.plan(self.wide, "--batch", 32, "--spill", self.dir, "--budget", high + MIB)["spilled_bytes"], 0)
        self.assertEqual(self.plan(self.wide, "--batch", 32, "--spill", self.dir)["spilled_bytes"], 0)


if __name__ == "__main__":
    unittest.main()
