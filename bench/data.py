#!/usr/bin/env python3
"""Input pipelines against tf.data and PyTorch's DataLoader: the same work, one process after the other, in the same run.

usage: bench/data.py BUILD [ROW ...] [--json: the run goes into speed.json]
                                         SNUG_BENCH_TENSORFLOW, SNUG_BENCH_TORCH: interpreters that have them; else Snug alone

A row prints elements per second (the best of a few passes; `wait`: percent) and the peak of its process. Pictures and records are made once
in a folder of the system's temporary one, by Snug."""
import json
import os
import subprocess
import sys
import tempfile

import speed_md

FOLDER = os.path.join(tempfile.gettempdir(), "snug-bench-data")
N_PICTURES, N_RECORDS = 1_500, 100_000

HEAD = """
import json, os, resource, sys, time
import numpy as np
folder = {folder!r}
def best(passes, epoch):
    found = []
    for _ in range(passes):
        t = time.perf_counter(); n = epoch(); found.append(n / (time.perf_counter() - t))
    print("ROW " + json.dumps([max(found), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""

TF = HEAD + """
import tensorflow as tf
Dataset, AUTOTUNE = tf.data.Dataset, tf.data.AUTOTUNE
def rows(dataset):
    return sum(int((e[0] if isinstance(e, tuple) else e).shape[0]) for e in dataset)
"""

MAKE = TF + """
os.makedirs(folder + "/pictures", exist_ok=True)
y, x = np.mgrid[0:375, 0:500]
noise = np.random.RandomState(0)
for i in range({pictures}):
    waves = np.stack([128 + 60 * np.sin(x / (20 + i % 7) + i), 128 + 60 * np.cos(y / (15 + i % 5)), 128 + 40 * np.sin((x + y) / 30)], -1)
    picture = np.clip(waves + noise.randint(-8, 8, (375, 500, 1)), 0, 255).astype(np.uint8)
    tf.io.write_file(folder + "/pictures/%04d.jpg" % i, tf.io.encode_jpeg(picture, quality=90))
with tf.io.TFRecordWriter(folder + "/examples.tfrecord") as writer:
    for i in range({records}):
        writer.write(tf.train.Example(features=tf.train.Features(feature={{
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, 1, 2, 3])),
            "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))}})).SerializeToString())
"""

ROWS = {
    "pictures": (TF + """
def load(path):
    picture = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(picture, (224, 224)) / 255.0
d = Dataset.list_files(folder + "/pictures/*.jpg").shuffle(1000).map(load, num_parallel_calls=AUTOTUNE).batch(32).prefetch(AUTOTUNE)
best(3, lambda: rows(d))
""", None),
    "slices": (TF + """
x = np.random.rand(100000, 100).astype("float32")
d = Dataset.from_tensor_slices(x).shuffle(10000).batch(64).prefetch(AUTOTUNE)
best(3, lambda: rows(d))
""", HEAD + """
import torch
x = torch.rand(100000, 100)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=64, shuffle=True)
best(2, lambda: sum(len(b) for b, in loader))
"""),
    "generator": (TF + """
item = np.random.rand(64).astype("float32")
def items():
    for _ in range(20000):
        yield item
d = Dataset.from_generator(items, output_signature=tf.TensorSpec((64,), tf.float32)).batch(64)
best(2, lambda: rows(d))
""", HEAD + """
import torch
item = np.random.rand(64).astype("float32")
class Items(torch.utils.data.IterableDataset):
    def __iter__(self):
        return (item for _ in range(20000))
loader = torch.utils.data.DataLoader(Items(), batch_size=64)
best(2, lambda: sum(len(b) for b in loader))
"""),
    "records": (TF + """
features = {"x": tf.io.FixedLenFeature([4], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
def parse(record):
    e = tf.io.parse_single_example(record, features)
    return e["x"], e["y"]
d = tf.data.TFRecordDataset(folder + "/examples.tfrecord").map(parse, num_parallel_calls=AUTOTUNE).batch(64).prefetch(AUTOTUNE)
best(2, lambda: rows(d))
""", None),
    "training": (TF + """
x, y = np.random.rand(4096, 256).astype("float32"), np.random.randint(0, 10, 4096)
d = Dataset.from_tensor_slices((x, y)).shuffle(4096).map(lambda a, b: (a * 2.0 - 1.0, b), num_parallel_calls=AUTOTUNE).batch(64).prefetch(AUTOTUNE)
model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(10)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(d, verbose=0)
best(2, lambda: model.fit(d, verbose=0) and 4096)
""", None),
    "augment": (TF + """
layers = tf.keras.layers
change = tf.keras.Sequential([layers.RandomFlip("horizontal"), layers.RandomRotation(0.1), layers.RandomZoom(0.2), layers.RandomContrast(0.2)])
x = np.random.randint(0, 256, (2048, 160, 160, 3), dtype="uint8")
d = Dataset.from_tensor_slices(x).batch(32).map(lambda a: change(tf.cast(a, tf.float32), training=True), num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
best(2, lambda: sum(int(e.shape[0]) for e in d))
""", None),
    "wait": (TF + """
x, y = np.random.rand(4096, 256).astype("float32"), np.random.randint(0, 10, 4096)
d = Dataset.from_tensor_slices((x, y)).shuffle(4096).map(lambda a, b: (a * 2.0 - 1.0, b), num_parallel_calls=AUTOTUNE).batch(64).prefetch(AUTOTUNE)
model = tf.keras.Sequential([tf.keras.layers.Dense(1024, activation="relu") for _ in range(2)] + [tf.keras.layers.Dense(10)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.train_on_batch(x[:64], y[:64])
wait, begin, it = 0, time.perf_counter(), iter(d)
while True:
    t = time.perf_counter(); batch = next(it, None); wait += time.perf_counter() - t
    if batch is None:
        break
    float(model.train_on_batch(*batch))
print("ROW " + json.dumps([100 * wait / (time.perf_counter() - begin), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
""", None),
}
NAMES = {"pictures": "1,500 JPEGs of 500x375: shuffle, decode, resize 224, scale, batch 32, prefetch",
         "slices": "rows of (100000, 100) f32: shuffle 10,000, batch 64, prefetch", "generator": "generator of 64 floats, batch 64",
         "records": "TFRecords, small Examples parsed, batch 64", "training": "batches of 64 through `fit`",
         "augment": "pictures of 160x160: RandomFlip, RandomRotation, RandomZoom, RandomContrast, batch 32",
         "wait": "part of the time that training steps wait for data"}
# What tf.data gave on two quiet cores, and what is to be reached.
REACH = {"pictures": "1,180-1,490 there; >= 1.3 x, or >= 0.9 x the bare loop", "slices": "304,000 there; >= 10 x", "generator": "9,100-10,000 there; >= 10 x",
         "records": "37,000 there; >= 10 x", "training": "", "augment": "", "wait": "percent of the time that steps wait for data; <= 2"}


def one(interpreter, code, as_tensorflow):
    if interpreter is None or code is None:
        return None
    code = code.replace("{folder!r}", repr(FOLDER))
    if as_tensorflow:
        code = "import snug; snug.install()\n" + code
    done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"})
    rows = [line for line in done.stdout.splitlines() if line.startswith("ROW ")]
    if not rows:
        sys.stderr.write(done.stderr[-2000:])
        return None
    return json.loads(rows[-1][4:])


def bare(build):
    """Pictures a second of libjpeg-turbo and a plain resize, with nothing around them, on two threads (ninja bench_pictures)."""
    program = os.path.join(build, "bench_pictures")
    names = sorted(os.listdir(os.path.join(FOLDER, "pictures")))
    if os.path.exists(program):
        done = subprocess.run([program, "2", *[os.path.join(FOLDER, "pictures", n) for n in names]], capture_output=True, text=True)
        print(f"{'  bare decode and resize, two threads':40}{float(done.stdout):>10,.0f}")


def said(result):
    return f"{result[0]:>12,.{0 if result[0] > 100 else 2}f}   {result[1]:>6,.0f} MiB" if result else f"{'-':>12}   {'':>6}    "


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    json_wanted, kept = speed_md.wanted(sys.argv), []
    if json_wanted and sys.argv[2:]:
        sys.exit("--json keeps whole runs: name no rows")
    snug = os.path.join(sys.argv[1], "venv", "bin", "python")
    peers = [os.environ.get("SNUG_BENCH_TENSORFLOW"), os.environ.get("SNUG_BENCH_TORCH")]
    if not os.path.exists(FOLDER + "/examples.tfrecord"):
        make = MAKE.replace("{pictures}", str(N_PICTURES)).replace("{records}", str(N_RECORDS)).replace("{{", "{").replace("}}", "}")
        one(snug, make, True)
    print(f"{'':12}{'Snug':>26}{'tf.data':>26}{'PyTorch':>26}")
    for name in sys.argv[2:] or ROWS:
        code, torch = ROWS[name]
        results = [one(snug, code, True), one(peers[0], code, False), one(peers[1], torch, False)]
        print(f"{name:12}" + "".join(f"{said(r):>26}" for r in results) + "   " + REACH[name], flush=True)
        kept.append([NAMES.get(name, name), [r and {"percent" if name == "wait" else "per_s": r[0], "mib": round(r[1])} for r in results]])
        if name == "pictures":
            bare(sys.argv[1])
    if json_wanted:
        speed_md.merge("data", ["Snug", "tf.data 2.21", "PyTorch 2.15 DataLoader"], kept, "python3 bench/data.py build")


if __name__ == "__main__":
    main()
