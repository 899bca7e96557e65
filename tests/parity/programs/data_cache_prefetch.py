"""cache in memory and in files, prefetch, options, apply."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

import os
import tempfile

d = Dataset.range(6)
check("prefetch", list(d.prefetch(2)))
check("autotune", list(d.prefetch(tf.data.AUTOTUNE)))
count = [0]

def counted():
    for i in range(4):
        count[0] += 1
        yield i

c = Dataset.from_generator(counted, tf.int64).cache()
check("cache", [list(c), list(c)])
check("made once", count[0])
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "kept")
    f = d.map(lambda x: x * 2).cache(path)
    check("file", [list(f), list(f)])
    check("text", list(Dataset.from_tensor_slices(["a", "bb"]).cache(os.path.join(folder, "text"))))
check("cache len", len(d.cache()))
options = tf.data.Options()
options.deterministic = True
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
check("options", list(d.with_options(options)))
check("deterministic", d.with_options(options).options().deterministic)
check("apply", list(d.apply(lambda x: x.filter(lambda v: v < 3))))
check("repr", repr(d.prefetch(1)))
raises(TypeError, lambda: d.apply(lambda x: 5))
