"""Kinds of features of Examples, one by one and in batches."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

def text(**lists):
    kinds = {float: lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v)),
             int: lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v)),
             bytes: lambda v: tf.train.Feature(bytes_list=tf.train.BytesList(value=v))}
    return tf.train.Example(features=tf.train.Features(feature={
        k: kinds[type(v[0])](v) for k, v in lists.items()})).SerializeToString()

one = text(m=[1.0, 2.0, 3.0, 4.0], i=[-1, 2], t=[b"a", b"bc"], big=[2 ** 62])
check("matrix", tf.io.parse_single_example(one, {"m": tf.io.FixedLenFeature([2, 2], tf.float32)}))
check("ints", tf.io.parse_single_example(one, {"i": tf.io.FixedLenFeature([2], tf.int64), "big": tf.io.FixedLenFeature([], tf.int64)}))
check("texts", tf.io.parse_single_example(one, {"t": tf.io.FixedLenFeature([2], tf.string)}))
check("sequence", tf.io.parse_single_example(one, {"m": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True)}))
check("sequence missing", tf.io.parse_single_example(one, {"z": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True)}))
check("default", tf.io.parse_single_example(one, {"z": tf.io.FixedLenFeature([2], tf.int64, default_value=[8, 9]),
                                                  "w": tf.io.FixedLenFeature([], tf.string, default_value="none")}))
sparse = tf.io.parse_single_example(one, {"t": tf.io.VarLenFeature(tf.string)})["t"]
check("sparse", [sparse.indices, sparse.values, sparse.dense_shape])
check("dense", tf.sparse.to_dense(sparse))
empty = tf.io.parse_single_example(one, {"z": tf.io.VarLenFeature(tf.float32)})["z"]
check("empty", [empty.indices, empty.values, empty.dense_shape])
two = [text(i=[1, 2], m=[1.0]), text(i=[3, 4], m=[2.0, 3.0])]
batch = tf.io.parse_example(tf.constant(two), {"i": tf.io.FixedLenFeature([2], tf.int64), "m": tf.io.VarLenFeature(tf.float32)})
check("batch", batch["i"])
check("batch sparse", [batch["m"].indices, batch["m"].values, batch["m"].dense_shape])
check("batch dense", tf.sparse.to_dense(batch["m"]))
raises(tf.errors.InvalidArgumentError, lambda: tf.io.parse_single_example(one, {"i": tf.io.FixedLenFeature([3], tf.int64)}))
raises(tf.errors.InvalidArgumentError, lambda: tf.io.parse_single_example(one, {"i": tf.io.FixedLenFeature([2], tf.float32)}))
