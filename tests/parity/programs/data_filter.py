"""filter and take_while."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

d = Dataset.range(10)
check("even", list(d.filter(lambda x: x % 2 == 0)))
check("none", list(d.filter(lambda x: x > 100)))
check("spec", repr(d.filter(lambda x: x > 3).element_spec))
check("cardinality", d.filter(lambda x: x > 3).cardinality())
pairs = Dataset.from_tensor_slices((np.arange(6.0), ["a", "b", "a", "c", "a", "b"]))
check("two", list(pairs.filter(lambda x, s: x > 2)))
check("text", list(pairs.filter(lambda x, s: s == "a")))
check("reduced", list(Dataset.from_tensor_slices(np.eye(3)).filter(lambda r: tf.reduce_any(r[:2] > 0))))
check("take_while", list(d.take_while(lambda x: x < 4)))
raises(TypeError, lambda: len(d.filter(lambda x: x > 3)))
