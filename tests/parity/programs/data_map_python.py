"""What cannot be repeated without Python: branches, py_function, numpy_function."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

d = Dataset.range(6)

def branch(x):
    if x % 2 == 0:
        return x * 10
    else:
        return x

check("branch", list(d.map(branch)))
check("cond", list(d.map(lambda x: tf.cond(x > 2, lambda: x * 100, lambda: x))))
check("where", list(d.map(lambda x: tf.where(x > 2, x * 100, x))))
check("numpy_function", list(d.map(lambda x: tf.numpy_function(lambda v: v * 2, [x], tf.int64))))
check("py_function", list(d.map(lambda x: tf.py_function(lambda v: v + 1, [x], tf.int64))))
check("two", list(d.take(2).map(lambda x: tf.numpy_function(
    lambda v: (v.astype(np.float32), np.int64(7)), [x], [tf.float32, tf.int64]))))

def typed(x):
    y = tf.numpy_function(lambda v: np.full(3, v, np.float32), [x], tf.float32)
    y.set_shape([3])
    return y

check("shaped", list(d.take(3).map(typed).batch(3)))
check("shaped spec", repr(d.map(typed).element_spec))
count = [0]

def once(x):
    count[0] += 1
    return x + 1

list(d.map(once))
check("called once", count[0])
raises(tf.errors.InvalidArgumentError, lambda: list(d.map(lambda x: tf.py_function(
    lambda v: int("no"), [x], tf.int64))))
