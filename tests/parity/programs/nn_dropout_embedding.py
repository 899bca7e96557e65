"""tf.nn.dropout, embedding_lookup, top_k of probabilities, moments over pictures."""
import numpy as np
import tensorflow as tf
from parity import check

x = tf.ones((100, 100))
y = tf.nn.dropout(x, rate=0.25, seed=1).numpy()
check("values", sorted(round(v, 4) for v in set(y.ravel().tolist())))
check("share", abs(float((y > 0).mean()) - 0.75) < 0.02)
check("mean", abs(float(y.mean()) - 1.0) < 0.02)
check("rate 0", tf.nn.dropout(tf.constant([1.0, 2.0]), rate=0.0))
table = tf.Variable(np.arange(12.0).reshape(4, 3), dtype=tf.float32)
with tf.GradientTape() as tape:
    e = tf.nn.embedding_lookup(table, [[1, 3], [1, 0]])
    loss = tf.reduce_sum(e * [1.0, 2.0, 3.0])
check("lookup", e)
check("gradient", tf.convert_to_tensor(tape.gradient(loss, table)))
p = tf.nn.softmax(tf.constant([[1.0, 3.0, 2.0], [0.0, -1.0, 5.0]]))
top = tf.nn.top_k(p, k=2, sorted=True)
check("top values", top.values)
check("top indices", top.indices)
images = tf.reshape(tf.range(2 * 4 * 4 * 3, dtype=tf.float32), (2, 4, 4, 3)) / 10.0
mean, variance = tf.nn.moments(images, axes=[0, 1, 2], keepdims=True)
check("moments", [mean, variance])
check("lrn", tf.nn.local_response_normalization(images[:1, :2, :2]))
