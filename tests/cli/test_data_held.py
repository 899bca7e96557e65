#!/usr/bin/env python3
"""Pipelines of the command inside a memory cgroup of exactly their budget: no kill, the counted peak within it; and no refusal where
the bytes suffice. What does not fit is refused with the file's name, the numbers and what to do.
usage: test_data_held.py SNUG IN_CGROUP"""
import gzip
import json
import os
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


def segment(marker, data):
    return bytes([0xff, marker]) + struct.pack(">H", len(data) + 2) + data


def jpeg(width, height, progressive=False, whole=True):
    """One colour, 4:2:0. Codes of one bit: a difference of 0, and the end of a block; so the scan is zeros."""
    bits = (width + 15) // 16 * ((height + 15) // 16) * 6 * (1 if progressive else 2)
    code = bytes([1] + 15 * [0]) + b"\0"
    return (b"\xff\xd8" + segment(0xdb, b"\0" + b"\x10" * 64) +
            segment(0xc2 if progressive else 0xc0, struct.pack(">BHHB", 8, height, width, 3) + bytes([1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0])) +
            segment(0xc4, b"\0" + code) + segment(0xc4, b"\x10" + code) +
            segment(0xda, bytes([3, 1, 0, 2, 0, 3, 0, 0, 0 if progressive else 63, 0])) +
            bytes((bits + 7) // 8 if whole else 500) + b"\xff\xd9")


def png(width, height, interlaced=False):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)) if interlaced else ((0, 0, 1, 1),)
    pack, raw = zlib.compressobj(1), b""
    for x, y, dx, dy in passes:
        for _ in range((height - y + dy - 1) // dy):
            raw += pack.compress(bytes(1 + 3 * ((width - x + dx - 1) // dx)))
    raw += pack.flush()
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, interlaced)) + chunk(b"IDAT", raw) +
            chunk(b"IEND", b""))


TABLE = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
    TABLE.append(i)


def crc(data):
    c = 0xffffffff
    for byte in data:
        c = TABLE[(c ^ byte) & 255] ^ c >> 8
    c ^= 0xffffffff
    return struct.pack("<I", ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff)


def record(data):
    head = struct.pack("<Q", len(data))
    return head + crc(head) + data + crc(data)


class Held(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="snug-held-", dir="/var/tmp")
        cls.pictures = files.model(cls.path("pictures.json"), [12, 12, 3],
                                   [{"class_name": "Flatten", "config": {"name": "f"}}, files.dense("out", 2, "softmax")],
                                   optimizer="sgd", loss="sparse_categorical_crossentropy")
        cls.wide = files.model(cls.path("wide.json"), 1_000_000, [files.dense("d", 1)], optimizer="sgd", loss="mse")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.dir, name)

    def folder(self, name, *pictures):
        """Two classes of the same pictures."""
        for kind in "ab":
            os.makedirs(os.path.join(self.path(name), kind), exist_ok=True)
            for i, (end, data) in enumerate(pictures):
                files.write(os.path.join(self.path(name), kind, f"{i}.{end}"), data)
        return self.path(name)

    def held(self, budget, *args, code=0):
        """Runs in a group of the budget; what it said."""
        report = self.path("report.json")
        run = subprocess.run([IN_CGROUP, str(budget), report, SNUG, *map(str, args), "--budget", str(budget)], capture_output=True,
                             text=True, timeout=600)
        if run.returncode == 77:
            self.skipTest(run.stderr)
        with open(report) as f:
            group = json.load(f)
        self.assertFalse(group["killed"], (args, run.stderr))
        self.assertEqual(run.returncode, code, (args, run.stdout[-500:] + run.stderr[-500:]))
        self.assertLessEqual(group["counted_peak_bytes"], budget, args)
        return run.stderr if code else run.stdout

    def floor(self, *args, train=True):
        done = subprocess.run([SNUG, "plan", *map(str, args), *(["--train"] if train else []), "--budget", "1GiB", "--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["floor_bytes"]

    # --- pictures ---
    def test_large_pictures_are_never_whole(self):
        for name, end, data in (("photo", "jpg", jpeg(6000, 4000)), ("png", "png", png(6000, 4000)), ("lie", "jpg", jpeg(16000, 16000, whole=False))):
            with self.subTest(name):
                folder = self.folder(name, (end, data))
                for budget in (20 * MIB, 48 * MIB):
                    self.held(budget, "fit", self.pictures, "--data", folder, "--batch", 2)

    def test_pictures_that_must_be_whole_are_refused_by_their_header(self):
        self.assertLess(len(jpeg(16000, 16000, True, False)), 774)
        for name, budget, takes, end, data in (("lie_scans", 200 * MIB, "735.6 MiB", "jpg", jpeg(16000, 16000, True, False)),
                                               ("lie_more", 600 * MIB, "735.6 MiB", "jpg", jpeg(16000, 16000, True, False)),
                                               ("scans", 64 * MIB, "69.8 MiB", "jpg", jpeg(6000, 4000, True)),
                                               ("passes", 64 * MIB, "68.7 MiB", "png", png(6000, 4000, True))):
            with self.subTest(name):
                said = self.held(budget, "fit", self.pictures, "--data", self.folder(name, (end, data)), "--batch", 2, code=3)
                for text in (f"0.{end}", "pixels in several", takes, "would do", "make the picture smaller"):
                    self.assertIn(text, said)

    def test_a_told_number_suffices_for_a_picture(self):
        folder = self.folder("enough", ("jpg", jpeg(6000, 4000, True)))
        said = self.held(64 * MIB, "fit", self.pictures, "--data", folder, "--batch", 2, code=3)
        told = float(said.split(" MiB would do")[0].split()[-1])
        self.held(int((told + 1.5) * MIB) // 4096 * 4096, "fit", self.pictures, "--data", folder, "--batch", 2, "--epochs", 2)

    def test_workers_share_what_there_is(self):
        """Of eight pictures that take 13 MiB each two are never decoded at once in 40 MiB, and all come."""
        folder = self.folder("many", *(("jpg", jpeg(2500, 1800, i % 2 == 0)) for i in range(8)))
        for threads in (1, 4):
            for budget in (28 * MIB, 40 * MIB, 96 * MIB):
                with self.subTest(threads=threads, budget=budget):
                    said = self.held(budget, "fit", self.pictures, "--data", folder, "--shuffle", "--batch", 8, "--epochs", 2, "--threads", threads,
                                     "--validation-split", 0.25, "--json")
                    self.assertEqual(json.loads(said)["steps"], 4)

    # --- batches ---
    def rows(self, name, code, size):
        head = b"\x93NUMPY\x01\x00"
        text = f"{{'descr': '{code}', 'fortran_order': False, 'shape': (32, 1000000), }}".encode()
        text += b" " * (-(len(text) + 11) % 64) + b"\n"
        plain, packed = self.path(name + ".npy"), self.path(name + ".npy.gz")
        with open(plain, "wb") as f:
            f.write(head + struct.pack("<H", len(text)) + text)
            f.truncate(f.tell() + 32 * 1_000_000 * size)
        with open(plain, "rb") as f, gzip.open(packed, "wb", 1) as to:
            shutil.copyfileobj(f, to)
        return plain, packed

    def test_wide_rows_fit_where_feeds_do(self):
        plain, packed = self.rows("wide", "<f4", 4)
        y = "normal:32x1@1"
        for x in (plain, packed):
            floor = self.floor(self.wide, "--batch", 8, "--data", x, "--data", y)
            self.assertLess(floor, 26 * MIB)
            for budget in (floor, int(1.03 * floor), int(1.15 * floor), 40 * MIB, 64 * MIB, 128 * MIB):
                for shuffle in ([], ["--shuffle"]) if FULL or budget == 40 * MIB else ([],):
                    with self.subTest(x=x, budget=budget, shuffle=shuffle):
                        args = ["fit", self.wide, "--batch", 8, *shuffle, "--json"]
                        budget = budget // 4096 * 4096
                        one = json.loads(self.held(budget, *args, "--data", x, "--data", y))
                        if not shuffle and budget > 1.01 * floor:  # the floor was told for --data
                            self.assertEqual(one["loss"], json.loads(self.held(budget, *args, "--x", x, "--y", y))["loss"])

    def test_rows_that_are_converted(self):
        plain, _ = self.rows("double", "<f8", 8)
        for budget in (40 * MIB, 100 * MIB):
            self.held(budget, "fit", self.wide, "--batch", 4, "--data", plain, "--data", "normal:32x1@1")

    def each_budget(self, floor, *args):
        for part in (1, 1.03, 1.15, 2):
            with self.subTest(args=args, part=part):
                self.held(int(part * floor) // 4096 * 4096, *args)

    def test_a_step_leaves_room_for_the_pipeline(self):
        """Batches that cannot be fed row by row, beside a step that takes all it is given."""
        path = self.path("rows.tfrecord")
        files.write(path, 16 * record(bytes(4_000_000)))
        data = ["--data", path, "--map", "tf.io.decode_raw:out_type=float32;fixed_length=4000000", "--batch", 8]
        self.each_budget(self.floor(self.wide, *data, train=False), "predict", self.wide, *data, "--out", self.path("p.npy"))
        conv = {"class_name": "Conv2D", "config": {"name": "c", "filters": 16, "kernel_size": [3, 3], "padding": "same", "activation": "relu"}}
        model = files.model(self.path("conv.json"), [96, 96, 3], [conv, {"class_name": "Flatten", "config": {"name": "f"}}, files.dense("d", 2, "softmax")],
                            optimizer="adam", loss="sparse_categorical_crossentropy")
        folder = self.folder("photos", *(("jpg", jpeg(1500, 1000, i % 2 == 0)) for i in range(12)))
        self.each_budget(self.floor(model, "--data", folder, "--batch", 16), "fit", model, "--data", folder, "--batch", 16, "--epochs", 2)

    # --- records ---
    def test_records_larger_than_the_budget(self):
        path = self.path("large.tfrecord")
        head = struct.pack("<Q", 150_000_000)
        with open(path, "wb") as f:
            f.write(head + crc(head))
            f.truncate(12 + 150_000_000 + 4)
        said = self.held(64 * MIB, "data", "bench", path, code=3)
        for text in ("large.tfrecord", "record 0 of 150000000 bytes", "would do"):
            self.assertIn(text, said)
        head = struct.pack("<Q", 1 << 40)
        files.write(path, head + crc(head) + bytes(1000))
        self.assertIn("truncated", self.held(64 * MIB, "data", "bench", path, code=4))

    def test_a_shuffle_takes_what_it_needs(self):
        """Of 24 MB of records."""
        path = self.path("some.tfrecord")
        files.write(path, 384 * record(bytes(65536)))
        args = ["data", "bench", path, "--shuffle", "--buffer", 384, "--map", "tf.io.decode_raw:out_type=float32;fixed_length=65536", "--batch", 8]
        said = self.held(24 * MIB, *args, code=3)
        for text in ("the shuffle holds", "all 384 would take about 24", "folder to spill to", "smaller buffer", "larger budget"):
            self.assertIn(text, said)
        self.held(44 * MIB, *args)
        self.held(24 * MIB, *args, "--spill", self.dir)
        self.held(256 * MIB, *args)

    def test_a_shuffle_and_a_step_share_the_budget(self):
        """24 MB of examples, shuffled as a whole beside a small step; with a folder in much less."""
        def field(n, data):
            size, length = len(data), b""
            while size > 127:
                length += bytes([size & 127 | 128])
                size >>= 7
            return bytes([n << 3 | 2]) + length + bytes([size]) + data

        def feature(name, values):
            return field(1, field(1, name) + field(2, field(2, field(1, values))))
        path = self.path("examples.tfrecord")
        files.write(path, 384 * record(field(1, feature(b"x", bytes(65536)) + feature(b"y", bytes(16)))))
        model = files.model(self.path("small.json"), 16384, [files.dense("d", 4)], optimizer="sgd", loss="mse")
        data = ["--data", path, "--shuffle", "--buffer", 384, "--batch", 8, "--map",
                "tf.io.parse_single_example:features=fixed f32 [16384] - x\nfixed f32 [4] - y"]
        floor = self.floor(model, *data)
        self.assertLess(floor, 40 * MIB)
        self.each_budget(floor, "fit", model, *data, "--epochs", 2)
        said = self.held(32 * MIB, "fit", model, *data, code=3)
        for text in ("the shuffle holds", "all 384 would take about 24", "folder to spill to"):
            self.assertIn(text, said)
        self.held(18 * MIB, "fit", model, *data, "--spill", self.dir)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
