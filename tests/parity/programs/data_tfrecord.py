"""TFRecord files of Examples: written, read, parsed."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

import os
import tempfile

def example(i):
    return tf.train.Example(features=tf.train.Features(feature={
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, i + 0.5])),
        "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[i - 2])),
        "s": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"item %d" % i])),
        "v": tf.train.Feature(int64_list=tf.train.Int64List(value=list(range(i))))}))

features = {"x": tf.io.FixedLenFeature([2], tf.float32), "n": tf.io.FixedLenFeature([], tf.int64),
            "s": tf.io.FixedLenFeature([], tf.string), "v": tf.io.VarLenFeature(tf.int64),
            "d": tf.io.FixedLenFeature([], tf.float32, default_value=7.5)}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(4):
            writer.write(example(i).SerializeToString())
    raw = tf.data.TFRecordDataset(path)
    check("count", len(list(raw)))
    check("spec", repr(raw.element_spec))
    check("round trip", tf.train.Example.FromString(next(iter(raw)).numpy()).features.feature["s"].bytes_list.value[0])

    def parse(record):
        e = tf.io.parse_single_example(record, features)
        return {"x": e["x"], "n": e["n"], "s": e["s"], "d": e["d"], "v": tf.sparse.to_dense(e["v"])}

    parsed = raw.map(parse)
    check("parsed", list(parsed))
    check("parsed spec", repr(parsed.map(lambda e: (e["x"], e["n"], e["s"])).element_spec))
    check("batched", list(parsed.map(lambda e: (e["x"], e["n"])).batch(3)))
    fixed = {k: v for k, v in features.items() if k != "v"}
    check("batch of records", list(raw.batch(4).map(lambda r: tf.io.parse_example(r, fixed))))
    check("eager", tf.io.parse_single_example(next(iter(raw)), fixed))
    packed = os.path.join(folder, "b.gz")
    with tf.io.TFRecordWriter(packed, options=tf.io.TFRecordOptions(compression_type="GZIP")) as writer:
        writer.write(b"packed")
    check("gzip", list(tf.data.TFRecordDataset([packed], compression_type="GZIP")))
    check("two files", len(list(tf.data.TFRecordDataset([path, path]))))
    with open(path, "r+b") as f:
        f.seek(20)
        f.write(b"\xff")
    raises(tf.errors.DataLossError, lambda: list(tf.data.TFRecordDataset(path)))
    raises(tf.errors.NotFoundError, lambda: list(tf.data.TFRecordDataset(os.path.join(folder, "none"))))
    missing = {"q": tf.io.FixedLenFeature([], tf.int64)}
    raises(tf.errors.InvalidArgumentError, lambda: tf.io.parse_single_example(example(1).SerializeToString(), missing))
