"""take, skip, repeat, shard, concatenate, enumerate, zip."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

d = Dataset.range(5)
check("take", list(d.take(2)))
check("take all", list(d.take(-1)))
check("take more", list(d.take(9)))
check("skip", list(d.skip(3)))
check("skip all", list(d.skip(-1)))
check("repeat", list(d.repeat(2)))
check("endless", list(d.repeat().take(7)))
check("no times", list(d.repeat(0)))
check("shard", list(d.shard(2, 1)))
check("concatenate", list(d.concatenate(Dataset.range(2))))
check("enumerate", list(d.enumerate(start=5)))
check("zip", list(Dataset.zip((d, Dataset.range(10, 13)))))
check("zip two", list(Dataset.zip(d, Dataset.range(10, 13))))
check("zip dict", list(Dataset.zip({"a": d, "b": (d, d)}).take(2)))
check("lens", [len(d.take(2)), len(d.skip(2)), len(d.repeat(3)), len(d.shard(2, 0)), len(d.concatenate(d)),
               len(Dataset.zip((d, d.take(2))))])
check("cardinalities", [int(d.repeat().cardinality()), int(d.repeat().take(3).cardinality()),
                        int(d.repeat().skip(3).cardinality()), int(d.repeat().batch(2).cardinality())])
check("enumerate spec", repr(d.enumerate().element_spec))
raises(TypeError, lambda: len(d.repeat()))
raises(tf.errors.InvalidArgumentError, lambda: list(d.shard(2, 2)))
raises(TypeError, lambda: d.concatenate(Dataset.from_tensor_slices((np.zeros(2), np.zeros(2)))))
