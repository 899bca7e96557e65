"""Indexing in map functions."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

x = np.arange(24).reshape(2, 3, 4)
d = Dataset.from_tensor_slices(x)
check("row", list(d.map(lambda r: r[0])))
check("last", list(d.map(lambda r: r[-1])))
check("element", list(d.map(lambda r: r[1, 2])))
check("slice", list(d.map(lambda r: r[1:, :2])))
check("step", list(d.map(lambda r: r[::2, ::-1])))
check("ellipsis", list(d.map(lambda r: r[..., 0])))
check("newaxis", list(d.map(lambda r: r[:, tf.newaxis, 1])))
check("spec", repr(d.map(lambda r: (r[0], r[1:, :2], r[..., 0])).element_spec))
i = Dataset.range(3)
check("by tensor", list(i.map(lambda k: tf.constant([5, 6, 7])[k])))
v = Dataset.from_generator(lambda: iter([[1, 2], [3, 4, 5]]), output_signature=tf.TensorSpec([None], tf.int32))
check("last of any", list(v.map(lambda r: r[-1])))
check("all but last", list(v.map(lambda r: r[:-1])))
check("mask", list(v.map(lambda r: tf.boolean_mask(r, r > 2))))
check("unstack", list(d.map(lambda r: tf.unstack(r[0]))))
check("iterate", list(d.map(lambda r: [c * 2 for c in tf.unstack(r)])))
