#!/usr/bin/env python3
"""Programs on a GPU, by the emulated plug-in: where things run, what the card holds, budgets and refusals, moving between
card and host. What is asserted of the card's bytes is its own count, or Snug's figure for it."""
import ctypes
import gc
import os
import subprocess
import sys
import tempfile
import unittest

PLUGIN = os.environ.get("SNUG_EMULATED_PLUGIN", "")
if PLUGIN:
    os.environ["SNUG_CUDA_PLUGIN"] = PLUGIN
    os.environ.pop("SNUG_DEVICE", None)

import numpy as np  # noqa: E402 (snug reads the environment as it is imported)

import snug  # noqa: E402
import snug.tensorflow as tf  # noqa: E402
from snug import _C  # noqa: E402

MIB = 1 << 20


def on_card():
    return tf.config.experimental.get_memory_info("GPU:0")["current"]


class World(ctypes.Structure):
    """sn_emulated_card of tests/support/cuda_driver.h."""
    _fields_ = [("total_bytes", ctypes.c_size_t), ("context_bytes", ctypes.c_size_t), ("others_bytes", ctypes.c_size_t),
                ("n_devices", ctypes.c_int), ("held_bytes", ctypes.c_size_t), ("graph_bytes", ctypes.c_size_t),
                ("n_resets", ctypes.c_int), ("fail_at", ctypes.c_int64), ("lost", ctypes.c_bool),
                ("n_replays", ctypes.c_int64)]


def card():
    """(bytes of its blocks, captured runs that were replayed), by the emulated driver."""
    library = ctypes.CDLL(PLUGIN)
    library.sn_emulated_world.restype = ctypes.POINTER(World)
    world = library.sn_emulated_world().contents
    return world.held_bytes, world.n_replays


def script(text, *options, **environment):
    """(exit code, stdout, stderr) of python -m snug OPTIONS on this text."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as f:
        f.write(text)
        f.flush()
        done = subprocess.run([sys.executable, "-B", "-m", "snug", *options, f.name], capture_output=True, text=True,
                              env={**os.environ, **environment}, timeout=600)
    return done.returncode, done.stdout, done.stderr


@unittest.skipUnless(PLUGIN, "SNUG_EMULATED_PLUGIN does not name the emulated plug-in")
class Gpu(unittest.TestCase):
    def tearDown(self):
        _C.device_budget(0)
        gc.collect()

    def test_a_card_that_is_there_is_used(self):
        self.assertEqual([d.name for d in tf.config.list_physical_devices("GPU")], ["/physical_device:GPU:0"])
        self.assertEqual([d.name for d in tf.config.list_logical_devices("GPU")], ["/device:GPU:0"])
        self.assertTrue(tf.test.is_gpu_available() and tf.test.is_built_with_cuda())
        self.assertEqual(tf.test.gpu_device_name(), "/device:GPU:0")
        details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
        self.assertEqual(details, {"device_name": "Emulated GPU", "compute_capability": (9, 0)})
        x = tf.constant(np.ones((40, 50), "f4"))
        self.assertTrue(x.device.endswith("GPU:0") and (x * 2.0).device.endswith("GPU:0"))
        self.assertTrue(tf.Variable(x).device.endswith("GPU:0"))

    def test_without_soft_placement_a_device_must_be_there(self):
        with tf.device("/GPU:3"):
            self.assertTrue(tf.constant([1.0]).device.endswith("GPU:0"))
        tf.config.set_soft_device_placement(False)
        try:
            for name in ("/GPU:3", "gpu:1", "/job:localhost/replica:0/task:0/device:TPU:0"):
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Could not satisfy device specification"):
                    with tf.device(name):
                        tf.constant(1.0)
            for name in ("/GPU:0", "gpu", "/cpu:0", "/device:CPU:0", None, tf.config.list_logical_devices("GPU")[0]):
                with tf.device(name):
                    self.assertEqual(float(tf.constant(1.0) + 1), 2)
        finally:
            tf.config.set_soft_device_placement(True)

    def test_held_tensors_and_variables_lie_on_the_card(self):
        before, host = on_card(), _C.info()["bytes"]
        x = tf.constant(np.ones((512, 512), "f4")) * 2.0
        v = tf.Variable(np.ones((256, 512), "f4"))
        v.assign_add(x[:256])
        self.assertEqual(float(tf.reduce_sum(v)), 3 * 256 * 512)
        self.assertGreaterEqual(on_card() - before, x.shape[0] * 512 * 4 + 256 * 512 * 4)
        self.assertLess(_C.info()["bytes"] - host, MIB // 2)
        rows = snug.memory()["gpu:0"]["owners"]
        self.assertGreaterEqual(rows["tensors"], MIB)
        self.assertGreaterEqual(rows["variables"], MIB // 2)
        self.assertIn("gpu:0 context", str(snug.memory()))
        peak = tf.config.experimental.get_memory_info("GPU:0")["peak"]
        held = on_card()
        del x, v
        self.assertLessEqual(on_card(), held - MIB)
        self.assertGreaterEqual(tf.config.experimental.get_memory_info("GPU:0")["peak"], peak)
        tf.config.experimental.reset_memory_stats("GPU:0")
        self.assertLess(tf.config.experimental.get_memory_info("GPU:0")["peak"], peak)

    def test_values_move_between_card_and_host(self):
        a = np.arange(3000, dtype="f4").reshape(1000, 3)
        x = tf.constant(a)
        y = x * 2.0
        with tf.device("/CPU:0"):
            z = y + 1.0
            v = tf.Variable(z)
            self.assertTrue(z.device.endswith("CPU:0") and v.device.endswith("CPU:0"))
            with tf.device("/GPU:0"):
                w = v * 1.0
            v.assign_add(w)
        self.assertTrue(w.device.endswith("GPU:0"))
        np.testing.assert_array_equal(v.numpy(), 4 * a + 2)
        view = memoryview(y)
        v.assign(y)                              # on the card again
        np.testing.assert_array_equal(np.asarray(view), 2 * a)
        np.testing.assert_array_equal(v.numpy(), 2 * a)
        for first in (0, 1, 7, 64):              # of rows that kernels cannot read where they lie
            np.testing.assert_array_equal((x[first:first + 100] + 1.0).numpy(), a[first:first + 100] + 1)
            np.testing.assert_array_equal((y[first] * 2.0).numpy(), 4 * a[first])

    def test_gradients_cross_a_scope(self):
        v = tf.Variable(np.full((30, 20), 3.0, "f4"))
        with tf.GradientTape(persistent=True) as tape:
            y = v * v
            with tf.device("/CPU:0"):
                z = y * v
            loss = tf.reduce_sum(z) + tf.reduce_sum(y)
        np.testing.assert_allclose(tape.gradient(loss, v).numpy(), 3 * 9 + 2 * 3)
        np.testing.assert_allclose(tape.gradient(y, v).numpy(), 6)

    def test_steps_of_a_loop_are_captured_and_replayed(self):
        tf.keras.utils.set_random_seed(2)
        model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
        model.compile("adam", "mse")
        x = np.random.default_rng(1).normal(size=(64, 5)).astype("f4")
        model.fit(x, x[:, :1], batch_size=16, epochs=1, verbose=0)
        misses, replays = _C.info()["misses"], card()[1]
        losses = model.fit(x, x[:, :1], batch_size=16, epochs=4, verbose=0).history["loss"]
        self.assertLess(losses[-1], losses[0])
        self.assertGreater(card()[1], replays + 8)
        self.assertLessEqual(_C.info()["misses"] - misses, 2)

    def test_the_pool_serves_a_large_tensor_after_holes(self):
        base = on_card()
        _C.device_budget(card()[0] + _C.device()["context_bytes"] + 40 * MIB)
        blocks = [tf.constant(np.ones((256, 1024), "f4")) * float(k) for k in range(24)]
        tf.group(*blocks)
        snug.sync()
        del blocks[::2]
        kept = [float(b[0, 0]) for b in blocks]
        self.assertEqual(kept, [float(k) for k in range(1, 24, 2)])
        del blocks
        gc.collect()
        self.assertLess(on_card(), base + MIB)
        big = tf.constant(np.ones((2048, 1024), "f4")) * 2.0
        self.assertEqual(float(big[5, 5]), 2.0)

    def test_a_refusal_names_the_card_and_leaves_nothing(self):
        limit = tf.config.LogicalDeviceConfiguration(memory_limit=_C.device()["context_bytes"] // MIB + 80)
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("GPU")[0], [limit])
        levels = []
        for i in range(60):
            with self.assertRaises(tf.errors.ResourceExhaustedError) as caught:
                x = tf.random.normal((64, 1024, 1024))
                y = x * 2.0
                y.numpy()
            del x, y
            caught.exception.__traceback__ = None
            if i >= 20:
                levels.append((card()[0], on_card(), _C.info()["bytes"] // 4096))
        self.assertEqual(len(set(levels)), 1, levels)
        for words in ("out of memory on gpu:0", "random f32[64,1024,1024]", "budget of", "test_gpu.py"):
            self.assertIn(words, str(caught.exception))
        small = tf.random.normal((4, 1024, 1024)) * 2.0
        self.assertEqual(small.numpy().shape, (4, 1024, 1024))

    def test_budgets_by_text(self):
        self.assertEqual([snug.budget("2GiB"), snug.budget("50%"), snug.budget(700 * MIB), snug.budget(None)],
                         [2 << 30, _C.device()["total_bytes"] // 2, 700 * MIB, 0])
        self.assertEqual(snug.memory().budget_bytes, 0)
        with self.assertRaises(ValueError):
            snug.budget("lots")
        with self.assertRaises(tf.errors.ResourceExhaustedError):
            snug.budget("10MiB")

    def test_a_step_in_slices_gives_the_same(self):
        x = np.random.default_rng(0).normal(size=(64, 32, 32, 3)).astype("f4")

        def train():
            tf.keras.utils.set_random_seed(4)
            model = tf.keras.Sequential([tf.keras.layers.Conv2D(32, 3, activation="tanh"), tf.keras.layers.Flatten(),
                                         tf.keras.layers.Dense(1)])
            model.compile("sgd", "mse")
            return model.fit(x, x[:, 0, 0, :1], batch_size=64, epochs=2, verbose=0).history["loss"]

        whole, arena = train(), _C.device()["arena_bytes"]
        gc.collect()
        _C.trim()
        _C.device_budget(_C.device()["context_bytes"] + card()[0] + 14 * MIB)
        np.testing.assert_allclose(train(), whole, rtol=1e-5)
        self.assertLess(_C.device()["arena_bytes"], arena // 2)
        self.assertLessEqual(_C.device()["context_bytes"] + card()[0], _C.device()["budget_bytes"])

    def test_a_write_behind_which_values_are_refused_is_taken_back(self):
        """What was written is copied before, on the card, in booked bytes: refused with the step, or there."""
        n, ends = 2000000, []
        v, w = tf.Variable(tf.ones((n,))), tf.Variable(tf.zeros((n,)))

        @tf.function
        def step(x):
            v.assign_add(tf.ones((n,)))
            w.assign(tf.debugging.check_numerics(v / x, "nan"))

        step(tf.constant(2.0))
        before = float(v[0])
        for beside in (0, 60, 16, 24, 32, 40):  # MiB beside what is there; 0: no limit
            gc.collect()
            _C.trim()
            _C.device_budget(_C.device()["context_bytes"] + card()[0] + beside * MIB if beside else 0)
            for _ in range(3):  # the second time a run may be captured
                with self.assertRaises((tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError)) as caught:
                    step(tf.constant(0.0))
                    float(w[0])
                caught.exception.__traceback__ = None
                ends.append(isinstance(caught.exception, tf.errors.InvalidArgumentError))
                self.assertEqual(float(v[0]), before)
        self.assertTrue(all(ends[:6]))
        self.assertFalse(all(ends))
        _C.device_budget(0)
        step(tf.constant(2.0))
        self.assertEqual((float(v[0]), float(w[0])), (before + 1, (before + 1) / 2))

    def test_a_plan_is_of_the_card(self):
        model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(4)])
        model.compile("sgd", "mse")
        self.assertIn("context", str(snug.plan(model, batch=16, budget="400MiB")))
        self.assertIn("gpu:0", str(snug.plan(model, batch=16)))

    def test_closing_a_session_gives_back(self):
        v1 = tf.compat.v1
        _C.trim()
        before = card()[0]
        with tf.Graph().as_default():
            w = v1.get_variable("w", (1024, 1024), initializer=v1.zeros_initializer())
            options = v1.GPUOptions(per_process_gpu_memory_fraction=0.5, allow_growth=True)
            with v1.Session(config=v1.ConfigProto(gpu_options=options)) as session:
                session.run(v1.global_variables_initializer())
                session.run(w.assign(w + 1.0))
                self.assertEqual(_C.device()["budget_bytes"], _C.device()["total_bytes"] // 2)
                self.assertGreater(card()[0], before + 4 * MIB - 1)
        gc.collect()
        _C.trim()
        self.assertEqual(card()[0], before)


@unittest.skipUnless(PLUGIN, "SNUG_EMULATED_PLUGIN does not name the emulated plug-in")
class Launcher(unittest.TestCase):
    TEXT = "import tensorflow as tf, snug\nprint((tf.ones((9, 9)) @ tf.ones((9, 9))).device[-5:], snug.memory().budget_bytes," \
           " (snug.memory().device or {}).get('budget_bytes'))"

    def test_devices_and_budgets_by_option(self):
        both = script(self.TEXT, "--device", "gpu", "--budget", "50%", "--host-budget", "1GiB")
        self.assertEqual(both[:2], (0, f"GPU:0 {1 << 30} {1 << 29}\n"), both[2])
        self.assertEqual(script(self.TEXT, "--device=cpu", "--budget", "1GiB")[1], f"CPU:0 {1 << 30} None\n")
        self.assertEqual(script(self.TEXT, SNUG_DEVICE="cpu")[1], "CPU:0 0 None\n")
        hidden = "import tensorflow as tf\ntf.config.set_visible_devices([], 'GPU')\n" + self.TEXT
        self.assertEqual(script(hidden)[1], "CPU:0 0 None\n")

    def test_a_card_that_cannot_be_had(self):
        code, _, err = script(self.TEXT, "--device", "gpu", SNUG_CUDA_PLUGIN="/nowhere/libsnug-cuda.so")
        self.assertEqual(code, 1)
        self.assertIn("there is no GPU plug-in", err)
        self.assertEqual(script(self.TEXT, SNUG_CUDA_PLUGIN="/nowhere/libsnug-cuda.so")[1], "CPU:0 0 None\n")
        code, _, err = script(self.TEXT, "--budget", "100MiB")
        self.assertEqual(code, 1)
        self.assertIn("less than its context alone takes", err)


if __name__ == "__main__":
    unittest.main()
