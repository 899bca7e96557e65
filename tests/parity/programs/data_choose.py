"""choose_from_datasets, sample_from_datasets."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

a, b = Dataset.from_tensors("a").repeat(), Dataset.from_tensors("b").repeat()
choice = Dataset.from_tensor_slices(np.array([0, 1, 1, 0, 1], np.int64))
check("choose", list(Dataset.choose_from_datasets([a, b], choice)))
short = Dataset.from_tensor_slices(["x", "y"])
check("stop", list(Dataset.choose_from_datasets([short, b], Dataset.range(2).repeat(4))))
check("go on", list(Dataset.choose_from_datasets([short, short], Dataset.range(2).repeat(2), stop_on_empty_dataset=False)))
s = [x.numpy() for x in Dataset.sample_from_datasets([a, b], [0.0, 1.0], seed=1).take(6)]
check("sure", [v.decode() for v in s])
both = [int(x) for x in Dataset.sample_from_datasets([Dataset.range(3), Dataset.range(10, 14)], seed=5)]
check("all", sorted(both))
check("order", [x for x in both if x < 10] == [0, 1, 2])
