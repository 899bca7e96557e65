"""read_file, write_file, decode_raw, tensors as texts."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "deep", "a.bin")
    tf.io.write_file(path, b"\x01\x02\x03\x04\x05\x06\x07\x08")
    data = tf.io.read_file(path)
    check("length", len(data.numpy()))
    check("u8", tf.io.decode_raw(data, tf.uint8))
    check("i32", tf.io.decode_raw(data, tf.int32))
    check("i64", tf.io.decode_raw(data, tf.int64))
    check("big", tf.io.decode_raw(data, tf.int32, little_endian=False))
    check("several", tf.io.decode_raw([b"ab", b"cd"], tf.uint8))
    tf.io.write_file(os.path.join(folder, "t"), tf.constant("text"))
    check("text", tf.io.read_file(os.path.join(folder, "t")))
    paths = Dataset.from_tensor_slices([path, os.path.join(folder, "t")])
    check("in map", list(paths.map(lambda p: tf.strings.length(tf.io.read_file(p)))))
    raises(tf.errors.NotFoundError, lambda: tf.io.read_file(os.path.join(folder, "none")))
for value in (tf.constant([[1.5, 2.0], [3.0, -4.0]]), tf.constant(7, tf.int64), tf.constant([True, False]),
              tf.constant([1, 2, 3], tf.uint8)):
    text = tf.io.serialize_tensor(value)
    check("round trip", tf.io.parse_tensor(text, value.dtype))
check("text tensor", tf.io.parse_tensor(tf.io.serialize_tensor(tf.constant(["a", "bcd"])), tf.string))
d = Dataset.range(3).map(lambda i: tf.io.serialize_tensor(tf.stack([i, i * i])))
check("map", list(d.map(lambda t: tf.io.parse_tensor(t, tf.int64))))
