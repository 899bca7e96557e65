"""window: shift, stride, remainders, structures."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

def lists(w):
    return [[int(x) for x in part] for part in w]

d = Dataset.range(7)
check("plain", lists(d.window(3)))
check("dropped", lists(d.window(3, drop_remainder=True)))
check("shift", lists(d.window(3, shift=1, drop_remainder=True)))
check("stride", lists(d.window(3, stride=2)))
check("both", lists(d.window(2, shift=2, stride=2, drop_remainder=True)))
check("gaps", lists(d.window(2, shift=3)))
check("flat", list(d.window(3, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(3))))
pairs = Dataset.from_tensor_slices((np.arange(4), np.arange(4) * 10))
check("pairs", list(pairs.window(2).flat_map(lambda a, b: Dataset.zip((a.batch(2), b.batch(2))))))
check("supervised", list(d.window(4, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(4)).map(
    lambda w: (w[:-1], w[-1]))))
check("mapped", list(d.window(3).map(lambda w: w.reduce(np.int64(0), lambda a, b: a + b))))
raises(tf.errors.InvalidArgumentError, lambda: list(d.window(0)))
