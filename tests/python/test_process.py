#!/usr/bin/env python3
"""What a process meets: refusals, interrupts, threads, and that nothing is left behind."""
import gc
import os
import signal
import sys
import threading
import time
import unittest

import numpy as np

import snug
import snug.tensorflow as tf
from snug import _C

FULL = bool(os.environ.get("SNUG_TEST_FULL"))
PLAIN = unittest.skipIf("SNUG_TEST_SANITIZED" in os.environ, "budgets of the process, which has a sanitizer's memory in it")


def held():
    gc.collect()
    _C.sync()
    info = _C.info()
    return info["tensor_bytes"], info["variable_bytes"], info["tape_bytes"]


class Leaks(unittest.TestCase):
    """What a call leaves behind, it leaves 10,000 times: one object, or the smallest piece of the engine's memory, is found."""

    def stays(self, work, first, more):
        """Neither the ledger nor the number of objects and blocks grows; handles that wait to be used again may be more."""
        work(first)
        before, ledger, objects = held(), _C.info()["bytes"], len(gc.get_objects())
        blocks, types = sys.getallocatedblocks(), sys.getrefcount(_C.Tensor)
        work(more)
        self.assertEqual(held(), before)
        self.assertLess(_C.info()["bytes"] - ledger, 12 * more)
        self.assertLess(len(gc.get_objects()) - objects, more / 20)
        self.assertLess(sys.getallocatedblocks() - blocks, more / 2)
        self.assertLess(abs(sys.getrefcount(_C.Tensor) - types), 5)

    def test_nothing_is_left_of_tensors_tapes_functions_variables(self):
        def work(n):
            for i in range(n):
                v = tf.Variable(np.ones((4, 4), "f4"))
                with tf.GradientTape() as tape:
                    y = tf.reduce_sum(tf.constant([[1.0] * 4]) @ v)
                tape.gradient(y, [v])
                v[0].assign(tf.zeros(4))
                tf.function(lambda x: x + v)(y)
                if i % 50 == 0:
                    float(y), repr(y), memoryview(y), y.shape, tf.split(tf.ones(4), 2)

        self.stays(work, 100, 10000)

    def test_nothing_is_left_of_a_gradient_that_is_read(self):
        v, row = tf.Variable(np.ones((4, 4), "f4")), tf.ones((1, 4))

        def work(n):
            for _ in range(n):
                with tf.GradientTape(persistent=True) as tape:
                    y = tf.reduce_sum(tf.sin(row @ v))
                float(tape.gradient(y, v)[0, 0]), tape.gradient(y, [v, row])

        self.stays(work, 100, 10000)

    def test_nothing_is_left_of_sessions(self):
        v1 = tf.compat.v1

        def work(n):
            for _ in range(n):
                graph = v1.Graph()
                with graph.as_default(), v1.Session(graph=graph) as session:
                    p = v1.placeholder(tf.float32, (None, 4))
                    w = v1.get_variable("w", shape=(4, 2), initializer=v1.ones_initializer())
                    session.run(v1.global_variables_initializer())
                    session.run(tf.reduce_sum(tf.matmul(p, w)), {p: np.ones((3, 4), "f4")})

        self.stays(work, 100, 10000)

    def test_nothing_is_left_of_models(self):
        from snug import keras

        def work(n):
            for _ in range(n):
                model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu"), keras.layers.Dense(1)])
                model.compile("adam", "mse")
                model.train_on_batch(np.ones((2, 4), "f4"), np.ones((2, 1), "f4"))
                model(np.ones((2, 4), "f4"))
            keras.backend.clear_session()

        self.stays(work, 300, 10000)  # what comes once is there by then

    def test_reference_counts_stay(self):
        a = np.ones(3, "f4")
        x = tf.constant(a)
        counts = lambda: [sys.getrefcount(o) for o in (None, True, a, tf.float32, x)]
        for _ in range(3):
            tf.reduce_sum(x, axis=None, keepdims=True), x + a, tf.cast(a, tf.float32), x[None], x == None
        before = counts()
        for _ in range(400):
            tf.reduce_sum(x, axis=None, keepdims=True), x + a, tf.cast(a, tf.float32), x[None], x == None
            self.assertRaises(TypeError, lambda: tf.reduce_sum(x, nonsense=True))
            self.assertRaises(tf.errors.InvalidArgumentError, lambda: x + tf.ones(4))
        after = counts()
        for b, c in zip(before, after):
            self.assertLess(abs(c - b), 200)


class Tapes(unittest.TestCase):
    def test_a_dropped_tape_lowers_memory(self):
        x = tf.constant(np.full((1000, 1000), 0.5, "f4"))
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sin(tf.sin(x) * x))
        float(y)
        held_by_tape, before = _C.info()["tape_bytes"], snug.memory().bytes
        self.assertGreater(held_by_tape, 4_000_000)
        del tape
        self.assertEqual(_C.info()["tape_bytes"], 0)
        self.assertLessEqual(snug.memory().bytes, before - held_by_tape)


class Refusals(unittest.TestCase):
    def tearDown(self):
        snug.budget(None)

    @PLAIN
    def test_a_thousand_refusals_and_a_smaller_step_after_each(self):
        snug.budget("400MiB")
        start = None
        for i in range(1000):
            with self.assertRaises(snug.BudgetError):
                (tf.ones((20000, 20000)) * 2.0 + tf.random.normal((20000, 20000))).numpy()
            self.assertEqual(float(tf.reduce_sum(tf.ones(10))), 10)
            if i == 20:
                start = held(), _C.info()["bytes"]
        self.assertEqual(held(), start[0])
        self.assertLessEqual(_C.info()["bytes"], start[1] + (1 << 20))


class Verdicts(unittest.TestCase):
    @PLAIN
    def test_a_plan_prints_as_the_command_does_and_has_fields(self):
        from snug import keras
        model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4, activation="relu"), keras.layers.Dense(2)])
        model.compile("adam", "mse")
        plan = snug.plan(model, batch=64, budget="200MiB")
        self.assertIn("a training step with adam", str(plan))
        self.assertTrue(plan.fits)
        self.assertGreater(plan.budget_bytes, plan.peak_bytes)
        self.assertFalse(snug.plan(model, batch=64, budget="1MiB").fits)


class Interrupts(unittest.TestCase):
    def setUp(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has it ignored

    def test_a_step_stops_and_the_process_goes_on(self):
        v = tf.Variable(1.0)
        float(v)
        x = tf.random.normal((1500, 1500))
        x.numpy()
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(100):
                y = x
                for _ in range(30):
                    y = tf.matmul(y, x) * 1e-3
                float(tf.reduce_sum(y))
        timer.join()
        self.assertEqual((float(v), float(tf.reduce_sum(tf.ones(5)))), (1, 5))

    def test_a_loop_of_assignments_stops(self):
        v, x = tf.Variable(tf.ones((1000, 1000))), tf.ones((1000, 1000)) * 1e-3
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        done = 0
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(20000):  # one plan of all of them would take minutes
                v.assign(tf.matmul(v, x))
                done += 1
        timer.join()
        self.assertLess(done, 20000)
        self.assertAlmostEqual(float(v[0, 0]), 1, 3)

    def files_and_threads(self):
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def test_fit_may_be_interrupted_anywhere(self):
        """With threads that read ahead, validation and metrics: whenever it is, the model is as before or after a step, and nothing stays open."""
        import random
        from snug import _tape, keras
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dropout(0.3),
                                  keras.layers.BatchNormalization(), keras.layers.Dense(4, activation="softmax")])
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        x, y = np.ones((128, 16), "f4"), np.zeros(128, "i4")
        rows = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(50).map(lambda a, b: (a * 1.0, b), num_parallel_calls=2).batch(16).prefetch(2)
        model.fit(rows, verbose=0, validation_data=rows.take(2))
        draw, main, kept = random.Random(3), threading.main_thread().ident, None
        for k in range(200 if FULL else 20):
            timer = threading.Timer(draw.uniform(0, 0.04), signal.pthread_kill, (main, signal.SIGINT))
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                model.fit(rows, epochs=10 ** 6, verbose=0, validation_data=rows.take(2))
            timer.join()
            self.assertTrue(all(np.isfinite(v.numpy()).all() for v in model.weights + model.optimizer.variables))
            loss = model.fit(x, y, batch_size=16, verbose=0).history["loss"][0]
            self.assertTrue(np.isfinite(loss))
            self.assertEqual(len(_tape.ACTIVE), 0)
            gc.collect()
            if kept is None:
                time.sleep(0.5)
                kept = self.files_and_threads()
            for _ in range(1000):  # join() returns while the system still has the timer's thread
                if self.files_and_threads() == kept:
                    break
                time.sleep(0.01)
            self.assertEqual(self.files_and_threads(), kept)


class Lines(unittest.TestCase):
    def test_an_error_in_a_run_names_the_line_that_recorded_it(self):
        x, i = tf.constant([1.0, 2.0]) * 2, tf.cast(tf.constant([0.0, 5.0]) * 1, tf.int32)
        y = tf.gather(x, i)
        line = sys._getframe().f_lineno - 1
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, rf"test_process.py:{line}: index 5"):
            float(tf.reduce_sum(y))


class Threads(unittest.TestCase):
    def test_others_go_on_while_a_plan_runs(self):
        ticks, stop = [0], threading.Event()

        def tick():
            while not stop.is_set():
                ticks[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        y = x = tf.random.normal((1200, 1200))
        for _ in range(10):
            y = tf.matmul(y, x) * 1e-3
        thread.start()
        before = ticks[0]
        float(tf.reduce_sum(y))
        during = ticks[0] - before
        stop.set()
        thread.join()
        self.assertGreater(during, 3)

    def test_threads_compute_what_one_does(self):
        def work(k, out):
            v = tf.Variable(float(k))
            for _ in range(30):
                v.assign(v * 1.5 - 1.0)
                float(v)
            out[k] = float(v)

        alone, together = {}, {}
        for k in range(4):
            work(k, alone)
        threads = [threading.Thread(target=work, args=(k, together)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(alone, together)

    def test_models_train_side_by_side(self):
        from snug import keras

        def train(seed, out):
            x = np.random.default_rng(seed).normal(size=(64, 4)).astype("f4")
            w = tf.Variable(x[:4, :1])
            predict = tf.function(lambda a: tf.sigmoid(tf.matmul(a, w)))
            for _ in range(20):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((predict(x) - 1.0) ** 2)
                w.assign_sub(0.5 * tape.gradient(loss, w))
            model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, kernel_initializer="ones"),
                                      keras.layers.Dense(1, kernel_initializer="ones")])
            model.compile("adam", "mse")
            model.fit(x, x[:, :1], batch_size=16, epochs=2, verbose=0, shuffle=False)
            out[seed] = float(loss), w.numpy().tolist(), model.evaluate(x, x[:, :1], verbose=0)

        alone, together = {}, {}
        for k in range(3):
            train(k, alone)
        threads = [threading.Thread(target=train, args=(k, together)) for k in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(alone, together)

    def test_a_tape_of_one_thread_sees_nothing_of_another(self):
        x, seen = tf.constant([2.0, 3.0]), {}

        def other():
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x * x * x
            seen["g"], seen["y"] = tape.gradient(y, x), y

        with tf.GradientTape() as tape:
            tape.watch(x)
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            y = x * x
        self.assertEqual(tape.gradient(y, x).numpy().tolist(), [4, 6])
        self.assertEqual(seen["g"].numpy().tolist(), [12, 27])
        self.assertEqual((seen["y"] + 1).numpy().tolist(), [9, 28])

    def test_a_variable_that_threads_share_is_written_in_turn(self):
        v, lock = tf.Variable(0.0), threading.Lock()

        def bump():
            for i in range(50):
                with lock:
                    v.assign_add(1.0)
                if i % 20 == 0:
                    float(v)

        threads = [threading.Thread(target=bump) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(float(v), 200)

    def test_threads_that_are_gone_leave_nothing(self):
        def work():
            v = tf.Variable(tf.ones((64, 64)))
            v.assign(v * 2.0)
            kept.append(v)

        kept = []
        for i in range(40):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            if i >= 20:
                self.assertEqual(float(kept[-1][0, 0]), 2)
            if i == 20:
                before = _C.info()["bytes"] - 64 * 64 * 4 * len(kept)
        after = _C.info()["bytes"] - 64 * 64 * 4 * len(kept)
        self.assertLess(after - before, 1 << 16)


if __name__ == "__main__":
    unittest.main()
