"""map_fn, scan, foldl, foldr, vectorized_map, TensorArray."""
import tensorflow as tf
from parity import check

x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
check("map_fn", tf.map_fn(lambda row: row * 2.0 + 1.0, x))
check("map_fn to scalars", tf.map_fn(tf.reduce_sum, x))
check("map_fn two", tf.map_fn(lambda ab: ab[0] * ab[1], (x, x + 1.0), fn_output_signature=tf.float32))
check("map_fn dtype", tf.map_fn(lambda v: tf.cast(v, tf.int32), tf.constant([1.7, 2.2]), fn_output_signature=tf.int32))
check("map_fn structure", tf.map_fn(lambda v: (v, v * v), tf.constant([1.0, 2.0]), fn_output_signature=(tf.float32, tf.float32)))
check("scan", tf.scan(lambda a, v: a + v, tf.constant([1.0, 2.0, 3.0, 4.0])))
check("scan initializer", tf.scan(lambda a, v: a * v, tf.constant([1.0, 2.0, 3.0]), initializer=10.0))
check("scan reverse", tf.scan(lambda a, v: a + v, tf.constant([1.0, 2.0, 3.0]), reverse=True))
check("foldl", tf.foldl(lambda a, v: a * 2 + v, tf.constant([1, 2, 3])))
check("foldr", tf.foldr(lambda a, v: a * 2 + v, tf.constant([1, 2, 3])))
check("vectorized_map", tf.vectorized_map(lambda row: tf.reduce_sum(row ** 2), x))
check("vectorized outer", tf.vectorized_map(lambda row: tf.tensordot(row, row, 0), x))
v = tf.Variable(2.0)
with tf.GradientTape() as tape:
    y = tf.reduce_sum(tf.map_fn(lambda row: row ** 2 * v, x))
check("gradient", tape.gradient(y, v))
ta = tf.TensorArray(tf.float32, size=3)
for i in range(3):
    ta = ta.write(i, x[i] * float(i))
check("stack", ta.stack())
check("read", ta.read(1))
check("size", ta.size())
check("unstack", tf.TensorArray(tf.float32, 3).unstack(x).read(2))
check("concat", tf.TensorArray(tf.float32, 3).unstack(x).concat())


@tf.function
def rnn(inputs, n):
    state = tf.zeros((2,))
    out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for t in tf.range(n):
        state = tf.tanh(state + inputs[t])
        out = out.write(t, state)
    return out.stack()


check("in a loop", rnn(x, tf.constant(3)))
