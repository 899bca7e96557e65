#!/usr/bin/env python3
"""float16 and bfloat16 on their way to NumPy, to other programs and into files: without the package ml_dtypes, and with it, which
pip puts into build/ where the machine has none (the tests with it are skipped where that cannot be)."""
import contextlib
import copy
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from fetched import Missing, fetched  # noqa: E402

WITH = os.environ.get("SNUG_TEST_ML_DTYPES")        # the folder it is in, of the run with it
ML_DTYPES = "0.5.1"                                 # that Debian 12's NumPy 1.24 can load
sys.modules["ml_dtypes"] = None
if WITH:
    del sys.modules["ml_dtypes"]
    sys.path.insert(0, WITH)

import numpy as np  # noqa: E402

from snug import _arrays, _files, _hook, errors, keras  # noqa: E402
from snug import tensorflow as tf  # noqa: E402
from snug.keras import _hdf5, layers as L  # noqa: E402

_hook.install()
BF16 = __import__("ml_dtypes").bfloat16 if WITH else np.float32
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
VALUES = [1.5, -2.0, 0.15625, 3e38, -1e-30]


def brains(values=VALUES):
    return tf.constant(values, tf.bfloat16)


class ToNumPy(unittest.TestCase):
    def test_numpy_and_asarray_are_of_one_type(self):
        t, v = brains([1.5, -2.0, 0.15625]), tf.Variable([1.5, -2.0, 0.15625], dtype=tf.bfloat16)
        for made in (t.numpy(), np.asarray(t), np.array(t), v.numpy(), np.asarray(v), np.array(tf.reshape(t, [3, 1]))[:, 0]):
            self.assertEqual((made.dtype, made.tolist()), (np.dtype(BF16), [1.5, -2.0, 0.15625]))
        self.assertIs(tf.bfloat16.as_numpy_dtype, BF16)
        self.assertEqual(np.asarray(t, np.float64).tolist(), [1.5, -2.0, 0.15625])

    def test_scalars(self):
        one = tf.constant(1.5, tf.bfloat16).numpy()
        self.assertEqual((type(one), float(one)), (BF16, 1.5))
        self.assertEqual(float(tf.constant(-0.5, tf.bfloat16)), -0.5)

    def test_empty_ones_and_special_values(self):
        self.assertEqual(tf.zeros([0, 3], tf.bfloat16).numpy().shape, (0, 3))
        made = brains([float("inf"), float("-inf"), float("nan"), -0.0]).numpy().astype(np.float32)
        self.assertTrue(made[0] == np.inf and made[1] == -np.inf and made[2] != made[2] and np.signbit(made[3]))

    def test_buffers_have_no_format_for_it(self):
        self.assertRaisesRegex(BufferError, r"bfloat16; use numpy\(\)", memoryview, brains())
        self.assertEqual(memoryview(tf.constant([1.5], tf.float16)).format, "e")

    def test_of_datasets(self):
        made = list(tf.data.Dataset.from_tensor_slices(brains([1.5, -2.0])).batch(2).as_numpy_iterator())[0]
        self.assertEqual((made.dtype, made.tolist()), (np.dtype(BF16), [1.5, -2.0]))
        self.assertEqual([float(x) for x in tf.data.Dataset.from_tensor_slices(brains([1.5, -2.0])).as_numpy_iterator()], [1.5, -2.0])

    def test_float16_as_it_is(self):
        made = np.asarray(tf.constant([1.5, -2.0], tf.float16))
        self.assertEqual((made.dtype, made.tolist()), (np.dtype("e"), [1.5, -2.0]))
        self.assertEqual(tf.constant(made).dtype, tf.float16)

    def test_prints_the_same_numbers(self):
        self.assertEqual(repr(brains([1.5, 2.0])), "<tf.Tensor: shape=(2,), dtype=bfloat16, numpy=array([1.5, 2], dtype=bfloat16)>")
        self.assertEqual(str(tf.constant(0.5, tf.bfloat16)), "tf.Tensor(0.5, shape=(), dtype=bfloat16)")
        self.assertEqual(f"{tf.constant(0.5, tf.bfloat16):.2f} {tf.constant(0.5, tf.float16):.2f}", "0.50 0.50")


@unittest.skipUnless(WITH, "without ml_dtypes there are no such arrays")
class FromNumPy(unittest.TestCase):
    def setUp(self):
        self.a = np.array([[1.5, -2.0, 3.0], [0.25, 4.0, -8.0]], np.float32).astype(BF16)

    def test_become_tensors(self):
        a = self.a
        for given in (a, list(a), a.T, a[:, ::2], np.asfortranarray(a), a[0, 0], [a[0, 0], a[0, 1]], a[:0]):
            made = tf.constant(given)
            self.assertEqual(made.dtype, tf.bfloat16)
            self.assertEqual(tf.cast(made, tf.float32).numpy().tolist(), np.asarray(given, BF16).astype(np.float32).tolist())

    def test_in_other_types(self):
        for kind in ("float32", "float64", "float16", "int32"):
            self.assertEqual(tf.cast(self.a, kind).numpy().tolist(), self.a.astype(np.float32).astype(kind).tolist())
            self.assertEqual(tf.constant(self.a, kind).dtype, kind)

    def test_as_operands_and_values(self):
        v, t = tf.Variable(self.a), tf.constant(self.a)
        self.assertEqual((v.dtype, (t + self.a).dtype, (self.a + t).dtype), (tf.bfloat16,) * 3)
        self.assertEqual(v.assign(self.a * BF16(2)).numpy()[0, 0], 3.0)
        self.assertEqual((tf.matmul(self.a, self.a.T).dtype, tf.reduce_sum(self.a).dtype, tf.as_dtype(self.a.dtype)), (tf.bfloat16,) * 3)
        self.assertEqual(tf.stack([self.a, self.a]).shape, (2, 2, 3))

    def test_in_datasets_and_models(self):
        got = list(tf.data.Dataset.from_tensor_slices((self.a, self.a[:, 0])).batch(2))
        self.assertEqual([t.dtype for t in got[0]], [tf.bfloat16] * 2)
        model = keras.Sequential([keras.Input((3,)), L.Dense(1, dtype="mixed_bfloat16")])
        model.compile("sgd", "mse")
        self.assertEqual(model.predict(self.a, verbose=0).dtype, BF16)
        self.assertTrue(np.isfinite(model.fit(self.a, self.a[:, 0], verbose=0).history["loss"][0]))
        model.layers[0].set_weights([np.ones((3, 1), BF16), np.zeros(1, BF16)])
        self.assertEqual(model.layers[0].get_weights()[0].tolist(), [[1.0]] * 3)

    def test_other_types_of_ml_dtypes_are_refused_by_name(self):
        import ml_dtypes
        self.assertRaisesRegex(errors.UnimplementedError, "no tensors of float8_e5m2; cast the array to float32", tf.constant,
                               np.ones(2, ml_dtypes.float8_e5m2))


class Copies(unittest.TestCase):
    def test_keep_their_type(self):
        v = tf.Variable(VALUES, dtype=tf.bfloat16, name="v")
        for made in (copy.deepcopy(v), pickle.loads(pickle.dumps(v)), copy.copy(v), pickle.loads(pickle.dumps(brains())), copy.deepcopy(brains())):
            self.assertEqual((made.dtype, bits(made)), (tf.bfloat16, bits(brains())))

    def test_bitcast(self):
        self.assertEqual(tf.bitcast(tf.constant([1.5, -2.0], tf.bfloat16), tf.uint16).numpy().tolist(), [0x3fc0, 0xc000])
        back = tf.bitcast(tf.constant([0x3fc0, 0xc000], tf.uint16), tf.bfloat16)
        self.assertEqual((back.dtype, tf.cast(back, tf.float32).numpy().tolist()), (tf.bfloat16, [1.5, -2.0]))
        self.assertEqual(tf.bitcast(tf.constant(1.5, tf.bfloat16), tf.int16).numpy(), 0x3fc0)


def bits(tensor):
    return b"".join(_files.pieces(tensor))


class Foreign:
    """An object that gives a capsule, as another library's tensor."""

    def __init__(self, tensor):
        self.capsule = tf.experimental.dlpack.to_dlpack(tensor)

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


class DLPack(unittest.TestCase):
    def test_there_and_back(self):
        for kind in ("float16", "bfloat16", "float32"):
            t = tf.constant([[1.5, -2.0, 0.25]], kind)
            for given in (tf.experimental.dlpack.to_dlpack(t), Foreign(t)):
                made = tf.experimental.dlpack.from_dlpack(given)
                self.assertEqual((made.dtype, made.shape, bits(made)), (t.dtype, t.shape, bits(t)))

    def test_the_capsule_says_bfloat16(self):
        import ctypes
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        capsule = tf.experimental.dlpack.to_dlpack(brains())
        head = ctypes.string_at(pointer(capsule, b"dltensor"), 24)
        self.assertEqual((head[20], head[21], head[22]), (4, 16, 1))         # kDLBfloat, bits, lanes
        del head
        tf.experimental.dlpack.from_dlpack(capsule)

    def test_as_data(self):
        self.assertEqual(_arrays.of(Foreign(brains([1.5, -2.0]))).tolist(), [1.5, -2.0])

    def test_what_is_none(self):
        self.assertRaises(Exception, tf.experimental.dlpack.from_dlpack, object())


POLICIES = ("float16", "bfloat16")
WORDS = {"float16": b'"F16"', "bfloat16": b'"BF16"'}


def model_of(policy, seed=0):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input((3,)), L.Dense(4, activation="tanh", dtype=policy), L.Dense(2, dtype=policy)])


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as path:
        yield lambda name: os.path.join(path, name)


def of_model(model):
    return [bits(v) for v in model.weights]


class Files(unittest.TestCase):
    def there_and_back(self, policy, name):
        model, other = model_of(policy, 1), model_of(policy, 2)
        self.assertNotEqual(of_model(model), of_model(other))
        with folder() as at:
            model.save_weights(at(name))
            with open(at(name), "rb") as file:
                raw = file.read()
            other.load_weights(at(name))
        self.assertEqual(of_model(model), of_model(other))
        return raw

    def test_safetensors(self):
        for policy in POLICIES:
            raw = self.there_and_back(policy, "w.safetensors")
            self.assertEqual((raw.count(WORDS[policy]), raw.count(b"F32")), (4, 0))

    def test_weights_h5(self):
        for policy in POLICIES:
            raw = self.there_and_back(policy, "w.weights.h5")
            self.assertEqual(raw.count(bits(model_of(policy, 1).weights[0])), 1)        # two bytes each, as they are

    def test_npz(self):
        self.there_and_back("float16", "w.npz")
        with folder() as at:
            self.assertRaisesRegex(ValueError, r"'[\w/]+/kernel' is of bfloat16, for which .npz has no name: save .safetensors or .weights.h5",
                                   model_of("bfloat16").save_weights, at("w.npz"))
            self.assertFalse(os.path.exists(at("w.npz")))
            np.savez(at("void.npz"), *(np.zeros(v.shape, "V2") for v in model_of("bfloat16").weights))
            self.assertRaisesRegex(ValueError, "how NumPy saves bfloat16: save .safetensors or .weights.h5", model_of("bfloat16").load_weights, at("void.npz"))

    def test_whole_models(self):
        for policy in POLICIES:
            for name in ("m.keras", "m.h5"):
                model = model_of(policy, 1)
                with folder() as at:
                    model.save(at(name))
                    read = keras.models.load_model(at(name))
                self.assertEqual((of_model(read), [v.dtype for v in read.weights]), (of_model(model), [policy] * 4))

    def test_own_variables(self):
        class Scale(L.Layer):
            def build(self, shape):
                self.s = self.add_weight(shape=(3,), initializer="random_normal", name="s")

            def call(self, x):
                return x * self.s

        model, other = (keras.Sequential([keras.Input((3,)), Scale(dtype="bfloat16")]) for _ in range(2))
        with folder() as at:
            model.save_weights(at("w.weights.h5"))
            other.load_weights(at("w.weights.h5"))
            with _hdf5.opened(at("w.weights.h5")) as tree:
                self.assertEqual([layer["vars"]["0"].nbytes for layer in tree["layers"].values()], [6])
        self.assertEqual(of_model(model), of_model(other))

    def test_into_other_types(self):
        for name in ("w.safetensors", "w.weights.h5"):
            for policy in POLICIES:
                wide, half, again = model_of("float32", 1), model_of(policy, 2), model_of("float32", 3)
                with folder() as at:
                    wide.save_weights(at(name))
                    half.load_weights(at(name))
                    half.save_weights(at("half" + name))
                    again.load_weights(at("half" + name))
                for w, h, a in zip(wide.weights, half.weights, again.weights):
                    self.assertEqual(bits(tf.cast(w, policy)), bits(h))
                    self.assertEqual(bits(tf.cast(h, "float32")), bits(a))

    def test_as_keras_wrote_them(self):
        wanted = {"bfloat16": [[1.5, -0.25], [3.0, 0.0078125]], "float16": [[1.5, -0.25], [3.0, 0.0078125]]}
        for policy in POLICIES:
            model = keras.Sequential([keras.Input((2,)), L.Dense(2, dtype=policy)])
            model.load_weights(os.path.join(DATA, policy + ".weights.h5"))
            self.assertEqual(tf.cast(model.weights[0], "float32").numpy().tolist(), wanted[policy])
            read = keras.models.load_model(os.path.join(DATA, policy + ".keras"))
            self.assertEqual((str(read.weights[0].dtype), tf.cast(read.weights[0], "float32").numpy().tolist()), (policy, wanted[policy]))

    def test_two_bytes_that_nobody_names_are_refused(self):
        with folder() as at:
            _hdf5.write(at("w.weights.h5"), {"layers": {"dense": {"vars": {"0": _files.stored(brains())}}}})
            with open(at("w.weights.h5"), "r+b") as file:
                raw = file.read()
                file.seek(raw.index(b"dtype\0"))
                file.write(b"DTYPE")
            with _hdf5.opened(at("w.weights.h5")) as tree:
                self.assertRaisesRegex(ValueError, "elements that Snug does not read", tree["layers"]["dense"]["vars"].__getitem__, "0")

    def test_checkpoints_and_folders(self):
        v, w = tf.Variable(VALUES, dtype=tf.bfloat16), tf.Variable([0.0] * 5, dtype=tf.bfloat16)
        module = tf.Module()
        module.v, module.c = v, brains()
        with folder() as at:
            path = tf.train.Checkpoint(v=v).save(at("c"))
            tf.train.Checkpoint(v=w).restore(path)
            tf.saved_model.save(module, at("m"))
            read = tf.saved_model.load(at("m"))
        for made in (w, read.v, read.c):
            self.assertEqual((made.dtype, bits(made)), (tf.bfloat16, bits(v)))

    def test_a_fit_that_goes_on(self):
        class Stop(keras.callbacks.Callback):
            def on_epoch_begin(self, epoch, logs=None):
                if epoch == 1:
                    raise KeyboardInterrupt

        def run(path, *callbacks):
            model = model_of("bfloat16", 1)
            model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
            model.fit(np.ones((4, 3), "f4"), np.ones((4, 2), "f4"), epochs=2, verbose=0,
                      callbacks=[keras.callbacks.BackupAndRestore(path), *callbacks])
            return of_model(model)

        with folder() as at:
            with self.assertRaises(KeyboardInterrupt):
                run(at("a"), Stop())
            self.assertEqual(run(at("a")), run(at("b")))

    def test_weights_that_are_brought_back(self):
        model = model_of("bfloat16", 1)
        model.compile(keras.optimizers.SGD(1e3), "mse")
        before = of_model(model)
        best = keras.callbacks.EarlyStopping(monitor="loss", patience=1, restore_best_weights=True, baseline=-1.0)
        model.fit(np.ones((4, 3), "f4"), np.ones((4, 2), "f4"), epochs=3, verbose=0, callbacks=[best])
        self.assertNotEqual(of_model(model), before)
        self.assertEqual([v.dtype for v in model.weights], ["bfloat16"] * 4)


class WithMlDtypes(unittest.TestCase):
    @unittest.skipIf(WITH, "this is the run")
    def test_all_of_it(self):
        try:
            options = ["--no-deps", "--only-binary=:all:", "--python-version", "%d.%d" % sys.version_info[:2]]
            home = fetched("ml_dtypes", ML_DTYPES, "ml_dtypes/__init__.py", options)
        except Missing as why:
            self.skipTest(str(why))
        run = subprocess.run([sys.executable, "-B", os.path.abspath(__file__)], env={**os.environ, "SNUG_TEST_ML_DTYPES": home}, capture_output=True,
                             text=True)
        self.assertEqual(run.returncode, 0, run.stderr[-4000:])
        self.assertIn("OK (skipped=1)", run.stderr)


if __name__ == "__main__":
    unittest.main()
