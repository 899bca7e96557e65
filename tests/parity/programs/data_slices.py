"""Slices and whole values: arrays, lists, dicts, tuples, texts; specs and lengths."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

d = Dataset.from_tensor_slices([[1, 2], [3, 4], [5, 6]])
check("rows", list(d))
check("spec", repr(d.element_spec))
check("len", len(d))
check("cardinality", d.cardinality())
d = Dataset.from_tensor_slices({"a": np.arange(3.0), "b": (np.arange(3), [[1], [2], [3]])})
check("dict", list(d))
check("dict spec", repr(d.element_spec))
d = Dataset.from_tensor_slices((np.zeros((2, 3), np.float32), ["x", "y"]))
check("text", list(d))
check("text spec", repr(d.element_spec))
d = Dataset.from_tensors(([1, 2, 3], "all"))
check("one", list(d))
check("len one", len(d))
check("numpy", list(Dataset.from_tensor_slices([1.5, 2.5]).as_numpy_iterator()))
check("repr", repr(Dataset.from_tensor_slices([1])))
raises(ValueError, lambda: Dataset.from_tensor_slices((np.zeros(3), np.zeros(2))))
raises(ValueError, lambda: Dataset.from_tensor_slices(5))
