"""jacobian and batch_jacobian."""
import tensorflow as tf
from parity import check

x = tf.constant([1.0, 2.0, 3.0])
with tf.GradientTape() as tape:
    tape.watch(x)
    y = x ** 2 * tf.reduce_sum(x)
check("jacobian", tape.jacobian(y, x))

w = tf.Variable([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
v = tf.constant([[1.0, -2.0]])
with tf.GradientTape() as tape:
    out = tf.tanh(v @ w)
j = tape.jacobian(out, w)
check("shape", j.shape)
check("values", j)

m = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
with tf.GradientTape() as tape:
    tape.watch(m)
    out = tf.sin(m) * tf.reduce_sum(m, axis=1, keepdims=True)
check("batch_jacobian", tape.batch_jacobian(out, m), tol=5e-5)

with tf.GradientTape() as outer:
    outer.watch(x)
    with tf.GradientTape() as inner:
        inner.watch(x)
        f = tf.reduce_sum(x ** 3) + x[0] * x[1]
    g = inner.gradient(f, x)
check("hessian", outer.jacobian(g, x))
