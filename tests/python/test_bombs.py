#!/usr/bin/env python3
"""Hostile files are refused with one exception, after a bounded number of bytes and within 10 MiB, at every door of Python's."""
import gzip
import io
import itertools
import json
import os
import random
import struct
import tempfile
import unittest
import zipfile
import zlib

import numpy as np

from snug import _archives, _pickles, keras
from snug import tensorflow as tf
from snug._files import check_json
from snug._gzip import gunzip
from snug.keras import _hdf5
from snug.keras import layers as L

MOST_BYTES = 10 << 20               # of memory while a file is refused
SANITIZED = "SNUG_TEST_SANITIZED" in os.environ     # and all that was freed is there for a while
MOST_READ = 40 << 20                # of bytes read: a configuration of the largest size, twice, and a directory


def of_process(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name + ":"))


def bytes_read():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])


def model():
    return keras.Sequential([keras.Input((4,)), L.Dense(2, name="dense")])


def rows_of(n, byte):
    def write(file):
        for _ in range(n >> 20):
            file.write(byte * (1 << 20))
    return write


class Own(L.Layer):
    """Reads its weights itself."""

    def call(self, x):
        return x

    def load_own_variables(self, store):
        self.given = {name: array.shape for name, array in store.items()}


class Bombs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = staticmethod(lambda name: os.path.join(cls.folder.name, name))
        m = model()
        m.compile("sgd", "mse")
        for name in ("good.keras", "good.h5"):
            m.save(cls.path(name))
            keras.models.load_model(cls.path(name))
        for name in ("good.weights.h5", "good.safetensors", "good.npz"):
            m.save_weights(cls.path(name))
            m.load_weights(cls.path(name))
        with zipfile.ZipFile(cls.path("good.keras")) as file:
            cls.config, cls.weights = file.read("config.json"), file.read("model.weights.h5")
        with open(cls.path("good.weights.h5"), "rb") as file:
            cls.h5 = file.read()
        cls.model = m

    def refused(self, load, words="", kinds=(ValueError,)):
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")                             # the peak is counted from here
        before, read = of_process("VmRSS"), bytes_read()
        with self.assertRaisesRegex(kinds, words) as caught:
            load()
        self.assertNotIsInstance(caught.exception, (UnicodeError, KeyError, RecursionError))
        if not SANITIZED:
            self.assertLess(of_process("VmHWM") - before, MOST_BYTES)
        self.assertLess(bytes_read() - read, MOST_READ)

    def archive(self, name, members, method=zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(self.path(name), "w", method) as file:
            for member, data in members:
                if callable(data):
                    with file.open(member, "w", force_zip64=True) as to:
                        data(to)
                else:
                    file.writestr(member, data)
        return self.path(name)

    def load(self, name, *members, **how):
        path = self.archive(name, members, **how)
        return lambda: keras.models.load_model(path)

    def file(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    # --- .keras ---------------------------------------------------------------------------------------
    def test_what_unpacks_to_much_more_is_refused(self):
        weights = ("model.weights.h5", self.weights)
        self.refused(self.load("a.keras", ("config.json", rows_of(24 << 20, b" ")), weights), "at most")
        self.refused(self.load("b.keras", ("config.json", rows_of(8 << 20, b" ")), weights), "at most")
        self.refused(self.load("c.keras", ("config.json", self.config), ("model.weights.h5", rows_of(24 << 20, b"\0"))), "at most")

    def test_a_directory_has_a_limit(self):
        n, entry = 60000, struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
        end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n, n, n * len(entry), 0, 0)
        for name in ("d.keras", "d.npz"):
            path = self.file(name, entry * n + end)
            load = keras.models.load_model if name == "d.keras" else self.model.load_weights
            self.refused(lambda: load(path), "too many members")

    def test_members_are_plain_and_have_one_name(self):
        weights = ("model.weights.h5", self.weights)
        with self.assertWarns(UserWarning):
            load = self.load("e.keras", ("config.json", b"{}"), ("config.json", self.config), weights)
        self.refused(load, "one name")
        for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            self.refused(self.load("f.keras", ("config.json", self.config), weights, method=method), "does not read")
        self.refused(self.load("g.keras", ("config.json", self.config)), "no item named")
        with open(self.archive("h.keras", [("config.json", self.config), weights], zipfile.ZIP_STORED), "rb") as file:
            raw = bytearray(file.read())
        raw[raw.index(self.weights[:200]) + 500] ^= 1
        self.refused(lambda: keras.models.load_model(self.file("h.keras", raw)), "CRC")
        with open(self.path("good.keras"), "rb") as file:
            good = file.read()
        for n in (0, 4, 30, len(good) // 2, len(good) - 1):
            self.refused(lambda: keras.models.load_model(self.file("i.keras", good[:n])), "not a file that Keras wrote")

    def test_members_lie_one_behind_the_other(self):
        """Each of a thousand members holds all behind it: a little file of many large arrays."""
        names, inner, entries = [b"m%03d.npy" % i for i in range(1000)], b"\0" * 8, []
        for name in reversed(names):
            data = self.npy((len(inner),), "|u1") + inner
            inner = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 33, zlib.crc32(data), len(data), len(data), len(name), 0) + name + data
            entries.append((name, zlib.crc32(data), len(data), len(inner)))
        central = b"".join(struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 0, 0, 33, crc, size, size, len(name), 0, 0, 0, 0, 0, len(inner) - before) + name
                           for name, crc, size, before in reversed(entries))
        end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, len(names), len(names), len(central), len(inner), 0)
        path = self.file("over.npz", inner + central + end)
        self.refused(lambda: _archives.Archive(path, 1000), "lie over each other")
        self.refused(lambda: keras.datasets.mnist.load_data(os.path.abspath(path)), "lie over each other")
        with open(self.archive("last.npz", [("a.npy", b"\0" * 300)], zipfile.ZIP_STORED), "rb") as file:
            raw = file.read()
        sizes = struct.pack("<II", 300, 300)
        at = raw.rindex(sizes)                      # in the directory
        path = self.file("last.npz", raw[:at] + struct.pack("<II", 310, 310) + raw[at + 8:])
        self.refused(lambda: _archives.Archive(path), "lies over its directory")

    def configs(self):
        yield from (b"", b"[]", b"null", b"5", b"\xff\xfe{", b"[" * 200000, b'{"a":' * 200000, b"{}", b'{"class_name": 5, "config": {}}')
        yield b'{"class_name":"Sequential","config":{"name":"s","layers":[' * 300 + b"]}}" * 300
        for key, value in (("units", -1), ("units", float("nan")), ("units", 1 << 62), ("units", 1 << 40), ("units", "x"), ("units", None), ("name", 5),
                           ("dtype", 5), ("kernel_initializer", {"class_name": "Zeros", "config": {"a": 1}}), ("activation", {"class_name": None})):
            config = json.loads(self.config)
            config["config"]["layers"][1]["config"][key] = value
            yield json.dumps(config).encode()
        for change in ({"config": 5}, {"config": {"layers": 5}}, {"build_config": 5}, {"compile_config": {"optimizer": []}}, {"class_name": "Functional"}):
            yield json.dumps({**json.loads(self.config), **change}).encode()

    def test_configurations_are_refused(self):
        for text in self.configs():
            with self.subTest(text[:60]):
                self.refused(self.load("j.keras", ("config.json", text), ("model.weights.h5", self.weights)), kinds=(ValueError, TypeError))
                if not text.startswith(b"{") or b"config" not in text:
                    self.refused(lambda: keras.models.model_from_json(text))
        lists, texts = ('{"class_name":"Sequential","config":{"layers":[' + what * (1 << 20) + "[]]}}" for what in ("[],", '"ab",'))
        numbers = '{"class_name":"Sequential","config":{"name":"s","layers":[],"x":{' + ",".join(f'"{i:x}":1.5' for i in range(1300000)) + "}}}"
        for text in (lists, texts, numbers):
            self.refused(lambda: keras.models.model_from_json(text), "more lists")
            self.refused(self.load("k.keras", ("config.json", text), ("model.weights.h5", self.weights)), "more lists|at most")
        for value in ([f"word{i}" for i in range(100000)], {f"word{i}": i for i in range(90000)}, [i / 7 for i in range(100000)]):
            check_json([json.dumps(value)])                                     # vocabularies and tables are no bombs
        long = " " * (17 << 20)
        self.refused(lambda: keras.models.model_from_json(long), "at most")

    def test_damaged_configurations_raise_one_exception(self):
        draw, words = random.Random(5), (b"null", b"-1", b"1e400", b'"os"', b"[]", b"{}", b"99999999999", b"true", b'"function"', b'""')
        for _ in range(400):
            text = bytearray(self.config)
            for _ in range(draw.randint(1, 4)):
                i = draw.randrange(len(text))
                if draw.random() < 0.5:
                    text[i] = draw.randrange(32, 127)
                else:
                    text[i:i + draw.randint(0, 12)] = draw.choice(words)
            try:
                keras.models.model_from_json(bytes(text))
            except (ValueError, TypeError):
                pass

    def test_layers_that_come_in_any_order_take_no_longer(self):
        """Each call waits for what it needs, and is not asked again for every other one: counted, not timed."""
        x = keras.Input((2,))
        y = x
        for i in range(150):
            y = L.Activation("relu", name=f"a{i}")(y)
        config = keras.Model(x, y).get_config()
        config["layers"] = config["layers"][:1] + config["layers"][:0:-1]
        looks, real = [0], keras._models._Later.__init__

        def count(self, *args):
            looks[0] += 1
            real(self, *args)
        keras._models._Later.__init__ = count
        try:
            self.assertEqual(len(keras.Model.from_config(config).layers), 151)
        finally:
            keras._models._Later.__init__ = real
        self.assertLess(looks[0], 151)

    def test_pipes_and_devices_are_refused_at_once(self):
        tf.data.Dataset.range(3).save(self.path("pipes"))
        os.remove(self.path("pipes/dataset.json"))
        home, sets, lookup = self.home(), keras.datasets, tf.lookup
        loads = {"pipes/dataset.json": lambda path: tf.data.Dataset.load(os.path.dirname(path)), "p.keras": keras.models.load_model,
                 "p.h5": keras.models.load_model, "p.npz": self.model.load_weights, "p.weights.h5": self.model.load_weights,
                 "p.safetensors": self.model.load_weights,
                 home + "/.keras/models/imagenet_class_index.json": lambda path: keras.applications.resnet50.decode_predictions(np.zeros((1, 1000))),
                 home + "/datasets/fashion-mnist/train-labels-idx1-ubyte.gz": lambda path: sets.fashion_mnist.load_data(),
                 home + "/datasets/cifar-10-batches-py/data_batch_1": lambda path: sets.cifar10.load_data(),
                 "p.txt": lambda path: lookup.StaticHashTable(lookup.TextFileInitializer(path, tf.string, -2, tf.int64, -1), 0)}
        for name, load in loads.items():
            for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
                make(self.path(name))
                with self.subTest(name):
                    self.refused(lambda: load(self.path(name)), "regular file", kinds=(ValueError, tf.errors.OpError))
                os.remove(self.path(name))

    def home(self):
        """Where Keras' own files are, for this test alone."""
        made = os.path.join(self._testMethodName, "home")
        for folder in (".keras/models", "datasets/fashion-mnist", "datasets/cifar-10-batches-py"):
            os.makedirs(self.path(os.path.join(made, folder)))
        for name in ("HOME", "KERAS_HOME"):
            before = os.environ.get(name)
            os.environ[name] = self.path(made)
            self.addCleanup(lambda name=name, before=before: os.environ.pop(name) if before is None else os.environ.update({name: before}))
        return made

    def test_lines_of_tables_have_a_limit(self):
        table = tf.lookup

        def read(key=0, value=1):
            return table.StaticHashTable(table.TextFileInitializer(self.path("t.txt"), tf.string, key, tf.int64, value), -1)
        for text, why in ((b"a\n" + b"x" * (24 << 20), "line 2 has more than"), (b"a\t1\nb\n", "line 2 is none"), (b"a\t1\nb\tc\n", "line 2 is none")):
            self.file("t.txt", text)
            self.refused(lambda: read(-2, -1) if "more" in why else read(), why, (tf.errors.InvalidArgumentError,))
        self.file("t.txt", b"a\t1\nb\t2\n")
        self.assertEqual(read().lookup(tf.constant(["b", "c"])).numpy().tolist(), [2, -1])

    def test_names_of_classes_are_compared(self):
        path = self.home() + "/.keras/models/imagenet_class_index.json"
        for names in ({}, {str(i): ["n", "x"] for i in range(999)}, {str(i): i for i in range(1000)}, []):
            self.file(path, json.dumps(names).encode())
            self.refused(lambda: keras.applications.resnet50.decode_predictions(np.zeros((1, 1000))))
        self.file(path, json.dumps({str(i): [f"n{i}", "x"] for i in range(1000)}).encode())
        best, = keras.applications.resnet50.decode_predictions(np.eye(1000)[3:4], top=1)
        self.assertEqual(best, [("n3", "x", 1.0)])

    def test_tokenizers_of_others(self):
        from_json, made = keras.preprocessing.text.tokenizer_from_json, keras.preprocessing.text.Tokenizer()
        made.fit_on_texts(["a b a"])
        good = json.loads(made.to_json())
        self.assertEqual(from_json(made.to_json()).texts_to_sequences(["b a c"]), [[2, 1]])
        counted = {"word_index": '{"a":[1]}', "index_word": '{"1":1}', "word_counts": "[1]", "index_docs": '{"x":1}'}
        changes = [{**good["config"], **{key: value}} for key, value in (*counted.items(), ("word_docs", "[" * 100000), ("word_docs", 5), ("a", 1))]
        texts = ["", "{}", "5", "[]", "not json", "[" * 100000, '{"config":{}}', '{"config":5}', '{"config":[["a",1]]}']
        for text in texts + [json.dumps({"config": config}) for config in changes]:
            with self.subTest(text[:60]):
                self.refused(lambda: from_json(text), "to_json")

    # --- .h5 ------------------------------------------------------------------------------------------
    def h5_of(self, name, make):
        """A file whose root make(writer) gives as (header, index, heap)."""
        with open(self.path(name), "wb") as file:
            w = _hdf5._Writer(file)
            header, index, heap = make(w)
            w.put(0, _hdf5.MAGIC + bytes([0, 0, 0, 0, 0, 8, 8, 0]) + struct.pack("<HHI", 4, 16, 0)
                  + struct.pack("<QQQQ", 0, _hdf5.UNDEFINED, w.end, _hdf5.UNDEFINED) + _hdf5._entry(0, header, index, heap))
            file.truncate(w.end)
        return self.path(name)

    @staticmethod
    def linked(w, members):
        """A group whose members are at places that are given."""
        names, text, offsets = sorted(members), bytearray(8), {}
        for n in names:
            offsets[n] = len(text)
            text += (n.encode() + b"\0").ljust(8, b"\0")
        data = w.put(w.place(len(text)), bytes(text))
        heap = w.put(w.place(32), b"HEAP" + struct.pack("<IQQQ", 0, len(text), 1, data))
        index = w.index([w.leaf(names[i:i + 8], members, offsets) for i in range(0, len(names), 8)])
        return w.header([(0x11, struct.pack("<QQ", index, heap))]), index, heap

    def test_groups_with_countless_paths_end(self):
        def make(w):
            group = w.group({})
            for _ in range(40):
                group = self.linked(w, {"layers": group, "dense": group, "vars": group, "model_weights": group})
            return group
        path = self.h5_of("dag.weights.h5", make)
        self.refused(lambda: self.model.load_weights(path))
        self.refused(lambda: keras.models.load_model(path))
        self.refused(lambda: _hdf5.read(path), "two names")

    def test_one_array_under_many_names_is_read_once(self):
        def make(w):
            one = (w.array(np.zeros(1 << 19, "f4")), None, None)
            inner = self.linked(w, {str(i): one for i in range(1000)})
            return self.linked(w, {"layers": self.linked(w, {"dense": self.linked(w, {"vars": inner})})})
        path = self.h5_of("links.weights.h5", make)
        self.refused(lambda: self.model.load_weights(path), "1000 arrays")
        self.refused(lambda: _hdf5.read(path), "two names")

    def test_a_layer_that_reads_its_own_gets_no_more_than_the_file_holds(self):
        own = keras.Sequential([keras.Input((2,)), Own(name="own")])

        def make(w, names, arrays):
            made = [(w.array(np.zeros(1 << 17, "f4")), None, None) for _ in range(arrays)]
            inner = self.linked(w, {str(i): made[i % arrays] for i in range(names)})
            return self.linked(w, {"layers": self.linked(w, {"own": self.linked(w, {"vars": inner})})})
        for place in ("own.weights.h5", "own.keras"):
            path = self.h5_of("own.weights.h5", lambda w: make(w, 2000, 1))
            if place == "own.keras":
                own.save(self.path(place))
                with zipfile.ZipFile(self.path(place)) as file:
                    config = file.read("config.json")
                with open(path, "rb") as file:
                    path = self.archive(place, [("config.json", config), ("model.weights.h5", file.read())], zipfile.ZIP_STORED)
            load = own.load_weights if place != "own.keras" else lambda p: keras.models.load_model(p, {"Own": Own})
            self.refused(lambda: load(path), "over each other")
        own.load_weights(self.h5_of("own.weights.h5", lambda w: make(w, 2, 2)))
        self.assertEqual(own.layers[-1].given, {"0": (1 << 17,), "1": (1 << 17,)})

    def test_names_have_a_limit(self):
        def make(w):
            empty = w.group({})
            return self.linked(w, {f"n{i}": empty for i in range(40000)})
        path = self.h5_of("names.weights.h5", make)
        self.refused(lambda: self.model.load_weights(path), "more names")

    def test_headers_over_each_other_are_refused(self):
        """Names in a text that stands for all of them, headers that share their bytes."""
        def make(w, head):
            at = w.place(1 << 20)
            for i in range(0, 1 << 16, len(head)):
                w.put(at + i, head)
            return self.linked(w, {f"{i}": (at + len(head) * i, None, None) for i in range(2000)})
        for head, why in ((struct.pack("<BBHII4x", 1, 0, 65535, 1, 60000), "over each other"), (struct.pack("<BBHI", 1, 0, 65535, 60000), "header has more")):
            path = self.h5_of("over.weights.h5", lambda w, head=head: make(w, head))
            self.refused(lambda: _hdf5.read(path), why)

    def test_a_model_of_many_layers_is_read(self):
        """Limits are for files, not for models: 600 layers, each of which has a group of its own."""
        many = keras.Sequential([keras.Input((1,))] + [L.Dense(1) for _ in range(600)])
        for name in ("many.weights.h5", "many.h5", "many.keras", "many.npz", "many.safetensors"):
            (many.save_weights if name not in ("many.h5", "many.keras") else many.save)(self.path(name))
            many.load_weights(self.path(name)) if name != "many.keras" else keras.models.load_model(self.path(name))

    def test_texts_have_a_limit(self):
        """An attribute of 4,000 texts, all of them one text of 60 kB."""
        def make(w):
            heap = w.heap([b"a" * 60000])
            head = w.attribute("layer_names", ["b"])[1][:-16]
            head = head[:-8] + struct.pack("<Q", 4000)
            group = w.header([(0x11, struct.pack("<QQ", *self.linked(w, {})[1:])), (0x0c, head + struct.pack("<IQI", 60000, heap, 1) * 4000)])
            return group, None, None
        path = self.h5_of("texts.weights.h5", make)
        self.refused(lambda: self.model.load_weights(path))

    def test_damaged_h5_raise_one_exception(self):
        draw = random.Random(3)
        for _ in range(300):
            bad = bytearray(self.h5)
            for _ in range(draw.randint(1, 8)):
                bad[draw.randrange(len(bad))] = draw.choice([0, 255, 1, 127, 128, draw.randrange(256)])
            path = self.file("r.weights.h5", bad[:draw.choice([len(bad), draw.randrange(len(bad))])])
            try:
                self.model.load_weights(path)
            except ValueError as error:
                self.assertIn(path, str(error))

    # --- arrays ---------------------------------------------------------------------------------------
    def test_safetensors_are_read_by_the_engine(self):
        row = '"dtype":"F32","shape":[524288],"data_offsets":[0,2097152]'
        heads = [b"{}", b"[]", b'{"a":{}}', b"[" * 100000, b'{"a":' * 1000, b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}',
                 b'{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}',
                 b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[-1000,0]}}', b'{"a":{"dtype":"ZZ","shape":[2],"data_offsets":[0,8]}}',
                 ("{" + ",".join(f'"t{i}":{{{row}}}' for i in range(1000)) + "}").encode()]
        for head in heads:
            with self.subTest(head[:60]):
                path = self.file("a.safetensors", struct.pack("<Q", len(head)) + head + b"\0" * (2097152 if b"524288" in head else 8))
                self.refused(lambda: self.model.load_weights(path), "a.safetensors")
        for head, why in ((b"{" + b" " * (20 << 20) + b"}", "header of"),
                          (("{" + ",".join(f'"{i:x}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(200000)) + "}").encode(), "header of"),
                          (("{" + ",".join(f'"{i:x}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(5000)) + "}").encode(), "5000 tensors"),
                          (b'{"__metadata__":{' + b",".join(b'"%x":""' % i for i in range(30000)) + b"}}", "a.safetensors")):
            path = self.file("a.safetensors", struct.pack("<Q", len(head)) + head)
            self.refused(lambda: self.model.load_weights(path), why)
        for n in (1 << 63, 1 << 62, 1 << 32):
            path = self.file("b.safetensors", struct.pack("<Q", n) + b"{}")
            self.refused(lambda: self.model.load_weights(path), "b.safetensors")
        self.refused(lambda: self.model.load_weights(self.file("c.safetensors", b"")), "c.safetensors")

    @staticmethod
    def npy(shape, descr="<f4"):
        head = str({"descr": descr, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
        return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head

    def test_npz_are_compared_with_their_headers_first(self):
        names = [f"{v.path}.npy" for v in self.model.weights]
        bias = self.npy((2,)) + b"\0" * 8

        def large(file):
            file.write(self.npy((24 << 18,)))
            rows_of(24 << 20, b"\0")(file)
        for head in (large, self.npy((1 << 60,)), self.npy((-4, 2)), self.npy((4, 2)), self.npy((4, 2), "|O") + b"\0" * 64, b"", b"\x93NUMPY\1\0\xff\xff",
                     self.npy((4, 2), "<f4").replace(b"4, 2", b"(" * 40), self.npy((4, 2), "<c99"), self.npy((4, 2)) + b"\0" * 64,
                     self.npy((4, 2), "<U0"), self.npy((4, 2), "|S00")):
            path = self.archive("a.npz", [(names[0], head), (names[1], bias)])
            self.refused(lambda: self.model.load_weights(path))
        before = self.model.get_weights()
        path = self.archive("b.npz", [(names[0], self.npy((4, 2)) + b"\0" * 32), (names[1], self.npy((3,)) + b"\0" * 12)])
        self.refused(lambda: self.model.load_weights(path), "it is")
        self.assertTrue(all(np.array_equal(a, b) for a, b in zip(before, self.model.get_weights())))       # nothing was written

    def test_texts_of_no_bytes_are_no_terabytes(self):
        path = self.archive("texts.npz", [(name, self.npy((1 << 40,), "<U0")) for name in ("x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy")])
        self.refused(lambda: keras.datasets.mnist.load_data(os.path.abspath(path)), "no array")

    def test_checkpoints_and_folders_hold_no_packed_arrays(self):
        v = tf.Variable(np.zeros(4, "f4"))
        self.archive("ckpt.npz", [("__step__.npy", self.npy(()) + b"\0" * 4), ("v.npy", rows_of(24 << 20, b"\0"))])
        self.refused(lambda: tf.train.Checkpoint(v=v).restore(self.path("ckpt")))
        os.makedirs(self.path("saved"), exist_ok=True)
        self.archive("saved/variables.npz", [("/v.npy", rows_of(24 << 20, b"\0"))])
        for notes in ({}, {"kind": "module"}, {"kind": "module", "signatures": {}, "arrays": "../good.npz", "object": None}, [], {"kind": "what"},
                      {"kind": "module", "signatures": {}, "object": {"kind": "variable", "at": "/v", "trainable": True}}):
            with open(self.path("saved/snug_model.json"), "w") as file:
                json.dump(notes, file)
            self.refused(lambda: tf.saved_model.load(self.path("saved")))

    @staticmethod
    def checkpoint_of(names):
        """A sound checkpoint of empty arrays."""
        head = (b"SNUGCKPT" + struct.pack("<I", 1)).ljust(64, b"\0")
        rows = b"".join(struct.pack("<IIIIQQq", len(name), 0, 1, 0, 64, 0, 0) + name for name in names)
        foot = struct.pack("<QQQI", 64, len(rows), len(names), zlib.crc32(rows))
        return head + rows + foot + struct.pack("<I", zlib.crc32(foot)) + b"TPKCGUNS"

    def test_a_backup_holds_as_many_arrays_as_a_model_has(self):
        x, y = np.ones((4, 4), "f4"), np.ones((4, 2), "f4")
        m = model()
        m.compile("sgd", "mse")
        m.fit(x, y, verbose=0)
        os.makedirs(self.path("backup"))
        for names, why in (([b"%06x" % i for i in range(300000)], "300000 arrays"),
                           ([b"/".join([b"%03x" % i, *[b"a"] * 498]) for i in range(1000)], "no state of a fit")):
            self.file("backup/latest.ckpt", self.checkpoint_of(names))
            self.refused(lambda: m.fit(x, y, verbose=0, callbacks=[keras.callbacks.BackupAndRestore(self.path("backup"))]), why)

    def test_datasets_in_folders(self):
        tf.data.Dataset.range(3).save(self.path("data"))
        with open(self.path("data/dataset.json")) as file:
            good = json.load(file)

        def written(notes):
            with open(self.path("data/dataset.json"), "w") as file:
                json.dump(notes, file) if not isinstance(notes, str) else file.write(notes)
        deep = "part"
        for _ in range(200):
            deep = {"tuple": [deep]}
        changes = ({"elements": "../good.npz"}, {"elements": 5}, {"count": -1}, {"count": "x"}, {"spec": 5}, {"spec": [["float99", []]]}, {"spec": []},
                   {"spec": [["int64", [-5]]]}, {"structure": deep}, {"structure": {"list": []}}, {"format": 2})
        for notes in itertools.chain(({**good, **c} for c in changes), ("[]", "[" * 100000, "", " " * (2 << 20), "5")):
            written(notes)
            self.refused(lambda: tf.data.Dataset.load(self.path("data")), kinds=(tf.errors.DataLossError,))
        written({**good, "spec": [["float32", [2]]]})
        self.refused(lambda: list(tf.data.Dataset.load(self.path("data"))), "cache file", kinds=(tf.errors.OpError,))
        elements = self.path("data/" + good["elements"])
        with open(elements, "rb") as file:
            raw = file.read()
        written(good)
        for bad in (raw[:-3], raw[:16] + b"\xff" * 8 + raw[24:], b"", raw[:8] + b"\xff" * 7 + b"\x7f" + raw[16:]):
            self.file("data/" + good["elements"], bad)
            self.refused(lambda: list(tf.data.Dataset.load(self.path("data"))), kinds=(tf.errors.OpError,))

    def test_tables_and_records_are_read_in_pieces(self):
        table = tf.data.experimental.make_csv_dataset
        for text in (b"", b"a,b\n1\n", b"a,b\n" + b"x" * 200000 + b",2\n", b"\xff" * (9 << 20), b"," * (9 << 20), b'a,"b\n' + b"1,2\n" * 100000):
            with open(self.path("t.csv"), "wb") as file:
                file.write(text)
            self.refused(lambda: table(self.path("t.csv"), 1, num_epochs=1))
        with open(self.path("t.csv"), "wb") as file:
            file.write(b"a\xff,b\n1,2\n")
        row, = table(self.path("t.csv"), 1, num_epochs=1)
        self.assertEqual([v.numpy().tolist() for v in row.values()], [[1], [2]])
        fixed = tf.data.FixedLengthRecordDataset
        for packed in (False, True):
            with (gzip.open if packed else open)(self.path("r.bin"), "wb") as file:
                rows_of(64 << 20, b"\0")(file)
                file.write(b"12345")
            kind = "GZIP" if packed else None
            self.refused(lambda: sum(1 for _ in fixed(self.path("r.bin"), 1 << 20, 3, 3, compression_type=kind)), "Excess", (tf.errors.InvalidArgumentError,))
            for last in fixed(self.path("r.bin"), 1 << 20, 3, 2, compression_type=kind):
                pass
            self.assertEqual(last.numpy()[-3:], b"123")
        self.refused(lambda: next(iter(fixed(self.path("r.bin"), 1 << 20, 3, 3, compression_type="GZIP"))), "67108863 is no multiple of 1048576, by what the file",
                     (tf.errors.InvalidArgumentError,))                 # before 64 MiB are unpacked
        for path, size in (("/dev/zero", 4), (self.path("r.bin"), 0), (self.path("r.bin"), -1)):
            self.refused(lambda: next(iter(fixed(path, size))), kinds=(ValueError, tf.errors.OpError))
        self.refused(lambda: L.StringLookup(vocabulary="/dev/zero"), "regular")

    def test_packed_records_are_refused_early_only_where_their_end_would_be(self):
        def read(*parts, size=4, **how):
            path = self.file("f.gz", b"".join(parts))
            return [t.numpy() for t in tf.data.FixedLengthRecordDataset(path, size, compression_type="GZIP", **how)]
        pack, wrong, large = gzip.compress, tf.errors.InvalidArgumentError, 16 << 20
        for n in range(20):
            for zeros in range(6):
                data = bytes(range(n))
                if n % 4:
                    self.refused(lambda: read(pack(data), bytes(zeros)), f"{n} is no multiple of 4", (wrong,))
                else:
                    self.assertEqual(read(pack(data), bytes(zeros)), [data[i:i + 4] for i in range(0, n, 4)])
        self.assertEqual(read(pack(b"hhabcdf"), header_bytes=2, footer_bytes=1), [b"abcd"])
        self.assertEqual(read(pack(b"hh"), header_bytes=2, footer_bytes=1), [])
        self.refused(lambda: read(pack(b"ab"), pack(b"cdefg")), "7 is no multiple of 4$", (wrong,))
        late = read(pack(bytes(3)), pack(bytes(large + 1)), size=large // 4 + 1)        # the last member alone would have a rest
        self.assertEqual([len(record) for record in late], [large // 4 + 1] * 4)
        self.assertEqual(len(read(pack(bytes(large + 4)), size=large // 4 + 1)), 4)
        self.refused(lambda: read(pack(bytes(large + 1))), f"{large + 1} is no multiple of 4, by what", (wrong,))

    def test_packed_files_are_unpacked_as_gzip_does(self):
        pack, draw = gzip.compress, random.Random(5)
        parts = [draw.randbytes(n) for n in (0, 1, 70000, 0, 300)] + [b"\0" * 200000]
        for n in range(len(parts) + 1):
            for zeros in (0, 1, 40000):
                raw = b"".join(pack(p) for p in parts[:n]) + bytes(zeros if n else 0)
                self.assertEqual(gunzip(io.BytesIO(raw)).read(), b"".join(parts[:n]))
        raw = b"".join(map(pack, parts[:3])) + bytes(3)
        for n in [*range(1, 60), *range(60, len(raw), 997)]:
            try:
                whole = gzip.decompress(raw[:n])
            except (EOFError, zlib.error, gzip.BadGzipFile):
                with self.assertRaises((EOFError, zlib.error)):
                    gunzip(io.BytesIO(raw[:n])).read()
            else:
                self.assertEqual(gunzip(io.BytesIO(raw[:n])).read(), whole)

    def test_what_is_packed_is_not_looked_at_byte_by_byte(self):
        class Counted(io.BytesIO):
            reads = 0

            def read(self, *n):
                Counted.reads += 1
                return super().read(*n)
        fixed, csv, lost = tf.data.FixedLengthRecordDataset, tf.data.experimental.make_csv_dataset, tf.errors.DataLossError
        name = b"\x1f\x8b\x08\x08" + bytes(5) + b"\x03" + b"a" * (4 << 20)
        whole = gzip.compress(b"abcd")
        with self.assertRaises(EOFError):
            gunzip(Counted(name)).read()
        self.assertEqual(gunzip(Counted(whole + bytes(4 << 20))).read(), b"abcd")
        self.assertLess(Counted.reads, 2000)
        for why, raw in (("0 .*truncated", name), ("4 .*truncated", whole[:-1]), ("[04] .*incorrect data check", whole[:-8] + bytes(8)),
                         ("4 .*header", whole + b"garbage"), ("0 .*header", b"text")):
            path = self.file("d.gz", raw)
            self.refused(lambda: list(fixed(path, 4, compression_type="GZIP")), f"d.gz' is damaged behind {why}", (lost,))
            self.refused(lambda: csv(path, 1, num_epochs=1, compression_type="GZIP"), f"damaged: .*{why[why.index('*') + 1:]}")
        path = self.file("d.gz", whole + bytes(4 << 20))
        self.assertEqual([t.numpy() for t in fixed(path, 4, compression_type="GZIP")], [b"abcd"])

    def test_data_files_of_others(self):
        for name in ("mnist", "boston_housing"):
            path = self.archive("data.npz", [("x_train.npy", rows_of(24 << 20, b"\0"))])
            self.refused(lambda: getattr(keras.datasets, name).load_data(path))
            self.refused(lambda: getattr(keras.datasets, name).load_data(self.path("good.npz")), "has no array")
        for head in (self.npy((24 << 18,)), self.npy((1,), "|O")):
            def large(file, head=head):
                file.write(head)
                rows_of(24 << 20, b"\0")(file)
            path = self.archive("data.npz", [("x_train.npy", large)])
            self.refused(lambda: keras.datasets.mnist.load_data(path), "unpacks to")

    @staticmethod
    def pickled(data, what, n):
        """Bytes, a text and a list that are told once, and n times what stands for an array or another text of them."""
        size, word = struct.pack("<I", len(data)), b"X" + struct.pack("<I", len(data)) + data
        out = b"\x80\3" + b"B" + size + data + b"q\1" + b"0" + word + b"q\7" + b"0"
        out += b"cnumpy\ndtype\nX\2\0\0\0u1K\0K\1\x87Rq\2(K\3X\1\0\0\0|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb0"
        out += b"cnumpy.core.numeric\n_frombuffer\nq\x040J" + struct.pack("<i", len(data)) + b"\x85q\0050X\1\0\0\0Cq\x060"
        out += b"c_codecs\nencode\nq\x080X\6\0\0\0latin1q\x090"
        out += b"](" + b"N" * len(data) + b"eq\x0a0cnumpy\ndtype\nX\2\0\0\0O8\x85Rq\x0b0"
        return out + b"](" + what * n + b"e."

    def test_what_is_told_once_is_copied_once(self):
        array, objects, text = b"h\4(h\1h\2h\5h\6tR", b"h\4(h\x0ah\x0bh\5h\6tR", b"h\x08h\7h\x09\x86R"
        self.assertEqual([a.tolist() for a in _pickles.loads(self.pickled(b"\1\2", array, 2))], [[1, 2]] * 2)
        self.assertEqual([a.tolist() for a in _pickles.loads(self.pickled(b"\1\2", objects, 2))], [[None, None]] * 2)
        self.assertEqual(_pickles.loads(self.pickled(b"ab", text, 2)), [b"ab"] * 2)
        for what in (array, objects, text):
            self.refused(lambda: _pickles.loads(self.pickled(b"\1" * 100000, what, 4000)), "more arrays than")

    def test_numbers_as_keys_have_a_limit(self):
        """Numbers that a dict puts at one place are easily found; each is compared with all before it."""
        def keys(n):
            return b"\x80\2}(" + b"".join(b"\x8a\x0c" + ((i << 61) - i).to_bytes(12, "little") + b"N" for i in range(n)) + b"u."
        self.assertEqual({hash(k) for k in _pickles.loads(keys(1000))}, {0})
        self.refused(lambda: _pickles.loads(keys(1001)), "numbers as keys")

    def test_packed_pictures_unpack_to_what_they_say(self):
        home = self.home()
        for raw in (gzip.compress(b"\0" * (24 << 20)), b"\x1f\x8b\x08garbage", b"", gzip.compress(b"\0\0\x08\1\0\0\0\5ab")):
            for part in ("train", "t10k"):
                self.file(f"{home}/datasets/fashion-mnist/{part}-labels-idx1-ubyte.gz", raw)
            self.refused(lambda: keras.datasets.fashion_mnist.load_data(), "labels")
        self.file(f"{home}/datasets/fashion-mnist/train-labels-idx1-ubyte.gz", gzip.compress(struct.pack(">II", 0x801, 60001) + bytes(60001)))
        self.refused(lambda: keras.datasets.fashion_mnist.load_data(), "holds 60001 items, more than the 60000")

    # --- Examples -------------------------------------------------------------------------------------
    @staticmethod
    def example():
        F = tf.train
        return F.Features({"ints": F.Feature(int64_list=F.Int64List([1, -2, 1 << 40])), "floats": F.Feature(float_list=F.FloatList([1.5, 2])),
                           "texts": F.Feature(bytes_list=F.BytesList([b"ab", b""]))})

    def test_damaged_examples_raise_one_exception(self):
        F, draw = tf.train, random.Random(7)
        lists = F.FeatureLists({"l": F.FeatureList([F.Feature(int64_list=F.Int64List([5]))])})
        for good in (F.Example(self.example()), F.SequenceExample(self.example(), lists)):
            raw, kind, refused = good.SerializeToString(), type(good), 0
            self.assertEqual(kind.FromString(raw), good)
            for n in range(1, len(raw)):
                with self.subTest(n):
                    try:                        # a message that ends behind a whole field is one
                        self.assertLess(len(kind.FromString(raw[:n]).SerializeToString()), len(raw))
                    except tf.errors.DataLossError:
                        refused += 1
            self.assertGreater(refused, len(raw) - 4)
            for _ in range(2000):
                bad = bytearray(raw)
                for _ in range(draw.randint(1, 3)):
                    bad[draw.randrange(len(bad))] = draw.choice([0, 255, 127, 128, draw.randrange(256)])
                try:
                    str(kind.FromString(bytes(bad[:draw.choice([len(bad), draw.randrange(len(bad))])])))
                except tf.errors.DataLossError as error:
                    self.assertIn("protocol buffers", str(error))

    def test_what_no_message_is_is_refused(self):
        for why, raw in (("field 0", b"\2\2\x0a\0"), ("field 0", b"\0\0"), ("field 536870912", b"\x82\x80\x80\x80\x10\0"), ("kind 6", b"\x0e"), ("kind 7", b"\x0f"),
                         ("cut off", b"\x0a\5ab"), ("cut off", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"), ("cut off", b"\x0d\0\0"), ("cut off", b"\x09" + b"\0" * 7),
                         ("no end", b"\x80"), ("no end", b"\x08" + b"\x80" * 10 + b"\0"), ("no end", b"\x0a"), ("group 4 has no end", b"\x23\x08\1"),
                         ("did not begin", b"\x23\x2c"), ("did not begin", b"\x24")):
            for kind in (tf.train.Feature, tf.train.Int64List, tf.train.Features, tf.train.Example, tf.train.SequenceExample):
                with self.subTest(why=why, raw=raw, kind=kind.__name__):
                    self.refused(lambda: kind.FromString(raw), why, (tf.errors.DataLossError,))
        self.refused(lambda: tf.train.FloatList.FromString(b"\x0a\3abc"), "3 bytes of numbers", (tf.errors.DataLossError,))
        self.refused(lambda: tf.train.Features.FromString(b"\x0a\3\x0a\1\xff"), "UTF-8", (tf.errors.DataLossError,))

    def test_examples_are_read_as_protocol_buffers_are(self):
        """Unknown fields and kinds are skipped, lists come packed or not, parts of one message are merged, of several kinds the last counts."""
        I, F, E = tf.train.Int64List, tf.train.Feature, tf.train.Example
        strange = b"\x23\x2b\x0a\3abc\x2c\x24" + b"\xf8\1\5" + b"\x7d1234" + b"\x7912345678" + b"\x7a\2ab"      # a group in a group, and each other kind
        self.assertEqual(I.FromString(strange + b"\x08\7" + strange + b"\x0a\2\1\2" + b"\x08" + b"\xff" * 9 + b"\1").value, [7, 1, 2, -1])
        self.assertEqual(I.FromString(b"\x0d1234\x12\1\5").value, [])                    # its number with another kind, its kind with another number
        self.assertEqual(I.FromString(b"\x08" + b"\x81" * 9 + b"\x7f").value, I.FromString(b"\x08" + b"\x81" * 9 + b"\1").value)       # 64 bits count
        self.assertEqual(tf.train.FloatList.FromString(struct.pack("<BfBBf", 0x0d, 1.5, 0x0a, 4, 2.5)).value, [1.5, 2.5])
        both = F.FromString(b"\x1a\2\x08\1" + b"\x0a\3\x0a\1x" + b"\x0a\3\x0a\1y" + b"\x22\0")
        self.assertEqual((both.WhichOneof("kind"), both.bytes_list.value, both.int64_list.value), ("bytes_list", [b"x", b"y"], []))
        one, two = (E(tf.train.Features({k: F(int64_list=I([n]))})).SerializeToString() for k, n in (("a", 1), ("b", 2)))
        self.assertEqual({k: f.int64_list.value for k, f in E.FromString(one + two + strange).features.feature.items()}, {"a": [1], "b": [2]})
        self.assertEqual(list(tf.train.Features.FromString(b"\x0a\0").feature), [""])
        message = E.FromString(one)
        self.assertEqual((message.ParseFromString(two), sorted(message.features.feature)), (len(two), ["b"]))
        self.assertEqual((message.MergeFromString(one), sorted(message.features.feature)), (len(one), ["a", "b"]))

    def test_numbers_of_messages_are_read_once(self):
        class Counted(bytes):
            taken = 0

            def __getitem__(self, key):
                found = super().__getitem__(key)
                Counted.taken += len(found) if isinstance(key, slice) else 1
                return found
        self.refused(lambda: tf.train.Feature.FromString(Counted(b"\xff" * 200000)), "no end", (tf.errors.DataLossError,))
        self.assertLess(Counted.taken, 100)
        Counted.taken = 0
        self.assertEqual(len(tf.train.Int64List.FromString(Counted(b"\x08\x80\1" * 20000)).value), 20000)
        self.assertLess(Counted.taken, 20 * 20000)


if __name__ == "__main__":
    unittest.main()
