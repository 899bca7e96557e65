"""Dataset.range with its forms."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

check("one", list(Dataset.range(5)))
check("two", list(Dataset.range(2, 5)))
check("three", list(Dataset.range(1, 10, 3)))
check("down", list(Dataset.range(5, 1, -2)))
check("empty", list(Dataset.range(5, 1)))
check("dtype", list(Dataset.range(3, output_type=tf.int32)))
check("float", list(Dataset.range(2, output_type=tf.float32)))
check("spec", repr(Dataset.range(3).element_spec))
check("len", len(Dataset.range(1, 10, 3)))
