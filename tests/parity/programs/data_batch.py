"""batch, unbatch, rebatch, drop_remainder."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

d = Dataset.range(7).batch(3)
check("batches", list(d))
check("spec", repr(d.element_spec))
check("len", len(d))
d = Dataset.range(7).batch(3, drop_remainder=True)
check("dropped", list(d))
check("dropped spec", repr(d.element_spec))
check("dropped len", len(d))
check("twice", list(Dataset.range(8).batch(2).batch(3)))
check("unbatch", list(Dataset.range(7).batch(3).unbatch()))
check("structure", list(Dataset.from_tensor_slices({"x": np.arange(5), "y": np.ones((5, 2))}).batch(2)))
check("text", list(Dataset.from_tensor_slices(["a", "bb", "ccc"]).batch(2)))
check("rebatch", list(Dataset.range(7).batch(3).rebatch(2)))
check("parallel", list(Dataset.range(5).batch(2, num_parallel_calls=tf.data.AUTOTUNE)))
raises(tf.errors.InvalidArgumentError, lambda: list(Dataset.from_generator(
    lambda: iter([[1], [1, 2]]), output_signature=tf.TensorSpec([None], tf.int32)).batch(2)))
