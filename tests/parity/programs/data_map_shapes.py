"""Unknown extents in map functions: shapes as functions see them."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

def lines():
    yield [1.0]
    yield [1.0, 2.0, 3.0]

d = Dataset.from_generator(lines, output_signature=tf.TensorSpec([None], tf.float32))
seen = []

def look(x):
    seen.append((x.shape.as_list(), x.dtype.name))
    y = tf.stack([x, x])
    seen.append(y.shape.as_list())
    seen.append(tf.reduce_sum(y, axis=1).shape.as_list())
    return y, tf.shape(x)[0], tf.reduce_mean(x)

m = d.map(look)
check("seen", seen)
check("values", list(m))
check("spec", repr(m.element_spec))
check("half", list(d.map(lambda x: x[:(tf.shape(x)[0] + 1) // 2])))
check("reshape", list(d.map(lambda x: tf.reshape(x, [-1, 1]))))
check("pad", list(d.map(lambda x: tf.pad(x, [[0, 4 - tf.shape(x)[0]]]))))
e = d.map(lambda x: tf.pad(x, [[0, 4 - tf.shape(x)[0]]]))
check("ensure", repr(e.map(lambda x: tf.ensure_shape(x, [4])).element_spec))

def set_shape(x):
    x.set_shape([4])
    return x

check("set_shape", repr(e.map(set_shape).element_spec))
check("set_shape values", list(e.map(set_shape).batch(2)))
check("size", list(d.map(tf.size)))
check("range", list(d.map(lambda x: tf.range(tf.size(x)))))
check("zeros_like", list(d.map(tf.zeros_like)))
