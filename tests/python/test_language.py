#!/usr/bin/env python3
"""Under a language whose numbers have commas and whose system errors are translated: exceptions have the same classes, numbers are written and
read with points, and JSON is JSON. The language is German as Debian's package `locales` describes it; `localedef` makes it in a folder."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

NAME = "de_DE.UTF-8"


def made_in(folder):
    """Whether the language could be made in the folder."""
    done = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, NAME)], capture_output=True)
    return os.path.exists(os.path.join(folder, NAME, "LC_NUMERIC")) and done.returncode in (0, 1)


class German(unittest.TestCase):
    maxDiff = None
    """Each test is a process of its own: the C library reads LOCPATH once."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        if not made_in(cls.folder.name):
            cls.folder.cleanup()
            raise unittest.SkipTest("localedef cannot make de_DE here: install the package locales")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_german(self, text, name=NAME):
        with tempfile.TemporaryDirectory() as folder:
            return self.run_in(folder, text, name)

    def run_in(self, folder, text, name):
        script = os.path.join(folder, "script.py")
        with open(script, "w") as f:
            f.write(START + text)
        environment = {**os.environ, "LC_ALL": name, "LANG": name, "LOCPATH": self.folder.name, "FOLDER": folder, "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run([sys.executable, "-B", "-m", "snug", script], capture_output=True, text=True, encoding="utf-8", env=environment,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_language_is_german(self):
        self.assertEqual(self.run_german("print(os.strerror(2), ctypes_number(), sep='|')").strip(), "Datei oder Verzeichnis nicht gefunden|0,5")

    def test_exceptions_are_chosen_by_kind(self):
        german, plain = (json.loads(self.run_german(CALLS, name)) for name in (NAME, "C.UTF-8"))
        self.assertEqual({word: kind for word, (kind, _) in german.items()}, EXPECTED)
        self.assertEqual({word: kind for word, (kind, _) in plain.items()}, EXPECTED)
        for word, german_word, plain_word in (("missing", "Datei oder Verzeichnis nicht gefunden", "No such file or directory"),
                                              ("folder", "Ist ein Verzeichnis", "Is a directory"),
                                              ("full", "Auf dem Gerät ist kein Speicherplatz mehr verfügbar", "No space left on device"),
                                              ("denied", "Keine Berechtigung", "Permission denied")):
            self.assertIn(german_word, german[word][1])          # or nothing was proven
            self.assertIn(plain_word, plain[word][1])

    def test_numbers_have_points_in_every_text(self):
        self.run_german("""
import csv, io
x, y = tf.random.stateless_uniform((32, 3), (1, 2)), tf.random.stateless_uniform((32, 1), (3, 4))
model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4, kernel_regularizer=tf.keras.regularizers.L2(0.125)),
                             tf.keras.layers.Dropout(0.25), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.Adam(0.0625), tf.keras.losses.Huber(delta=1.5), metrics=[tf.keras.metrics.BinaryAccuracy(threshold=0.25)])
out = io.StringIO()
import contextlib
with contextlib.redirect_stdout(out):
    history = model.fit(x, y, epochs=2, batch_size=16, callbacks=[tf.keras.callbacks.CSVLogger("log.csv")])
    model.summary()
shown = out.getvalue()
import re
assert re.search(r"loss: \\d+\\.\\d", shown), shown
assert not re.search(r"\\d,\\d(?!\\d\\d)", shown), shown           # thousands may have commas, decimals not
rows = list(csv.DictReader(open("log.csv")))
assert [float(r["loss"]) for r in rows] == [float("%.9g" % v) for v in history.history["loss"]] or all(
    abs(float(r["loss"]) - v) < 1e-6 for r, v in zip(rows, history.history["loss"])), rows
config = json.loads(model.to_json())
assert config["config"]["layers"][2]["config"]["rate"] == 0.25, config
assert config["config"]["layers"][1]["config"]["kernel_regularizer"]["config"]["l2"] == 0.125
model.save("m.keras")
again = tf.keras.models.load_model("m.keras")
assert again.optimizer.learning_rate.numpy() == 0.0625 and again.layers[1].rate == 0.25
assert (again.predict(x, verbose=0) == model.predict(x, verbose=0)).all()
assert again.evaluate(x, y, verbose=0, return_dict=True) == model.evaluate(x, y, verbose=0, return_dict=True)
assert tf.strings.to_number("1.5").numpy() == 1.5 and tf.strings.as_string(tf.constant(2.5), precision=2).numpy() == b"2.50"
assert repr(tf.constant(0.5)) == "<tf.Tensor: shape=(), dtype=float32, numpy=0.5>", repr(tf.constant(0.5))
assert [float(v) for v in tf.io.decode_csv("0.5,1.25", [0.0, 0.0])] == [0.5, 1.25]
""")


START = """import json, locale, os
import snug
import tensorflow as tf
assert locale.setlocale(locale.LC_ALL, "") == os.environ["LC_ALL"]
os.chdir(os.environ["FOLDER"])
def ctypes_number():
    import ctypes
    text = ctypes.create_string_buffer(16)
    ctypes.CDLL(None).snprintf(text, 16, b"%.1f", ctypes.c_double(0.5))
    return text.value.decode()
"""

CALLS = """
def named(call):
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]
os.mkdir("a folder")
os.mkdir("a.weights.h5")
os.symlink("round", "round")
def dense():
    return tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
def logged():
    model = dense()
    model.compile("sgd", "mse")
    model.fit(tf.zeros((2, 2)), tf.zeros((2, 1)), verbose=0, callbacks=[tf.keras.callbacks.CSVLogger("nowhere/log.csv")])
def leaks(x):
    kept.append(x * 2)
    return x
def fails(x):
    raise KeyError("mine")
def generator():
    yield 1
    raise ZeroDivisionError("mine")
kept, of_one_float, leaky = [], tf.zeros((1,)), tf.function(leaks)
leaky(of_one_float)
print(json.dumps({
    "missing": named(lambda: tf.io.read_file("nowhere")),
    "missing above": named(lambda: tf.io.read_file("script.py/file")),
    "folder": named(lambda: tf.io.read_file("a folder")),
    "write to folder": named(lambda: tf.io.write_file("a folder", "x")),
    "full": named(lambda: tf.io.write_file("/dev/full", "x")),
    "denied": named(lambda: tf.io.write_file("/sys/snug", "x")),            # root's, too: that file system makes no files
    "round": named(lambda: tf.io.read_file("round")),
    "picture": named(lambda: tf.io.decode_png(b"none")),
    "sound": named(lambda: tf.audio.decode_wav(b"none")),
    "record": named(lambda: list(tf.data.TFRecordDataset("script.py"))),
    "shapes": named(lambda: tf.matmul(tf.zeros((2, 3)), tf.zeros((2, 3)))),
    "dtypes": named(lambda: of_one_float + tf.zeros((1,), tf.int32)),
    "dtypes traced": named(lambda: tf.function(lambda x: x + tf.zeros((1,), tf.int32))(of_one_float)),
    "shapes traced": named(lambda: tf.function(lambda x: tf.matmul(x, x))(tf.zeros((2, 3)))),
    "leaked": named(lambda: kept[0] + 1),
    "memory": named(lambda: tf.random.uniform((1 << 20, 1 << 20)).numpy()),
    "setting": named(lambda: tf.keras.layers.Dense(-1)),
    "model": named(lambda: tf.keras.models.load_model("nowhere.keras")),
    "weights": named(lambda: dense().load_weights("nowhere.weights.h5")),
    "save in nothing": named(lambda: dense().save("nowhere/m.keras")),
    "save in folder": named(lambda: dense().save_weights("a.weights.h5")),
    "save in system": named(lambda: dense().save("/sys/m.keras")),
    "log in nothing": named(logged),
    "python function": named(lambda: list(tf.data.Dataset.range(2).map(lambda x: tf.py_function(fails, [x], tf.int64)))),
    "generator": named(lambda: list(tf.data.Dataset.from_generator(generator, output_signature=tf.TensorSpec((), tf.int32))))}))
"""

EXPECTED = {
    "missing": "NotFoundError", "missing above": "NotFoundError", "folder": "FailedPreconditionError", "write to folder": "FailedPreconditionError",
    "full": "ResourceExhaustedError", "denied": "PermissionDeniedError", "round": "UnavailableError", "picture": "InvalidArgumentError",
    "sound": "InvalidArgumentError", "record": "DataLossError", "shapes": "InvalidArgumentError", "dtypes": "InvalidArgumentError",
    "dtypes traced": "TypeError", "shapes traced": "ValueError", "leaked": "InaccessibleTensorError", "memory": "ResourceExhaustedError",
    "setting": "ValueError", "model": "ValueError", "weights": "FileNotFoundError", "save in nothing": "FileNotFoundError",
    "save in folder": "IsADirectoryError", "save in system": "PermissionError", "log in nothing": "FileNotFoundError",
    "python function": "UnknownError", "generator": "UnknownError"}

if __name__ == "__main__":
    unittest.main()
