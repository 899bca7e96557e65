#!/usr/bin/env python3
"""Weights in files. data/lstm_dense.weights.h5 was written by Keras 3.15: an LSTM(1) on (3, 2), then a Dense(1)."""
import collections
import hashlib
import json
import os
import random
import sys
import tarfile
import tempfile
import unittest

import numpy as np

from snug import keras
from snug import tensorflow as tf
from snug.keras import _hdf5, _saving, _whole_h5
from snug.keras import layers as L

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
FROM_KERAS = os.path.join(DATA, "lstm_dense.weights.h5")
WHOLE = os.path.join(DATA, "whole.h5")         # a Dense(2, relu) and a Dense(1) on two numbers, a whole model without an optimizer


def lstm_dense():
    return keras.Sequential([keras.Input((3, 2)), L.LSTM(1), L.Dense(1)])


class _Scale(tf.Module):
    def __init__(self, by):
        super().__init__()
        self.by = tf.Variable(by)

    @tf.function
    def __call__(self, x):
        return x * self.by


class Block(L.Layer):
    def __init__(self):
        super().__init__()
        self.two = [L.Dense(3), L.Dense(2)]
        self.one = L.Dense(2)
        self.k = self.add_weight(shape=(2,), name="k")

    def call(self, x):
        return self.two[1](self.two[0](self.one(x))) * self.k


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.zeta, self.alpha, self.heads = L.Dense(3), L.Dense(2), {"b": L.Dense(1), "a": L.Dense(1)}
        self.block = Block()

    def call(self, x):
        x = self.block(self.alpha(self.zeta(x)))
        return self.heads["a"](x) + self.heads["b"](x)


class Scale(L.Layer):
    def __init__(self, by, **kwargs):
        super().__init__(**kwargs)
        self.by, self.dense = by, L.Dense(2)

    def call(self, x):
        return self.dense(x) * self.by

    def get_config(self):
        return {**super().get_config(), "by": self.by}


def own_loss(y_true, y_pred):
    return keras.ops.mean(keras.ops.abs(y_true - y_pred))


class Whole(unittest.TestCase):
    """.keras files. data/two.keras was written by Keras 3.15 after four steps of Adam; the numbers here are Keras'."""
    X = np.linspace(-1, 1, 24, dtype="float32").reshape(8, 3)
    Y = [X[:, :1] * 2, np.eye(2, dtype="float32")[np.arange(8) % 2]]

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.two = os.path.join(os.path.dirname(FROM_KERAS), "two.keras")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def goes_on_as_keras(self, model):
        a, b = model.predict(self.X[:2], verbose=0)
        np.testing.assert_allclose(a, [[-1.6082495], [-1.528205]], rtol=1e-5)
        np.testing.assert_allclose(b, [[0.43785125, 0.5621488], [0.4376207, 0.5623793]], rtol=1e-5)
        history = model.fit(self.X, self.Y, epochs=2, batch_size=4, shuffle=False, verbose=0).history
        np.testing.assert_allclose(history["loss"], [0.4239071, 0.4207758], rtol=1e-5)
        self.assertEqual(int(model.optimizer.iterations), 8)

    def test_a_model_of_keras_goes_on_training(self):
        self.goes_on_as_keras(keras.models.load_model(self.two))

    def test_what_is_written_is_the_same_model(self):
        keras.models.load_model(self.two).save(self.path("again.keras"))
        self.goes_on_as_keras(keras.models.load_model(self.path("again.keras")))
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["again.keras"])

    def test_own_classes_and_functions_come_back(self):
        x = keras.Input((3,))
        model = keras.Model(x, Scale(3.0)(x))
        model.compile("sgd", own_loss)
        model.fit(self.X, self.X[:, :2], verbose=0)
        model.save(self.path("own.keras"))
        same = keras.models.load_model(self.path("own.keras"), custom_objects={"Scale": Scale, "own_loss": own_loss})
        np.testing.assert_array_equal(same.predict(self.X, verbose=0), model.predict(self.X, verbose=0))
        self.assertIs(same.loss, own_loss)

    def test_compile_false_leaves_the_optimizer_out(self):
        self.assertFalse(keras.models.load_model(self.two, compile=False).compiled)

    def test_other_files_are_refused_by_name(self):
        with open(self.path("no.keras"), "w") as f:
            f.write("text")
        for name, words in (("no.keras", "not a file that Keras wrote"), ("gone.keras", "File not found"), ("m.h5", "File")):
            with self.assertRaisesRegex(ValueError, words):
                keras.models.load_model(self.path(name))
        with self.assertRaisesRegex(ValueError, "extension"):
            lstm_dense().save(self.path("model"))


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_a_file_of_keras_is_read(self):
        model = lstm_dense()
        model.load_weights(FROM_KERAS)
        y = model(np.arange(6.0, dtype="float32").reshape(1, 3, 2)).numpy()
        self.assertAlmostEqual(float(y[0, 0]), 0.8339908, places=5)

    def test_what_is_written_has_keras_paths(self):
        model = lstm_dense()
        model.load_weights(FROM_KERAS)
        model.save_weights(self.path("a.weights.h5"))
        mine, theirs = _hdf5.read(self.path("a.weights.h5")), _hdf5.read(FROM_KERAS)
        for group in (("lstm", "cell"), ("dense",)):
            a, b = mine["layers"], theirs["layers"]
            for word in group + ("vars",):
                a, b = a[word], b[word]
            self.assertEqual(sorted(a), sorted(b))
            self.assertTrue(all(np.array_equal(a[k], b[k]) for k in a))

    def test_groups_of_a_subclassed_model_are_keras(self):
        net = Net()
        net(np.ones((1, 4), "float32"))
        paths = [p for p, variables in _saving._groups(net) if variables]
        self.assertEqual(paths, ["alpha/vars", "block/vars", "block/one/vars", "block/two/dense/vars", "block/two/dense_1/vars",
                                 "heads/dense/vars", "heads/dense_1/vars", "layers/dense/vars"])

    def test_groups_of_layers_that_keras_makes_of_several(self):
        class Mine(L.GRU):
            pass
        x = keras.Input((3, 4))
        pictures = keras.Input((3, 4, 4, 1))
        stacked = L.RNN([L.LSTMCell(2), L.GRUCell(2), L.LSTMCell(2)])
        for layer, inputs, groups in (
                (L.GRU(2), [x], ["cell"]), (L.ConvLSTM2D(1, 2), [pictures], ["cell"]), (L.RNN(L.LSTMCell(2)), [x], ["cell"]),
                (stacked, [x], ["cell/cells/lstm_cell", "cell/cells/gru_cell", "cell/cells/lstm_cell_1"]),
                (L.TimeDistributed(L.Dense(2)), [x], ["layer"]), (L.Dense(2), [x], [""]),
                (L.MultiHeadAttention(2, 2), [x, x], ["query_dense", "key_dense", "value_dense", "output_dense"]),
                (L.Bidirectional(L.LSTM(2)), [x], ["forward_layer/cell", "backward_layer/cell"]),
                (L.Bidirectional(L.RNN(L.GRUCell(2))), [x], ["forward_layer/cell", "backward_layer/cell"]),
                (L.Bidirectional(Mine(2)), [x], ["forward_layer/cell", "backward_layer/cell"])):
            model = keras.Model(inputs[0], layer(*inputs))
            found = [p for p, variables in _saving._groups(model) if variables]
            stem = "layers/" + layer.name.rstrip("_0123456789") + "/"
            self.assertEqual(found, [stem + group + "/vars" if group else stem + "vars" for group in groups])
            self.assertEqual(sum(len(variables) for _, variables in _saving._groups(model)), len(layer.weights))

    def test_weights_come_back_from_every_kind_of_file(self):
        for name in ("w.weights.h5", "w.npz", "w.safetensors"):
            a, b = Net(), Net()
            x = np.ones((1, 4), "float32")
            a(x), b(x)
            a.save_weights(self.path(name))
            b.load_weights(self.path(name))
            self.assertTrue(all(np.array_equal(p, q) for p, q in zip(a.get_weights(), b.get_weights())), name)

    def test_a_link_stays_and_what_it_leads_to_is_replaced(self):
        os.mkdir(self.path("store"))
        for name in ("w.weights.h5", "w.npz", "w.safetensors", "m.keras", "m.h5"):
            os.symlink(os.path.join("store", name), self.path(name))
            model = lstm_dense()
            (model.save if name.startswith("m") else model.save_weights)(self.path(name))
            self.assertTrue(os.path.islink(self.path(name)) and os.path.getsize(self.path("store/" + name)) > 0, name)
        self.assertEqual(len(os.listdir(self.path("store"))), 5)

    def test_another_models_file_is_refused(self):
        other = keras.Sequential([keras.Input((2,)), L.Dense(1), L.Dense(1)])
        before = other.get_weights()
        with self.assertRaises(ValueError):
            other.load_weights(FROM_KERAS)
        self.assertTrue(all(np.array_equal(p, q) for p, q in zip(before, other.get_weights())))

    def test_large_groups_and_odd_arrays_come_back(self):
        tree = {"layers": {f"dense_{i}": {"vars": {"0": np.full((2, 3), i, "float32"), "1": np.array(7, "int64"),
                                                   "2": np.zeros((0, 3)), "3": np.arange(3, dtype="uint8")}} for i in range(600)}, "vars": {}}
        _hdf5.write(self.path("big.h5"), tree)
        back = _hdf5.read(self.path("big.h5"))
        self.assertEqual((sorted(back["layers"]), back["vars"]), (sorted(tree["layers"]), {}))
        for name, group in tree["layers"].items():
            for k, a in group["vars"].items():
                b = back["layers"][name]["vars"][k]
                self.assertTrue(a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b))

    def test_more_names_than_an_attribute_holds_come_back(self):
        """Keras numbers the attributes of a list of names that is longer than an object header lets one be."""
        names = [f"d{i}" for i in range(_hdf5.MOST_TEXTS + 2)]
        group = _hdf5.Group()
        _whole_h5._put_names(group, "layer_names", names)
        _hdf5.write(self.path("names.h5"), {"model_weights": group})
        with _hdf5.opened(self.path("names.h5")) as tree:
            found = tree["model_weights"]
            self.assertEqual(sorted(found.attributes), ["layer_names0", "layer_names1"])
            self.assertEqual(_whole_h5._names(found, "layer_names", "names.h5"), names)

    def test_a_whole_h5_of_keras_is_read(self):
        model = keras.models.load_model(WHOLE)
        self.assertEqual(float(model(np.array([[1.0, 2.0]], "float32"))[0, 0]), 14.75)
        other = keras.models.clone_model(model)
        other.load_weights(WHOLE)
        self.assertTrue(all(np.array_equal(p, q) for p, q in zip(model.get_weights(), other.get_weights())))

    def test_a_whole_h5_comes_back_with_its_optimizer(self):
        x = keras.Input((4,))
        y = L.Dense(3, activation="relu")(x)
        model = keras.Model(x, L.Dense(2)(L.Add()([y, L.BatchNormalization()(y)])))
        model.compile(keras.optimizers.Adam(0.1), keras.losses.MeanSquaredError(), metrics=["mae"])
        data = np.random.RandomState(0).rand(8, 4).astype("float32"), np.ones((8, 2), "float32")
        model.fit(*data, verbose=0)
        model.save(self.path("m.h5"))
        back = keras.models.load_model(self.path("m.h5"))
        for m in (model, back):
            m.fit(*data, verbose=0, shuffle=False)
        for p, q in zip(model.get_weights(), back.get_weights()):
            np.testing.assert_allclose(p, q, rtol=1e-5)
        self.assertEqual(int(back.optimizer.iterations), 2)

    def test_an_export_is_served_again(self):
        model = keras.Sequential([keras.Input((2,)), L.Dense(1)])
        model.export(self.path("out"), verbose=False)
        x = np.ones((3, 2), "float32")
        for serve in (tf.saved_model.load(self.path("out")).serve, L.TFSMLayer(self.path("out"))):
            self.assertTrue(np.array_equal(serve(x), model(x)))
        os.makedirs(self.path("theirs"))
        with open(self.path("theirs/saved_model.pb"), "wb"):
            pass
        with self.assertRaisesRegex(NotImplementedError, "written by TensorFlow"):
            tf.saved_model.load(self.path("theirs"))

    def test_what_holds_no_variable_is_no_saved_model(self):
        for value in (None, 3, [1], {"a": 1}, tf.constant(1.0), lambda x: x, tf.function(lambda x: x)):
            with self.assertRaisesRegex(ValueError, type(value).__qualname__):
                tf.saved_model.save(value, self.path("out"))
        self.assertFalse(os.path.exists(self.path("out")))

    def test_a_module_is_found_again_among_what_is_imported(self):
        module = _Scale(3.0)
        tf.saved_model.save(module, self.path("out"), signatures=module.__call__)
        back = tf.saved_model.load(self.path("out"))
        self.assertEqual(back(tf.constant([1.0, 2.0])).numpy().tolist(), [3.0, 6.0])
        self.assertEqual(list(back.signatures), ["serving_default"])
        notes = self.path("out/snug_model.json")
        with open(notes) as file:
            text = file.read()
        with open(notes, "w") as file:
            file.write(text.replace(json.dumps(_Scale.__module__), '"antigravity"'))
        with self.assertRaisesRegex(NotImplementedError, "module antigravity"):
            tf.saved_model.load(self.path("out"))
        self.assertNotIn("antigravity", sys.modules)

    def test_a_folder_names_modules_alone(self):
        """A class that does something when it ends is none: here, one that deletes a file."""
        victim, notes = self.path("victim"), self.path("out/snug_model.json")
        with open(victim, "w"):
            pass
        tf.saved_model.save(_Scale(3.0), self.path("out"))
        with open(notes) as file:
            good = json.load(file)
        with open(notes, "w") as file:
            json.dump({**good, "object": {
                "kind": "object", "at": "", "module": "tempfile", "class": "_TemporaryFileCloser",
                "attributes": {"name": victim, "delete": True, "close_called": False}}}, file)
        with self.assertRaisesRegex(NotImplementedError, "no tf.Module"):
            tf.saved_model.load(self.path("out"))
        self.assertTrue(os.path.exists(victim))

    def test_a_module_keeps_what_is_shared_and_refuses_what_is_lost(self):
        module = _Scale(3.0)
        module.again, module.inner, module.kinds = [module.by], _Scale(2.0), {1: (tf.float32, tf.TensorShape([None, 2]))}
        module.inner.outer = module
        tf.saved_model.save(module, self.path("out"))
        back = tf.saved_model.load(self.path("out"))
        self.assertIs(back.again[0], back.by)
        self.assertIs(back.inner.outer, back)
        self.assertEqual(back.kinds[1][0], tf.float32)
        self.assertEqual(back.kinds[1][1].as_list(), [None, 2])
        for value, remedy in ((collections.namedtuple("Pair", "a b")(1, 2), "dict"), (L.Dense(1), "Keras model"), (object(), "tf.Module"),
                              (tf.constant(["a"]), "list")):
            module.lost = value
            with self.assertRaisesRegex(NotImplementedError, "'lost'.*" + remedy):
                tf.saved_model.save(module, self.path("lost"))

    def test_damaged_files_raise_value_errors(self):
        for name in (FROM_KERAS, WHOLE):
            with open(name, "rb") as file:
                self._damage(file.read())

    def _damage(self, good):
        draw = random.Random(1)
        for i in range(200):
            bad = bytearray(good)
            for _ in range(1 + i % 4):
                bad[draw.randrange(len(bad))] = draw.randrange(256)
            bad = bad[:draw.choice([len(bad), draw.randrange(len(bad))])]
            with open(self.path("bad.h5"), "wb") as file:
                file.write(bad)
            try:
                _hdf5.read(self.path("bad.h5"))
            except ValueError:
                pass
        for end in (0, 8, 95, 400):
            with open(self.path("bad.h5"), "wb") as file:
                file.write(good[:end])
            with self.assertRaises(ValueError):
                _hdf5.read(self.path("bad.h5"))

    def test_wrong_members_raise_value_errors(self):
        for tree in ({"model_weights": np.ones(2)}, {"model_weights": _hdf5.Group({"a": np.ones(2)}, layer_names=["a"])},
                     {"model_weights": _hdf5.Group(layer_names=["a"])}, {"layers": {"lstm": {"cell": {"vars": np.ones(3)}}}},
                     {"model_weights": _hdf5.Group({"a": _hdf5.Group(weight_names=["k"])}, layer_names=["a"])}):
            _hdf5.write(self.path("wrong.weights.h5"), _hdf5.Group(tree))
            with self.assertRaises(ValueError):
                lstm_dense().load_weights(self.path("wrong.weights.h5"))

    def test_texts_of_no_bytes_are_refused(self):
        space = bytes([1, 1, 0, 0, 0, 0, 0, 0]) + (1 << 60).to_bytes(8, "little")
        kind = bytes([0x13, 0, 0, 0, 0, 0, 0, 0])
        with _hdf5.opened(FROM_KERAS) as tree, self.assertRaisesRegex(ValueError, "no bytes"):
            tree._reader.attribute(b"\1\0" + b"\x08\0\x08\0\x10\0" + b"a".ljust(8, b"\0") + kind + space)


class Fetched(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = lambda name: os.path.join(folder.name, name)

    def archive(self, *members):
        with tarfile.open(self.path("a.tar"), "w") as file:
            for name, link in members:
                info = tarfile.TarInfo(name)
                info.type, info.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.REGTYPE, "")
                file.addfile(info)
        return self.path("a.tar")

    def test_archives_stay_in_their_folder(self):
        get = lambda: keras.utils.get_file(self.path("a.tar"), extract=True)
        for wrong in ([("../out", None)], [("x", "../.."), ("x/out", None)]):
            self.archive(*wrong)
            self.assertRaises(tarfile.TarError, get)
            self.assertFalse(os.path.exists(self.path("a.tar_extracted")) or os.path.exists(self.path("out")))
        self.archive(("in/file", None))          # after one that was interrupted
        self.assertEqual(os.listdir(get()), ["in"])

    def test_hashes_are_compared(self):
        with open(self.path("f"), "wb") as file:
            file.write(b"snug")
        for good in (hashlib.sha256(b"snug").hexdigest(), hashlib.md5(b"snug").hexdigest()):
            self.assertEqual(keras.utils.get_file(self.path("f"), file_hash=good), self.path("f"))
            self.assertRaises(ValueError, keras.utils.get_file, self.path("f"), file_hash=good[::-1])
        self.assertRaises(ValueError, keras.utils.get_file, self.path("f"), md5_hash="0" * 32)

    def test_small_and_object_arrays_are_read(self):
        np.savez(self.path("h.npz"), x=np.arange(1000.0)[:, None], y=np.arange(1000.0))
        (x, _), (z, _) = keras.datasets.california_housing.load_data(path=self.path("h.npz"), version="small")
        self.assertEqual((len(x) + len(z), max(x.max(), z.max())), (600, 599))
        lines = np.empty(2, object)
        lines[:] = [[1, 2], [3]]
        np.savez(self.path("r.npz"), x=lines, y=np.arange(2))
        (x, _), (z, _) = keras.datasets.reuters.load_data(path=self.path("r.npz"), test_split=0.5)
        self.assertEqual(sorted(map(len, [*x, *z])), [2, 3])
        lines[0] = os.getcwd
        np.savez(self.path("r.npz"), x=lines, y=np.arange(2))
        self.assertRaisesRegex(ValueError, "getcwd", keras.datasets.reuters.load_data, path=self.path("r.npz"))


if __name__ == "__main__":
    unittest.main()
