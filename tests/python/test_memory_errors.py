#!/usr/bin/env python3
"""Any request of memory may fail, the engine's or Python's: always an exception, never a crash, and the next call works.

Each program is run again and again with its first, second, ... request refused until none is left to refuse. With
SNUG_TEST_FULL every request is tried; else some of them."""
import faulthandler
import gc
import os
import unittest

import numpy as np

import snug
import snug.tensorflow as tf
from snug import _C, keras

try:
    import _testcapi
except ImportError:     # not every interpreter has it
    _testcapi = None
FULL = bool(os.environ.get("SNUG_TEST_FULL"))
a, b = np.ones((3, 4), "f4"), np.arange(12, dtype="f8").reshape(3, 4)
twice, part = a * 2, b[::2, ::-1]
x, v = tf.constant(a), tf.Variable(a)
square = tf.function(lambda t: t * t + v)
layer = keras.layers.Dense(2)
layer(x)
optimizer = keras.optimizers.Adam()
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
model.compile("sgd", "mse")


def gradients():
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.sin(x) * v)
        float(y)
        z = tf.reduce_sum(x * v * y)
    return tape.gradient(z, [x, v]), tape.watched_variables()


def trace():
    made = _C.Trace()
    try:
        argument, = made.begin([x])
        made.end([argument * 2.0 + v])
    except BaseException:
        made.drop()
        raise
    return float(made.call([x])[0][0, 0]), made.has_effects


def train():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(layer(x) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables))


def assigns():
    u = tf.Variable(a, name="u")
    u.assign(twice), u.assign_add(x), u.assign_sub(x), u[0].assign(x[0]), u.scatter_nd_update([[1]], x[:1])
    return float(u[0, 0]), u.read_value(), u.name, u.trainable, u.shape


PROGRAMS = {
    "numbers": lambda: [tf.constant(1), tf.constant(2.5), tf.constant(True), tf.constant([1, 2]), tf.constant([[1.0], [2]])],
    "arrays": lambda: [tf.constant(a), tf.constant(b, dtype=tf.float32), tf.constant(part), tf.constant([a, a])],
    "operators": lambda: [x + 1, 2 * x, x / a, x @ tf.transpose(x), -x, abs(x), x ** 2, x // 2, x % 2, x < a, x == x, divmod(x, 2)],
    "functions": lambda: [tf.reduce_sum(x, axis=1), tf.concat([x, x], 0), tf.split(x, 2, 1), tf.stack([x, x]), tf.where(x > 0, x, 0),
                          tf.one_hot([1, 2], 3), tf.reshape(x, [-1]), tf.einsum("ij,kj->ik", x, x), tf.shape(x)[0] * 2],
    "indices": lambda: [x[0], x[:, 1], x[1:, ::2], x[..., None], x[tf.constant(1)], x[x > 0], v[0], x[-1, -1], list(x)],
    "reading": lambda: [float(tf.reduce_sum(x)), int(tf.size(x)), bool(tf.reduce_all(x > 0)), bytes(memoryview(x + 1)), x.shape, x.dtype,
                        x.ndim, len(x), x.device, [1, 2, 3][tf.constant(1)]],
    "variables": assigns,
    "tapes": gradients,
    "traces": trace,
    "training": train,
    "layers": lambda: [keras.layers.Dense(3)(x), keras.layers.LayerNormalization()(x), float(layer(x)[0, 0])],
    "random": lambda: [float(tf.random.normal((3, 2))[0, 0]), int(tf.random.uniform((2,), maxval=5, dtype=tf.int32)[0])],
    "whole": lambda: [snug.memory(), _C.info(), _C.sync()],
}
# NumPy does not survive every refusal of Python's allocator, and Python code cannot always clean up after one.
ENGINE_ONLY = {
    "tf.function": lambda: [float(square(x)[0, 0]), tf.function(lambda t: tf.reduce_sum(t) * 2)(x), square.get_concrete_function(x)],
    "arrays out": lambda: [(x + 1).numpy(), repr(x + 2), str(x), np.asarray(x * 3), f"{tf.reduce_sum(x):.2f}", repr(v), v.numpy()],
    "models": lambda: [model.predict(a, verbose=0), model.train_on_batch(a, a[:, :2])],
}
ALLOWED = (MemoryError, tf.errors.OpError)


def run(test, name, program):
    try:
        program()
        return True
    except ALLOWED:
        return False
    except (SystemError, KeyError, TypeError, ValueError, AttributeError, RuntimeError, ImportError) as error:
        cause = error
        while cause is not None and not isinstance(cause, ALLOWED):
            cause = cause.__cause__ or cause.__context__
        test.assertIsNotNone(cause, f"{name}: {type(error).__name__}: {error}")
        test.assertNotIsInstance(error, SystemError, f"{name}: {error}")
        return False


class EngineRequests(unittest.TestCase):
    def sweep(self, name, program, for_good):
        n, step, done = 0, 1, 0
        while done < 3 and n < 5000:        # plans at hand make a run cheaper: a few quiet ones in a row
            _C.refuse(n, for_good)
            worked = run(self, name, program)
            fired = _C.refuse(-1)
            self.assertTrue(worked or fired, name)
            done = 0 if fired else done + 1
            n += step
            step = 1 if FULL or n < 20 else 1 + n // 12
        program()

    def test_any_request_of_the_engine_may_fail(self):
        for name, program in (PROGRAMS | ENGINE_ONLY).items():
            program(), program()
            for for_good in (False, True):
                with self.subTest(name, for_good=for_good):
                    _C.trim()
                    self.sweep(name, program, for_good)
        self.assertEqual(float(tf.reduce_sum(x)), 12)


@unittest.skipUnless(_testcapi, "this interpreter has no _testcapi")
class PythonRequests(unittest.TestCase):
    def test_any_request_of_python_may_fail(self):
        for name, program in PROGRAMS.items():
            program(), program()
            with self.subTest(name):
                n, step, quiet = 1, 1, 0
                while quiet < 2 and n < 20000:
                    gc.collect()
                    gc.disable()
                    outcome = None
                    try:
                        _testcapi.set_nomemory(n, n + 1)
                        program()
                        _testcapi.remove_mem_hooks()
                        outcome = "worked"
                    except BaseException as error:
                        _testcapi.remove_mem_hooks()
                        outcome = error
                    gc.enable()
                    self.assertNotIsInstance(outcome, SystemError, f"{name} {n}: {outcome}")
                    quiet = quiet + 1 if outcome == "worked" else 0
                    n += step
                    step = 1 if FULL or n < 30 else 1 + n // 25
                program()


if __name__ == "__main__":
    faulthandler.enable()
    unittest.main()
