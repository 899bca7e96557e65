#!/usr/bin/env python3
"""What a file may name: registered objects, Keras' own names and custom_objects, and nothing else; and old pickles without the pickle module."""
import ast
import copy
import io
import json
import os
import pickle
import struct
import sys
import tarfile
import tempfile
import threading
import types
import unittest
import zipfile

import numpy as np

import snug
from snug import _pickles, keras
from snug import tensorflow as tf
from snug.keras import _hdf5, _serial
from snug.keras import layers as L

FIRED = []
CANARY = types.ModuleType("canary")


def fire(*args, **kwargs):
    FIRED.append(args)
    return args[0] if args else None


class Fire(L.Layer):
    """A class that a loaded module has, a layer even, which nobody registered."""

    def __init__(self, *args, **kwargs):
        FIRED.append(args)
        super().__init__()


CANARY.fire, CANARY.Fire, fire.__module__, Fire.__module__ = fire, Fire, "canary", "canary"
sys.modules["canary"] = CANARY
FUNCTION = {"module": "canary", "class_name": "function", "config": "fire", "registered_name": "function"}
CLASS = {"module": "canary", "class_name": "Fire", "config": {}, "registered_name": "Fire"}
OS = {"module": "os", "class_name": "function", "config": "system", "registered_name": "function"}


def sequential(*rows, **more):
    first = {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [None, 4], "name": "in"}}
    return {"module": "keras", "class_name": "Sequential", "config": {"name": "s", "layers": [first, *rows]}, **more}


def layer(name, **config):
    return {"module": "keras.layers", "class_name": name, "config": {"name": "l", **config}}


def dense(**config):
    return layer("Dense", units=2, **config)


def evil_models():
    """Configurations that name something they must not, at every place where something is looked up."""
    yield {"module": "keras", "class_name": "Functional", "config": {"name": "m", "layers": [
        {**FUNCTION, "name": "f", "inbound_nodes": [{"args": ["x"], "kwargs": {}}]}], "input_layers": [], "output_layers": []}}
    for evil in (FUNCTION, CLASS, OS, {**OS, "module": "builtins", "config": "eval"}, {**CLASS, "module": None}, {**CLASS, "module": "keras.layers"}):
        yield evil
        yield sequential(evil)
        for place in ("activation", "kernel_initializer", "bias_initializer", "kernel_regularizer", "kernel_constraint", "activity_regularizer"):
            yield sequential(dense(**{place: evil}))
        yield sequential(layer("Lambda", function=evil))
        yield sequential(layer("TimeDistributed", layer=evil))
        yield sequential(layer("RNN", cell=evil))
        yield sequential(layer("StackedRNNCells", cells=[evil]))
        yield sequential(layer("Activation", activation=evil))
        for place in ("optimizer", "loss", "metrics", "weighted_metrics"):
            whole = {"optimizer": "sgd", "loss": "mse", place: [evil] if "metrics" in place else evil}
            yield sequential(dense(), compile_config=whole)
        rate = {"module": "keras.optimizers", "class_name": "SGD", "config": {"learning_rate": evil}}
        yield sequential(dense(), compile_config={"optimizer": rate, "loss": "mse"})
    for word in ("sys", "_C", "named", "_find", "_symbolic"):
        yield {"module": "keras", "class_name": "Functional", "config": {"name": "m", "layers": [
            {"module": "keras.src.ops.numpy", "class_name": word, "config": {"name": "f"}, "name": "f",
             "inbound_nodes": [{"args": ["x"], "kwargs": {}}]}], "input_layers": [], "output_layers": []}}
    for word in ("functools", "tf", "is_of_engine", "get", "_wrap", "os", "system"):
        yield sequential(dense(activation=word))
        yield sequential(dense(kernel_constraint=word))
    for word in ("_Around", "Path", "importlib", "_tf", "KerasTensor"):
        yield sequential(layer(word))


class TrustTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        FIRED.clear()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def keras_file(self, config):
        with zipfile.ZipFile(self.path("m.keras"), "w") as file:
            file.writestr("config.json", json.dumps(config))
            file.writestr("model.weights.h5", b"")
        return self.path("m.keras")

    def h5_file(self, config):
        tree = _hdf5.Group(model_config=json.dumps(config))
        tree["model_weights"] = _hdf5.Group(layer_names=[])
        if "compile_config" in config:
            told = dict(config["compile_config"])
            tree.attributes["training_config"] = json.dumps({**told, "optimizer_config": told.pop("optimizer")})
        _hdf5.write(self.path("m.h5"), tree)
        return self.path("m.h5")

    def test_no_door_runs_what_a_file_names(self):
        for config in evil_models():
            for load in (lambda: keras.models.load_model(self.keras_file(config)), lambda: keras.models.load_model(self.h5_file(config)),
                         lambda: keras.models.model_from_json(json.dumps(config)), lambda: _serial.deserialize_keras_object(config)):
                with self.subTest(config=json.dumps(config)[:200]):
                    try:
                        load()
                    except (TypeError, ValueError, tf.errors.OpError):
                        pass
                    self.assertEqual(FIRED, [])

    def test_registered_objects_and_custom_objects_are_found(self):
        config = sequential(dense(activation={**FUNCTION, "config": "other"}))
        with self.assertRaisesRegex(TypeError, "register_keras_serializable"):
            keras.models.model_from_json(json.dumps(config))
        made = keras.models.model_from_json(json.dumps(config), custom_objects={"other": tf.nn.relu})
        self.assertEqual(made(np.ones((1, 4), "float32")).shape, (1, 2))

        @keras.saving.register_keras_serializable("trust")
        class Dense(L.Dense):           # Keras' name, and Keras' still where a row says that it is Keras'
            pass
        made = keras.models.model_from_json(json.dumps(sequential(dense(), {**dense(), "config": {"name": "two", "units": 2}, "module": None, "registered_name": "trust>Dense"})))
        self.assertEqual([type(x) for x in made.layers], [L.Dense, Dense])

    def test_copies_need_no_registration(self):
        class Mine(L.Layer):
            def __init__(self, activation=None, **kwargs):
                super().__init__(**kwargs)
                self.activation = keras.activations.get(activation)

            def call(self, x):
                return self.activation(x)

            def get_config(self):
                return {**super().get_config(), "activation": keras.activations.serialize(self.activation)}

        def double(x):
            return x * 2.0
        model = keras.Sequential([keras.Input((2,)), L.Dense(2, activation=double), Mine(double)])
        x = np.ones((1, 2), "float32")
        for made in (copy.deepcopy(model), keras.models.clone_model(model), copy.deepcopy(model.layers[-1])):
            self.assertEqual(made(x).shape, (1, 2))
        self.assertTrue(np.array_equal(copy.deepcopy(model)(x), model(x)))
        model.save(self.path("m.keras"))
        self.assertRaises(TypeError, keras.models.load_model, self.path("m.keras"))

    def test_copies_of_what_a_file_made_trust_it_no_more(self):
        """Rows that loading leaves as they are would be made objects by a copy that trusts its configuration."""
        evil = _serial.to_config(lambda *args: fire(args))
        for row in (layer("RNN", cell=[evil]), layer("Lambda", function={**FUNCTION, "config": "other"}, arguments={"x": evil}),
                    layer("Bidirectional", layer=layer("RNN", cell=[evil]))):
            with _serial.custom_object_scope({"other": fire}):
                try:
                    made = keras.models.model_from_json(json.dumps(sequential(row)))
                except (TypeError, ValueError):
                    continue
            loads, real = [], _serial._load_lambda
            _serial._load_lambda = lambda config: loads.append(real(config))
            try:
                for copies in (keras.models.clone_model, copy.deepcopy, lambda m: copy.deepcopy(m.layers[-1])):
                    try:
                        copies(made)
                    except (TypeError, ValueError):
                        pass
            finally:
                _serial._load_lambda = real
            self.assertEqual(loads, [])
        with self.assertRaisesRegex(ValueError, "lambda"):
            L.deserialize(layer("RNN", cell=[evil]))

    def test_copies_have_the_lambdas_and_files_of_the_original(self):
        bias = 3.0                      # a closure, which no file can hold as it is
        model = keras.Sequential([keras.Input((2,)), L.Lambda(lambda x: x + bias), L.Dense(1, activation=lambda x: x * bias)])
        x = np.ones((1, 2), "float32")
        self.assertTrue(np.array_equal(copy.deepcopy(model)(x), model(x)))
        self.assertIs(keras.models.clone_model(model).layers[0].function, model.layers[0].function)
        keras.Sequential([keras.Input((2,)), L.Dense(1)]).export(self.path("out"), verbose=False)
        self.assertEqual(copy.deepcopy(L.TFSMLayer(self.path("out")))(x).shape, (1, 1))

    def test_scopes_are_of_one_thread(self):
        """Two that end in another order than they began leave nothing behind."""
        one, two = keras.saving.custom_object_scope({"mine": fire}), threading.Event()

        def other():
            with keras.saving.custom_object_scope({"theirs": fire}):
                seen.append(_serial.in_scope("mine"))
                inside.set()
                two.wait(10)

        seen, inside = [], threading.Event()
        with one:
            thread = threading.Thread(target=other)
            thread.start()
            inside.wait(10)
            self.assertIsNone(_serial.in_scope("theirs"))
        two.set()
        thread.join()
        self.assertEqual((seen, _serial.in_scope("mine"), _serial.in_scope("theirs")), ([None], None, None))

    def test_other_files_are_read_on_trust_alone(self):
        with open(self.path("secret"), "w") as file:
            file.write("word\n")
        for name in ("StringLookup", "TextVectorization"):
            row = layer(name, vocabulary=self.path("secret"))
            with self.assertRaisesRegex(ValueError, "safe_mode"):
                L.deserialize(row)
            self.assertIn("word", keras.saving.deserialize_keras_object(row, safe_mode=False).get_vocabulary())
        keras.Sequential([keras.Input((2,)), L.Dense(1)]).export(self.path("out"), verbose=False)
        row = layer("TFSMLayer", filepath=self.path("out"))
        with self.assertRaisesRegex(ValueError, "safe_mode"):
            L.deserialize(row)
        keras.saving.deserialize_keras_object(row, safe_mode=False)

    def test_a_saved_module_serves_what_is_public(self):
        os.makedirs(self.path("serves"))
        np.savez(self.path("serves/variables.npz"), a=np.zeros(1))

        def load(name):
            with open(self.path("serves/snug_model.json"), "w") as file:
                json.dump({"kind": "module", "signatures": {"s": name}, "object": {"kind": "object", "at": "", "module": tf.Module.__module__,
                           "class": tf.Module.__qualname__, "attributes": {"_name": "n", "f": {"kind": "of tf", "path": "nn", "name": "relu"}}}}, file)
            return tf.saved_model.load(self.path("serves"))
        for name in ("__init__", "__reduce__", "__class__", "__dict__", "_flatten", "_name", "name", "none", 5, None, ["f"]):
            with self.subTest(name), self.assertRaisesRegex(ValueError, "damaged"):
                load(name)
        self.assertEqual(load("f").signatures["s"](tf.constant([-1.0, 2.0]))["output_0"].numpy().tolist(), [0, 2])

        class Private(tf.Module):
            @tf.function(input_signature=[tf.TensorSpec([1])])
            def _serve(self, x):
                return x
        module = Private()
        with self.assertRaisesRegex(NotImplementedError, "no name to be found by"):
            tf.saved_model.save(module, self.path("private"), signatures=module._serve)

    def test_what_is_unpacked_is_the_users_and_runs_as_the_user(self):
        with tarfile.open(self.path("modes.tar"), "w") as made:
            for name, mode in (("run", 0o6777), ("read", 0o4040), ("folder", 0o7777)):
                member = tarfile.TarInfo(name)
                member.mode, member.uid, member.gid, member.uname, member.gname = mode, 12345, 12345, "daemon", "daemon"
                member.type = tarfile.DIRTYPE if name == "folder" else tarfile.REGTYPE
                made.addfile(member)
        kept = tarfile.__dict__.get("data_filter")
        if kept is not None:
            del tarfile.data_filter                     # as in older Pythons
            self.addCleanup(setattr, tarfile, "data_filter", kept)
        os.mkdir(self.path("modes"))
        keras.utils._unpack(self.path("modes.tar"), self.path("modes"))
        found = {name: os.stat(self.path("modes/" + name)) for name in ("run", "read", "folder")}
        self.assertEqual({name: oct(s.st_mode & 0o7777) for name, s in found.items()}, {"run": "0o755", "read": "0o640", "folder": "0o755"})
        self.assertEqual({(s.st_uid, s.st_gid) for s in found.values()}, {(os.getuid(), os.getgid())})

    def test_trust_is_of_one_thread(self):
        seen = []
        with _serial.trusting(True):
            other = threading.Thread(target=lambda: seen.append(_serial.is_trusted()))
            other.start()
            other.join()
            seen.append(_serial.is_trusted())
        self.assertEqual(seen, [False, True])

    def test_a_saved_module_names_no_function_of_a_loaded_module(self):
        os.makedirs(self.path("out"))
        np.savez(self.path("out/variables.npz"), a=np.zeros(1))
        evil = ({"kind": "function", "module": "canary", "name": "fire"}, {"kind": "function", "name": "canary.fire"},
                {"kind": "of tf", "path": "", "name": "Module"}, {"kind": "of tf", "path": "", "name": "keras"}, {"kind": "of tf", "path": "io", "name": "x"})
        for value in evil:
            with open(self.path("out/snug_model.json"), "w") as file:
                json.dump({"kind": "module", "signatures": {}, "object": {
                    "kind": "object", "at": "", "module": tf.Module.__module__, "class": tf.Module.__qualname__, "attributes": {"f": value}}}, file)
            try:
                tf.saved_model.load(self.path("out")).f(1)
            except (TypeError, ValueError, NotImplementedError):
                pass
            self.assertEqual(FIRED, [])


class PickleTest(unittest.TestCase):
    def test_values_come_back(self):
        rows = np.empty(2, object)
        rows[:] = [[1, 300, -5, 1 << 40], [70000]]
        values = [None, True, 3, -70000, 1 << 80, 1.5, "text", "ä", b"raw", [1, [2]], (1, 2, 3, 4), {"a": (), 1: [1.0]},
                  np.arange(6, dtype="uint8").reshape(2, 3), np.arange(3, dtype=">f4"), np.asfortranarray(np.eye(3)), np.float32(2.5),
                  np.zeros((0, 2)), {b"data": np.arange(4), b"labels": [7]}]
        for protocol in range(6):
            for value in values:
                back = _pickles.loads(pickle.dumps(value, protocol))
                np.testing.assert_equal(back, value)
                self.assertEqual(type(back), type(value))
            back = _pickles.loads(pickle.dumps(rows, protocol))
            self.assertEqual((back.dtype, back.tolist()), (object, rows.tolist()))

    def test_python_2_is_read(self):
        raw = b"(dp1\nS'data'\np2\n(lp3\nI1\naI2\nas."
        self.assertEqual(_pickles.loads(raw, "bytes"), {b"data": [1, 2]})

    def test_nothing_else_is_made(self):
        class Evil:
            def __reduce__(self):
                return os.getcwd, ()
        for value in (Evil(), os.getcwd, [Evil()], np.array([Evil()], object), np.zeros(2, "i4,f4"), slice(1), {1, 2}, 1j, range(3)):
            for protocol in range(6):
                with self.assertRaises(ValueError):
                    _pickles.loads(pickle.dumps(value, protocol))

    def test_a_forged_type_is_refused(self):
        raw = struct.pack("<Q", 0x4141414141414141)
        forged = (b"\x80\x02]cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R(K\x01)cnumpy\ndtype\nX\x02\x00\x00\x00O8\x89\x88\x87R"
                  b"(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89C\x08" + raw + b"tba.")
        with self.assertRaisesRegex(ValueError, "objects"):
            _pickles.loads(forged)
        for old, new in ((b"O8", b"f8"), ):          # the same with numbers is an array
            self.assertEqual(_pickles.loads(forged.replace(old, new))[0].shape, ())
        for bad in (forged.replace(b"(K\x01)c", b"(K\x01K\x02\x85c").replace(b"O8", b"f8"), forged.replace(b"NNN", b"N]N").replace(b"O8", b"f8")):
            with self.assertRaises(ValueError):
                _pickles.loads(bad)

    def test_damage_is_a_value_error(self):
        import random
        good = pickle.dumps({b"data": np.arange(40).reshape(4, 10), b"labels": [1, 2, 300], "t": ("x", 1.5)}, 2)
        draw = random.Random(1)
        for _ in range(3000):
            bad = bytearray(good)
            for _ in range(draw.randint(1, 4)):
                bad[draw.randrange(len(bad))] = draw.choice([0, 255, draw.randrange(256)])
            try:
                _pickles.loads(bytes(bad[:draw.choice([len(bad), draw.randrange(len(bad))])]), "bytes")
            except ValueError:
                pass
        for bad in (b"", b".", b"a.", b"e.", b"(", b"R.", b"b.", b"s.", b"h\x00.", b"]" * 10 + b"R.", b"\x8e" + b"\xff" * 8, b"I1", b"Gxx."):
            self.assertRaises(ValueError, _pickles.load, io.BytesIO(bad))

    def test_containers_are_counted(self):
        for bomb in (b"]" * 100000, b")" * 100000, b"(" + b"}" * 100000, b"N\x85" * 50000):
            with self.assertRaisesRegex(ValueError, "more lists"):
                _pickles.loads(bomb + b".")
        rows = [[i % 256, 300 + i] * 3 for i in range(5000)]
        self.assertEqual(_pickles.loads(pickle.dumps(rows, 2)), rows)

    def test_no_code_reads_files_with_pickle(self):
        """Neither pickle nor NumPy's reader of pickles; marshal where lambdas are loaded on trust alone."""
        home = os.path.dirname(snug.__file__)
        for folder, _, names in os.walk(home):
            for name in (n for n in names if n.endswith(".py")):
                path = os.path.join(folder, name)
                with open(path) as file:
                    tree = ast.parse(file.read())
                for node in ast.walk(tree):
                    modules = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
                    wrong = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "shelve"} & {str(m).partition(".")[0] for m in modules}
                    self.assertFalse(wrong, path)
                    if "marshal" in modules:
                        self.assertEqual(name, "_serial.py")
                    if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                        self.fail(f"{path}:{node.value.lineno}")
                    if isinstance(node, ast.Attribute) and node.attr == "load" and getattr(node.value, "id", "") in ("np", "numpy"):
                        self.fail(f"{path}:{node.lineno}: np.load; _archives has limits")


if __name__ == "__main__":
    unittest.main()
