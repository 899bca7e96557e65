"""group_by_window, bucket_by_sequence_length, unique, ignore_errors, assert_cardinality."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

d = Dataset.range(10)
check("groups", list(d.group_by_window(lambda x: x % 2, lambda k, w: w.batch(3), window_size=3)))

def lines():
    for n in (1, 4, 2, 5, 3, 1):
        yield list(range(n))

v = Dataset.from_generator(lines, output_signature=tf.TensorSpec([None], tf.int32))
check("buckets", list(v.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 5], [2, 2, 2])))
check("unique", list(Dataset.from_tensor_slices([1, 2, 1, 3, 2]).unique()))
bad = Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(lambda x: tf.debugging.check_numerics(1.0 / x, "no"))
check("ignored", list(bad.ignore_errors()))
check("applied", list(bad.apply(tf.data.experimental.ignore_errors())))
check("asserted", len(d.filter(lambda x: x < 3).apply(tf.data.experimental.assert_cardinality(3))))
raises(tf.errors.FailedPreconditionError, lambda: list(d.apply(tf.data.experimental.assert_cardinality(3))))
raises(tf.errors.InvalidArgumentError, lambda: list(bad))
