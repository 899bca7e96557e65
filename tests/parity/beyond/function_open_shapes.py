"""Functions with open extents are traced once, not once per extent."""
import tensorflow as tf
from parity import check

count = []


@tf.function(input_signature=[tf.TensorSpec(shape=[None], dtype=tf.float32)])
def fixed(x):
    count.append(1)
    return x * 2.0


for n in (2, 3, 4, 5, 6):
    fixed(tf.ones((n,)))
check("one trace", len(count))


@tf.function(reduce_retracing=True)
def relaxed(x):
    count.append(1)
    return tf.reduce_sum(x)


del count[:]
for n in (2, 3, 4, 5, 6):
    relaxed(tf.ones((n,)))
check("relaxed", len(count) <= 3)
v = tf.Variable([1.0, 2.0], shape=tf.TensorShape([None]))
v.assign([1.0, 2.0, 3.0])
check("a variable's shape may change", v.numpy())
