#!/usr/bin/env python3
"""The command on a GPU, by the emulated plug-in, and what it says where something is missing.
usage: test_gpu.py SNUG BUILD"""
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

SNUG, BUILD = sys.argv[1], sys.argv[2]
MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "models")
MLP = os.path.join(MODELS, "blobs_mlp.json")
EMULATED = os.path.join(BUILD, "libsnug-cuda-emulated.so")
REAL = os.path.join(BUILD, "libsnug-cuda.so")
STUBS = os.path.join(BUILD, "stubs")
DATA = ["--x", "normal:64x16@1", "--y", "labels:64@2@6", "--batch", "16"]


def run(*args, plugin=EMULATED, libraries=None, **more):
    env = dict(os.environ, SNUG_CUDA_PLUGIN=plugin, **more)
    if libraries:
        env["LD_LIBRARY_PATH"] = libraries
    return subprocess.run([SNUG, *args], capture_output=True, text=True, timeout=600, env=env)


class Works(unittest.TestCase):
    def test_training_gives_the_processors_loss(self):
        for precision, delta in (("f32", 1e-5), ("mixed_f16", 1e-3)):
            loss = []
            for device in ("cpu", "gpu"):
                r = run("fit", MLP, *DATA, "--epochs", "3", "--precision", precision, "--device", device, "--json")
                self.assertEqual(r.returncode, 0, r.stderr)
                loss.append(json.loads(r.stdout)["loss"])
            self.assertAlmostEqual(loss[0], loss[1], delta=delta)

    def test_weights_travel_between_devices(self):
        with tempfile.TemporaryDirectory() as folder:
            weights = os.path.join(folder, "w.safetensors")
            r = run("fit", MLP, *DATA, "--device", "gpu", "--save", weights)
            self.assertEqual(r.returncode, 0, r.stderr)
            values = [json.loads(run("evaluate", MLP, *DATA, "--weights", weights, "--device", d, "--json").stdout)
                      for d in ("cpu", "gpu")]
            self.assertAlmostEqual(values[0]["loss"], values[1]["loss"], delta=1e-5)
            for d in ("cpu", "gpu"):
                r = run("predict", MLP, *DATA[:2], "--weights", weights, "--device", d, "--out", f"{folder}/{d}.npy")
                self.assertEqual(r.returncode, 0, r.stderr)

    def test_plan_has_rows_of_the_device_that_add_up_to_the_budget(self):
        r = run("plan", MLP, "--train", "--batch", "64", "--device", "gpu", "--budget", "300MiB", "--json")
        self.assertEqual(r.returncode, 0, r.stderr)
        plan = json.loads(r.stdout)
        rows = {row["name"]: row["bytes"] for row in plan["rows"] if not row["in_arena"]}
        self.assertEqual(sum(rows.values()), 300 << 20)
        self.assertGreaterEqual(rows["context"], 264 << 20)

    def test_no_row_of_a_network_of_halves_runs_on_the_host(self):
        for name in ("mnist_mlp", "shapes_cnn", "resnet20", "unet"):
            r = run("plan", os.path.join(MODELS, name + ".json"), "--train", "--batch", "8", "--precision", "mixed_bf16", "--device", "gpu", "--quick", "--verbose")
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertGreater(r.stdout.count(" impl own:"), 10)
            self.assertEqual(re.findall(r"run \S+ (\w+) .* impl host:", r.stdout), [], name)

    def test_memory_tells_the_device_apart(self):
        r = run("fit", MLP, *DATA, "--device", "gpu", "--memory", "--json", "--budget", "300MiB")
        d = json.loads(r.stdout)["memory"]["device"]
        self.assertEqual((d["name"], d["budget_bytes"], d["total_bytes"]), ("gpu:0", 300 << 20, 1 << 30))
        self.assertLessEqual(d["context_bytes"] + d["held_bytes"], 300 << 20)
        self.assertIn("gpu:0, Emulated GPU", run("fit", MLP, *DATA, "--device", "gpu", "--memory").stdout)

    def test_host_budget_goes_with_a_gpu(self):
        r = run("fit", MLP, *DATA, "--host-budget", "1GiB")
        self.assertEqual(r.returncode, 2)
        self.assertIn("--host-budget goes with --device gpu", r.stderr)
        self.assertEqual(run("fit", MLP, *DATA, "--device", "gpu", "--host-budget", "2GiB").returncode, 0)
        r = run("fit", MLP, *DATA, "--device", "gpu", "--host-budget", "4MiB")
        self.assertEqual(r.returncode, 3, r.stderr)
        self.assertIn("of the host", r.stderr)
        plan = ["plan", MLP, "--train", "--batch", "16", "--device", "gpu", "--host-budget"]
        host = json.loads(run(*plan, "1GiB", "--json").stdout)["host"]
        self.assertEqual(host["peak_bytes"], host["process_bytes"] + host["pinned_bytes"] + host["spilled_bytes"])
        self.assertTrue(host["fits"] and host["budget_bytes"] == 1 << 30)
        r = run(*plan, "4MiB")
        self.assertEqual(r.returncode, 3, r.stderr)
        self.assertIn("does not fit 4.0 MiB", r.stdout)

    def test_budgets_are_shares_of_the_card_too(self):
        plan = ["plan", MLP, "--train", "--device", "gpu", "--budget"]
        self.assertEqual(json.loads(run(*plan, "50%", "--json").stdout)["budget_bytes"], 512 << 20)
        self.assertEqual(json.loads(run(*plan, "auto", "--json").stdout)["budget_bytes"], 1 << 30)
        r = run(*plan, "140%")
        self.assertEqual(r.returncode, 2, r.stderr)
        self.assertIn("budget 140% is more than there is on a GPU", r.stderr)
        self.assertIn("free on gpu:0 of the budget of 4.0 GiB", run(*plan, "4GiB").stdout)

    def test_the_curve_goes_down_to_the_floor_with_slots_on_the_host(self):
        with tempfile.TemporaryDirectory() as folder:
            dense = {"class_name": "Dense", "config": {"name": "a", "units": 2048}}
            inputs = {"class_name": "InputLayer", "config": {"batch_shape": [None, 512]}}
            model = os.path.join(folder, "wide.json")
            with open(model, "w") as f:
                json.dump({"class_name": "Sequential", "config": {"name": "wide", "layers": [inputs, dense]}}, f)
            plan = ["plan", model, "--train", "--batch", "256", "--optimizer", "adam", "--loss", "mse", "--device", "gpu"]
            points = json.loads(run(*plan, "--curve", "--json").stdout)["points"]
            for before, after in zip(points, points[1:]):
                self.assertGreater(before["budget_bytes"], after["budget_bytes"])
                self.assertLessEqual(before["step_seconds"], after["step_seconds"])
            self.assertGreater(points[-1]["spilled_bytes"], 0)
            floor = json.loads(run(*plan, "--json").stdout)["floor_bytes"]
            self.assertEqual(points[-1]["budget_bytes"], floor)
            self.assertIn("on the host", run(*plan, "--curve").stdout)

    def test_doctor_tells_versions_and_what_is_missing(self):
        facts = json.loads(run("doctor", "--json").stdout)
        self.assertEqual(facts["gpu"], "Emulated GPU, compute capability 9.0")
        self.assertEqual(facts["cuDNN"], "missing")
        self.assertIn("own kernels, slower", run("doctor").stdout)


class Libraries(unittest.TestCase):
    """Of the emulated card none is there."""
    CONV = os.path.join(MODELS, "shapes_cnn.json")

    def test_the_verdict_names_what_is_missing_and_what_it_costs(self):
        plan = ["plan", self.CONV, "--train", "--batch", "16", "--device"]
        text = r"cuDNN( and cuBLASLt)? not found: own kernels, about \d+(\.\d)?x slower"
        self.assertRegex(run(*plan, "gpu").stdout, text)
        self.assertRegex(run(*plan, "gpu", "--budget", "600MiB").stdout, text)
        self.assertRegex(json.loads(run(*plan, "gpu", "--json").stdout)["missing"], text)
        self.assertNotIn("not found", run(*plan, "cpu").stdout)

    def test_training_warns_of_what_is_missing(self):
        r = run("fit", self.CONV, "--x", "normal:2x32x32x3@1", "--y", "labels:2@2@3", "--batch", "2", "--device", "gpu")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("warning: cuDNN not found", r.stderr)

    def test_nothing_is_missed_that_a_step_would_not_use(self):
        self.assertNotIn("not found", run("plan", MLP, "--train", "--device", "gpu").stdout)


class Rates(unittest.TestCase):
    def test_the_cards_rates_are_measured_kept_and_read_by_plans(self):
        with tempfile.TemporaryDirectory() as folder:
            how = {"XDG_CACHE_HOME": folder}
            plan = ["plan", MLP, "--train", "--batch", "64", "--device", "gpu", "--json"]
            before = json.loads(run(*plan, **how).stdout)["step_seconds"]
            self.assertEqual(json.loads(run("doctor", "--device", "gpu", "--json", **how).stdout)["rates"], "built in, of the GPU")
            r = run("doctor", "--calibrate", "--device", "gpu", **how)
            self.assertEqual(r.returncode, 0, r.stderr)
            for name in ("product", "memory", "cache", "math", "call", "spill_read", "spill_write"):
                self.assertRegex(r.stdout, rf"(?m)^{name} +\S+ +built in")
            self.assertEqual(len(os.listdir(os.path.join(folder, "snug"))), 1)
            self.assertRegex(os.listdir(os.path.join(folder, "snug"))[0], r"^rates-gpu-[0-9a-f]{8}\.txt$")
            self.assertRegex(json.loads(run("doctor", "--device", "gpu", "--json", **how).stdout)["rates"], "measured, .* of the GPU")
            self.assertNotEqual(json.loads(run(*plan, **how).stdout)["step_seconds"], before)
            kept = os.path.join(folder, "snug", os.listdir(os.path.join(folder, "snug"))[0])
            with open(kept) as f:
                text = f.read()
            with open(kept, "w") as f:
                f.write(re.sub(r"(?m)^call .*", "call 0.5", text))
            self.assertGreater(json.loads(run(*plan, **how).stdout)["step_seconds"], 0.5)
            self.assertEqual(json.loads(run("doctor", "--json", **how).stdout)["rates"], "built in")


class Missing(unittest.TestCase):
    def refused(self, text, code=1, **how):
        args = how.pop("args", ["--device", "gpu"])
        r = run("plan", MLP, *args, **how)
        self.assertEqual(r.returncode, code, r.stderr)
        self.assertIn(text, r.stderr)

    def test_no_plug_in(self):
        self.refused("there is no GPU plug-in", plugin="/nowhere/x.so")
        self.assertIn("there is no GPU plug-in", run("doctor", plugin="/nowhere/x.so").stdout)

    def test_plug_in_of_another_version(self):
        self.refused("built for another version of Snug", plugin=os.path.join(STUBS, "libother_abi.so"))

    def test_a_library_that_is_none(self):
        self.refused("no plug-in of Snug", plugin=os.path.join(STUBS, "libcuda.so.1"))

    def test_budget_below_the_context(self):
        self.refused("less than its context alone takes, 264.0 MiB", 3, args=["--device", "gpu", "--budget", "200MiB"])

    def test_names_of_devices(self):
        self.refused("there is no device 'tpu'", 2, args=["--device", "tpu"])
        self.refused("there is no GPU 7", args=["--device", "gpu:7"])

    @unittest.skipUnless(os.path.exists(REAL), "cuda: not compiled")
    def test_a_driver_that_is_too_old(self):
        self.refused("the driver is for CUDA 11.0, the plug-in for", plugin=REAL, libraries=STUBS)

    @unittest.skipUnless(os.path.exists(REAL), "cuda: not compiled")
    def test_a_plug_in_for_another_cuda_than_the_drivers(self):
        self.refused("the driver is for CUDA 12.8, the plug-in for 13", plugin=REAL, libraries=STUBS, SNUG_STUB_CUDA="12080")
        self.assertIn("the driver is for CUDA 12.8", run("doctor", plugin=REAL, libraries=STUBS, SNUG_STUB_CUDA="12080").stdout)

    def test_the_tests_of_a_card_say_that_there_is_none(self):
        tests = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "test-cuda.sh")
        env = dict(os.environ, CUDA_VISIBLE_DEVICES="", SNUG_CUDA_PLUGIN=os.path.join(BUILD, "no-such-file.so"))
        r = subprocess.run([tests, BUILD], capture_output=True, text=True, timeout=600, env=env)
        self.assertEqual((r.returncode, r.stdout[:8]), (77, "no GPU: "), r.stderr)

    @unittest.skipUnless(os.path.exists(REAL), "cuda: not compiled")
    def test_no_driver(self):
        try:
            ctypes.CDLL("libcuda.so.1")
            self.skipTest("there is a driver here")
        except OSError:
            self.refused("there is no NVIDIA driver (libcuda.so.1); install one for CUDA", plugin=REAL)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
