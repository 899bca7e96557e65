"""padded_batch: shapes, values, several parts."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

def lines():
    yield [1]
    yield [1, 2, 3]
    yield [4, 5]

d = Dataset.from_generator(lines, output_signature=tf.TensorSpec([None], tf.int32))
check("plain", list(d.padded_batch(2)))
check("spec", repr(d.padded_batch(2).element_spec))
check("fixed", list(d.padded_batch(3, padded_shapes=[4])))
check("value", list(d.padded_batch(3, padding_values=-1)))
check("dropped", list(d.padded_batch(2, drop_remainder=True)))
two = d.map(lambda x: {"a": x, "n": tf.size(x)})
check("dict", list(two.padded_batch(3, padded_shapes={"a": [None], "n": []})))
check("dict values", list(two.padded_batch(3, padded_shapes={"a": [5], "n": []}, padding_values={"a": 9, "n": 0})))
pairs = Dataset.zip((d, d.map(lambda x: tf.cast(x, tf.float32))))
check("pairs", list(pairs.padded_batch(3, padding_values=(7, 0.5))))
texts = Dataset.from_generator(lambda: iter([["a"], ["b", "c"]]), output_signature=tf.TensorSpec([None], tf.string))
check("texts", list(texts.padded_batch(2)))
check("texts value", list(texts.padded_batch(2, padding_values="-")))
raises((tf.errors.DataLossError, tf.errors.InvalidArgumentError), lambda: list(d.padded_batch(3, padded_shapes=[2])))

# --- ragged batches -----------------------------------------------------------------------------------------------
rows = tf.data.Dataset.range(1, 6).map(lambda n: tf.range(n))
check("ragged", [b.to_list() for b in rows.ragged_batch(2)])
check("ragged, whole batches", [b.to_list() for b in rows.ragged_batch(2, drop_remainder=True).prefetch(1)])
pairs = tf.data.Dataset.from_generator(lambda: iter([([1, 2], 7), ([3], 8), ([4, 5, 6], 9)]), output_signature=(
    tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32)))
check("ragged beside dense", [[type(a).__name__, a.to_list(), b.numpy()] for a, b in pairs.ragged_batch(2)])
check("mapped to dense", [[a, b] for a, b in pairs.ragged_batch(2).map(lambda a, b: (a.to_tensor(), b)).prefetch(2)])
check("mapped", [a.to_list() for a in pairs.ragged_batch(2).map(lambda a, b: a * 2).take(1)])
