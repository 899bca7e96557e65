#!/usr/bin/env python3
"""Pipelines from the command: fit --data, data inspect, data bench; and data much larger than the memory there is: the run in
a cgroup gives the weights of the run without one. With SNUG_TEST_FULL 6 GB in 512 MiB.
usage: test_data.py SNUG IN_CGROUP"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import files  # noqa: E402

SNUG, IN_CGROUP = (os.path.abspath(p) for p in sys.argv[1:3])
FULL = bool(os.environ.get("SNUG_TEST_FULL"))
MIB = 1 << 20


def png(path, width, height, pixel):
    """An RGB picture; pixel(x, y) gives three numbers."""
    raw = b"".join(b"\0" + bytes(v for x in range(width) for v in pixel(x, y)) for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    files.write(path, b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def crc(data):
    c = 0xffffffff
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
    c ^= 0xffffffff
    return struct.pack("<I", ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff)


def record(data):
    """Of a TFRecord file."""
    head = struct.pack("<Q", len(data))
    return head + crc(head) + data + crc(data)


def snug(*args, code=0):
    done = subprocess.run([SNUG, *map(str, args)], capture_output=True, text=True, timeout=600)
    if done.returncode != code:
        raise AssertionError(f"{args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr if code else done.stdout


class Data(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="snug-data-")
        cls.photos = os.path.join(cls.dir, "photos")
        draw = random.Random(1)
        for c, name in enumerate(["red", "green"]):
            os.makedirs(os.path.join(cls.photos, name))
            for i in range(8):
                png(os.path.join(cls.photos, name, f"{i}.png"), draw.randint(9, 30), draw.randint(9, 30),
                    lambda x, y: [draw.randint(0, 60) + (180 if k == c else 0) for k in range(3)])
        cls.pictures = cls.write_model("pictures.json", [12, 12, 3], [{"class_name": "Flatten", "config": {"name": "f"}},
                                                                      files.dense("out", 2, "softmax")])
        cls.numbers = cls.write_model("numbers.json", [4], [files.dense("out", 2, "softmax")])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    @classmethod
    def write_model(cls, name, shape, layers):
        first = {"class_name": "InputLayer", "config": {"batch_shape": [None, *shape], "dtype": "float32", "name": "x"}}
        config = {"class_name": "Sequential", "config": {"name": "m", "layers": [first, *layers]}}
        return files.write(os.path.join(cls.dir, name), json.dumps(config).encode())

    def fit(self, model, *args):
        weights = os.path.join(self.dir, "w.safetensors")
        result = json.loads(snug("fit", model, "--loss", "sparse_categorical_crossentropy", "--metrics", "accuracy", "--seed", 3,
                                 "--save", weights, "--json", *args))
        return result, files.read(weights)

    def test_a_folder_trains_a_model(self):
        args = ["--data", self.photos, "--shuffle", "--batch", 4, "--epochs", 8, "--optimizer", "adam:lr=0.02"]
        result, weights = self.fit(self.pictures, *args, "--augment", "flip,crop:2,brightness:0.1")
        self.assertEqual(result["steps"], 32)
        self.assertEqual(result["accuracy"], 1)
        again, same = self.fit(self.pictures, *args, "--augment", "flip,crop:2,brightness:0.1", "--threads", 1)
        self.assertEqual(weights, same)  # whoever did the work
        _, other = self.fit(self.pictures, *args)
        self.assertNotEqual(weights, other)

    def test_a_folder_is_split(self):
        result, _ = self.fit(self.pictures, "--data", self.photos, "--batch", 4, "--validation-split", 0.25, "--epochs", 2)
        self.assertEqual(result["steps"], 6)
        self.assertIn("val_accuracy", result)

    def test_rows_train_as_feeds_do(self):
        x, y = "normal:50x4@1", "labels:50@2@2"
        _, want = self.fit(self.numbers, "--x", x, "--y", y, "--batch", 8, "--epochs", 2)
        _, got = self.fit(self.numbers, "--data", x, "--data", y, "--batch", 8, "--epochs", 2)
        self.assertEqual(want, got)

    def test_evaluate_reads_the_same(self):
        result, _ = self.fit(self.pictures, "--data", self.photos, "--epochs", 6, "--optimizer", "adam:lr=0.02")
        told = json.loads(snug("evaluate", self.pictures, "--weights", os.path.join(self.dir, "w.safetensors"), "--data", self.photos,
                               "--loss", "sparse_categorical_crossentropy", "--metrics", "accuracy", "--json"))
        self.assertEqual(told["accuracy"], 1)
        x, y = "normal:50x4@1", "labels:50@2@2"
        common = ["evaluate", self.numbers, "--loss", "sparse_categorical_crossentropy", "--json"]
        self.assertEqual(snug(*common, "--x", x, "--y", y), snug(*common, "--data", x, "--data", y))

    def test_predict_reads_folders_rows_and_records_of_unknown_number(self):
        out, again = (os.path.join(self.dir, name) for name in ("p.npy", "q.npy"))
        told = json.loads(snug("predict", self.pictures, "--seed", 3, "--data", self.photos, "--batch", 5, "--out", out, "--json"))
        self.assertEqual((told["rows"], told["shape"]), (16, [16, 2]))
        snug("predict", self.pictures, "--seed", 3, "--data", os.path.join(self.photos, "green"), "--out", again)  # no classes in it
        head = len(files.read(out)) - 16 * 8
        self.assertEqual(files.read(out)[head:head + 8 * 8], files.read(again)[-8 * 8:])  # sorted by name: green, red
        x = "normal:50x4@1"
        snug("predict", self.numbers, "--data", x, "--out", out)
        snug("predict", self.numbers, "--x", x, "--out", again)
        self.assertEqual(files.read(out), files.read(again))
        records = os.path.join(self.dir, "numbers.tfrecord")
        rows = [struct.pack("<4f", i, 1, 2, 3) for i in range(7)]
        files.write(records, b"".join(record(r) for r in rows))
        told = json.loads(snug("predict", self.numbers, "--data", records, "--map", "tf.io.decode_raw:out_type=float32;fixed_length=16",
                               "--batch", 2, "--out", out, "--json"))
        self.assertEqual(told["shape"], [7, 2])

    def test_long_listings_show_on_a_terminal(self):
        many = os.path.join(self.dir, "many")
        os.makedirs(os.path.join(many, "one"))
        for i in range(3000):
            open(os.path.join(many, "one", f"{i}.jpg"), "w").close()
        master, slave = os.openpty()
        done = subprocess.Popen([SNUG, "data", "inspect", many], stdout=subprocess.PIPE, stderr=slave,
                                env={**os.environ, "TERM": "xterm", "SNUG_PROGRESS_AFTER": "0"})
        os.close(slave)
        shown = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:
                break
            if not part:
                break
            shown += part
        os.close(master)
        self.assertIn(b"3000", done.communicate()[0])
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"listing: ", shown)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)  # nothing is left of it

    def test_the_plan_has_a_row_for_the_pipeline(self):
        def pipeline(budget, size):
            plan = json.loads(snug(*args[:4], size, *args[5:], "--budget", budget, "--data", self.photos))
            return {r["name"]: r["bytes"] for r in plan["rows"]}["input pipeline"]
        args = ["plan", self.pictures, "--train", "--batch", 4, "--json"]
        batch = 16 * (12 * 12 * 3 + 1) * 4
        self.assertGreater(pipeline("64MiB", 16), 2 * batch)  # one in use, and some ahead
        self.assertLess(pipeline("64MiB", 16), MIB)
        self.assertLess(abs(pipeline("64MiB", 16) - pipeline("1GiB", 16)), 4096)  # what it needs, not a part of the budget
        plain = json.loads(snug(*args, "--budget", "64MiB"))
        self.assertNotIn("input pipeline", [r["name"] for r in plain["rows"]])

    def test_inspect_tells_what_is_there(self):
        told = json.loads(snug("data", "inspect", self.photos, "--json"))
        self.assertEqual(told, {"elements": 16, "parts": ["text", "i32[]"], "classes": [8, 8]})
        self.assertIn("f32[4]", snug("data", "inspect", "normal:50x4@1"))

    def test_bench_names_the_stages_and_the_bottleneck(self):
        told = json.loads(snug("data", "bench", self.photos, "--shuffle", "--batch", 4, "--input-shape", "12,12,3", "--json"))
        self.assertEqual([s["stage"] for s in told["stages"]], ["folder", "shuffle", "map", "batch", "prefetch"])
        self.assertEqual(told["elements"], 16)
        self.assertIn(told["bottleneck"], [s["stage"] for s in told["stages"]])
        self.assertIn("the bottleneck is", snug("data", "bench", "normal:500x4@1"))

    def test_functions_of_map_come_one_after_another(self):
        sizes = ["--map", "tf.image.resize:size=16,16", "--map", "tf.image.resize:size=4,4;method=nearest"]
        told = json.loads(snug("data", "bench", "normal:50x8x8x3@1", *sizes, "--batch", 10, "--json"))
        self.assertEqual([s["stage"] for s in told["stages"]], ["feeds", "map", "map", "batch", "prefetch"])
        self.assertEqual(told["elements"], 50)
        small = files.model(os.path.join(self.dir, "small.json"), 4 * 4 * 3, [files.dense("a", 2)], loss="mse")
        self.assertIn("f32[10,4,4,3]", snug("fit", small, "--data", "normal:50x8x8x3@1", "--data", "zeros:50x2", *sizes, "--batch", 10, code=4))

    def test_wrong_words_are_told(self):
        folder = os.path.join(self.dir, "empty")
        os.makedirs(folder, exist_ok=True)
        arrays = os.path.join(self.dir, "arrays")
        snug("make-data", "blobs", arrays, "--train-rows", 2, "--test-rows", 2)
        both = os.path.join(self.dir, "both")
        shutil.copytree(self.photos, both)
        shutil.copy(os.path.join(arrays, "x_train.npy"), both)
        for code, text, args in (
                (2, "give --data, or --x and --y", ["fit", self.numbers, "--data", self.photos, "--x", "zeros:4x4", "--y", "zeros:4"]),
                (2, "--augment goes with --data", ["fit", self.numbers, "--x", "zeros:4x4", "--y", "zeros:4", "--augment", "flip"]),
                (4, "is no picture", ["fit", self.numbers, "--data", self.photos]),
                (2, "augment: 'twist'", ["fit", self.pictures, "--data", self.photos, "--augment", "flip,twist"]),
                (2, "data inspect or data bench", ["data", "look", self.photos]),
                (2, "--map x:y: 'y' is no K=V", ["data", "bench", self.photos, "--map", "x:y"]),
                (6, "missing.npy", ["data", "inspect", os.path.join(self.dir, "missing.npy")]),
                (6, "`snug make-data blobs DIR` makes such data", ["data", "inspect", "blobs"]),
                (4, "validation_split=0.0001 of", ["fit", self.pictures, "--data", both, "--validation-split", "0.0001", "--loss", "mse"]),
                (4, "holds arrays, not pictures; name them: " + arrays + "/x_train.npy", ["data", "inspect", arrays])):
            with self.subTest(args=args):
                self.assertIn(text, snug(*args, code=code))

    def test_a_picture_that_is_none_is_named(self):
        broken = os.path.join(self.dir, "broken")
        shutil.copytree(self.photos, broken)
        files.write(os.path.join(broken, "red", "3.png"), b"this is a text")
        self.assertIn("3.png", snug("fit", self.pictures, "--data", broken, "--loss", "sparse_categorical_crossentropy", code=4))


class Larger(unittest.TestCase):
    """Than memory."""

    def test_a_shuffled_file_trains_in_a_small_group(self):
        rows, limit = (1_500_000, 512 * MIB) if FULL else (48_000, 48 * MIB)
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            x = files.npy(os.path.join(folder, "x.npy"), "<f4", (rows, 1000), raw=b"")
            start, draw = os.path.getsize(x), random.Random(2)
            with open(x, "r+b") as f:  # holes, and some thousand rows of numbers
                f.truncate(start + rows * 4000)
                for i in range(0, rows, rows // 2000):
                    f.seek(start + i * 4000)
                    f.write(struct.pack("<20f", *(draw.gauss(0, 1) for _ in range(20))))
            model = files.model(os.path.join(folder, "m.json"), 1000, [files.dense("a", 8, "relu"), files.dense("out", 3, "softmax")],
                                optimizer="adam", loss="sparse_categorical_crossentropy")

            def command(weights, batch):
                return [SNUG, "fit", model, "--data", x, "--data", f"labels:{rows}@2@3", "--shuffle", "--buffer", str(rows // 3),
                        "--batch", str(batch), "--save", os.path.join(folder, weights), "--json"]
            report = os.path.join(folder, "report.json")
            for batch in (256,) if FULL else (256, 2048):  # the latter more than the pipeline's share of the budget
                fit = subprocess.run([IN_CGROUP, str(limit), report, *command("small", batch), "--budget", str(limit)],
                                     capture_output=True, text=True)
                if fit.returncode == 77:
                    self.skipTest(fit.stderr)
                self.assertEqual(fit.returncode, 0, fit.stderr)
                with open(report) as f:
                    group = json.load(f)
                self.assertFalse(group["killed"])
                self.assertLessEqual(group["counted_peak_bytes"], limit)
                subprocess.run(command("large", batch), check=True, capture_output=True)
                self.assertEqual(files.read(os.path.join(folder, "small")), files.read(os.path.join(folder, "large")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
