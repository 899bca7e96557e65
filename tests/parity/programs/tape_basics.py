"""GradientTape: variables are watched, constants are not until asked, one use, lists and dicts of sources."""
import tensorflow as tf
from parity import check, raises

x = tf.Variable(3.0)
with tf.GradientTape() as tape:
    y = x ** 2 + 2.0 * x
check("dy/dx", tape.gradient(y, x))
raises(RuntimeError, lambda: tape.gradient(y, x))

w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
b = tf.Variable([0.5, -0.5])
v = tf.constant([[1.0, -1.0]])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.square(v @ w + b))
dw, db = tape.gradient(loss, [w, b])
check("dw", dw)
check("db", db)

with tf.GradientTape() as tape:
    tape.watch(v)
    loss = tf.reduce_sum(tf.square(v @ w + b))
check("watched constant", tape.gradient(loss, v))

with tf.GradientTape() as tape:
    loss = tf.reduce_sum(v * 2.0)
check("not watched", tape.gradient(loss, v))

with tf.GradientTape() as tape:
    loss = tf.reduce_sum(v @ w + b)
check("dict", tape.gradient(loss, {"w": w, "b": b}))

with tf.GradientTape() as tape:
    y = x * 2.0
check("unconnected", tape.gradient(y, w))
with tf.GradientTape() as tape:
    y = x * 2.0
check("zero", tape.gradient(y, w, unconnected_gradients=tf.UnconnectedGradients.ZERO))
with tf.GradientTape() as tape:
    y = x * tf.constant([1.0, 2.0, 3.0])
check("output_gradients", tape.gradient(y, x, output_gradients=tf.constant([1.0, 10.0, 100.0])))
with tf.GradientTape() as tape:
    ys = [x * 2.0, x ** 3]
check("sum of targets", tape.gradient(ys, x))
check("watched_variables", [u.shape for u in tape.watched_variables()])
frozen = tf.Variable(2.0, trainable=False)
with tf.GradientTape() as tape:
    y = frozen * x
check("not trainable", tape.gradient(y, [frozen, x]))
