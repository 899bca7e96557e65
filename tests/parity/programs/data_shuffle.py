"""shuffle: all elements, another order, seeds, windows of the buffer."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

d = Dataset.range(50)
s = d.shuffle(50, seed=3)
first, second = [int(x) for x in s], [int(x) for x in s]
check("all", sorted(first))
check("moved", first != list(range(50)))
check("anew", first != second)
same = d.shuffle(50, seed=3, reshuffle_each_iteration=False)
check("fixed", [int(x) for x in same] == [int(x) for x in same])
small = [int(x) for x in d.shuffle(5, seed=1)]
check("near", all(v <= i + 5 for i, v in enumerate(small)))
check("small all", sorted(small))
check("one", [int(x) for x in d.shuffle(1)])
check("len", len(s))
twice = [int(x) for x in d.shuffle(50, seed=2).repeat(2)]
check("repeat", [sorted(twice[:50]) == list(range(50)), twice[:50] != twice[50:]])
check("batched", sorted(int(v) for b in d.shuffle(20).batch(7) for v in b))
check("spec", repr(s.element_spec))
