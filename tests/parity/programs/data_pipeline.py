"""Long pipelines as guides write them."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

x = np.arange(64, dtype=np.float32).reshape(16, 4)
y = np.arange(16) % 3
train = (Dataset.from_tensor_slices((x, y)).cache().shuffle(16, seed=2).map(
    lambda a, b: (a / 64.0, tf.one_hot(b, 3)), num_parallel_calls=tf.data.AUTOTUNE).batch(5).prefetch(tf.data.AUTOTUNE))
check("spec", repr(train.element_spec))
check("len", len(train))
check("sizes", [a.shape[0] for a, _ in train])
check("sum", float(sum(tf.reduce_sum(a) for a, _ in train)), 1e-4)
check("labels", [int(v) for v in sum(tf.reduce_sum(b, 0) for _, b in train)])
evens = (Dataset.range(100).filter(lambda i: i % 2 == 0).map(lambda i: i * i).batch(7).map(
    lambda b: tf.reduce_sum(b)).take(4))
check("sums", list(evens))
check("nested", list(Dataset.range(3).flat_map(lambda i: Dataset.range(3).map(lambda j: i * 10 + j).filter(
    lambda v: v % 2 == 0)).batch(2)))
check("tokens", list(Dataset.from_tensor_slices(["a b", "c d"]).map(lambda s: tf.strings.split(s)).unbatch()))
n = Dataset.range(6)
check("windowed", list(n.batch(4, drop_remainder=True).map(lambda b: (b[:-1], b[1:]))))
check("repeat order", [int(v) for v in n.repeat(2).batch(4).unbatch()])
check("epochs", [[int(v) for v in n.take(2)] for _ in range(2)])
