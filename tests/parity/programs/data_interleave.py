"""flat_map and interleave."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

d = Dataset.range(1, 4)
check("flat_map", list(d.flat_map(lambda x: Dataset.range(x))))
check("flat_map slices", list(Dataset.from_tensor_slices(np.arange(6).reshape(3, 2)).flat_map(Dataset.from_tensor_slices)))
check("flat_map spec", repr(d.flat_map(lambda x: Dataset.from_tensors(x).repeat(2)).element_spec))
check("interleave", list(d.interleave(lambda x: Dataset.from_tensors(x).repeat(4), cycle_length=2, block_length=2)))
check("cycle 3", list(d.interleave(lambda x: Dataset.from_tensors(x).repeat(int(3)), cycle_length=3)))
check("uneven", list(d.interleave(lambda x: Dataset.range(x), cycle_length=2, block_length=1)))
check("cycle 1", list(d.interleave(lambda x: Dataset.from_tensors(x).repeat(2), cycle_length=1)))
check("parallel", list(d.interleave(lambda x: Dataset.from_tensors(x).repeat(2), cycle_length=2, num_parallel_calls=2,
                                    deterministic=True)))
check("mapped", list(d.flat_map(lambda x: Dataset.range(x).map(lambda y: y * x))))
check("pairs", list(d.flat_map(lambda x: Dataset.zip((Dataset.range(x), Dataset.from_tensors(x).repeat(x))))))
