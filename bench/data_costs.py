#!/usr/bin/env python3
"""The table "If you did this in TensorFlow" of docs/data.md: one row per line, TensorFlow and Snug one process after the other.
usage: data_costs.py SNUG_PYTHON TENSORFLOW_PYTHON [ROW...] [--json: the run goes into speed.json]   (or ROW alone, within either: prints its number)"""
import os
import subprocess
import sys
import tempfile
import time

TEXTS = {"slices": "`from_tensor_slices(x)`, x of 256 MiB, one pass", "shuffled_rows": "`.shuffle(100_000)` of such rows, of 1 KiB",
         "shuffled_records": "`.shuffle(100_000)` of records of 1 KiB (behind a map), the first after", "cache": "`.cache()` of 256 MiB",
         "generator": "`from_generator`, an element", "map": "`.map(f)`, one product and one sum", "py_function": "`tf.py_function`, a product",
         "checkpoint": "an iterator's checkpoint, `shuffle(10_000)` of records of 1 KiB"}

def megabytes(word):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(word))


def more_memory(run):
    """The peak while it runs, beyond what was held before, in MiB."""
    before = megabytes("VmRSS")
    run()
    return f"{megabytes('VmHWM') - before:.1f} MiB"


def microseconds(n, run):
    start = time.time()
    run()
    return f"{(time.time() - start) / n * 1e6:.1f} us"


def rows(tf, np):
    """{row: function that gives its number}; for the names alone both may be None."""
    data = tf and tf.data.Dataset

    def records(n):
        return data.range(n).map(lambda i: tf.fill([256], tf.cast(i, tf.float32)))

    def first(d):
        return lambda: next(iter(d))

    def all_of(d):
        return lambda: sum(1 for _ in d)

    def slices():
        x = np.ones((256, 1024, 256), np.float32)
        return more_memory(all_of(data.from_tensor_slices(x).batch(8)))

    def shuffled_rows():
        x = np.ones((100000, 256), np.float32)
        return more_memory(first(data.from_tensor_slices(x).shuffle(100000)))

    def shuffled_records():
        next(iter(records(2)))
        start = time.time()
        return more_memory(first(records(100000).shuffle(100000))) + f", {time.time() - start:.1f} s"

    def generator():
        d = data.from_generator(lambda: iter(range(20000)), output_signature=tf.TensorSpec([], tf.int32))
        return microseconds(20000, all_of(d.batch(100)))

    def checkpoint():
        it = iter(records(100000).shuffle(10000))
        next(it)
        with tempfile.TemporaryDirectory() as folder:
            tf.train.Checkpoint(it=it).save(os.path.join(folder, "c"))
            return f"{sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))} bytes"
    return {
        "slices": slices, "shuffled_rows": shuffled_rows, "shuffled_records": shuffled_records,
        "cache": lambda: more_memory(all_of(data.range(256).map(lambda i: tf.fill([1024, 256], tf.cast(i, tf.float32))).cache())),
        "generator": generator,
        "map": lambda: microseconds(100000, all_of(data.range(100000).map(lambda x: tf.cast(x, tf.float32) * 2.0 + 1.0).batch(100))),
        "py_function": lambda: microseconds(3000, all_of(data.range(3000).map(
            lambda x: tf.py_function(lambda v: v * 2, [x], tf.int64)))),
        "checkpoint": checkpoint,
    }


def main():
    if len(sys.argv) == 2:
        import numpy as np
        import tensorflow as tf
        print(rows(tf, np)[sys.argv[1]]())
        return
    import speed_md
    json_wanted, kept = speed_md.wanted(sys.argv), []
    snug, tensorflow, *names = sys.argv[1:]
    if json_wanted and names:
        sys.exit("--json keeps whole runs: name no rows")
    for name in names or rows(None, None):
        told = []
        for command in ([tensorflow, __file__, name], [snug, "-m", "snug", __file__, name]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            told.append(done.stdout.strip().splitlines()[-1] if done.returncode == 0 else "failed")
        print(f"{name:18} {told[0]:24} {told[1]}", flush=True)
        kept.append([TEXTS[name], told])
    if json_wanted:
        speed_md.merge("data_costs", ["TensorFlow 2.21", "Snug"], kept, "python3 bench/data_costs.py build/venv/bin/python TENSORFLOW_PYTHON")


main()
