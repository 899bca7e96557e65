"""Derivatives along directions: tf.autodiff.ForwardAccumulator."""
import numpy as np
import tensorflow as tf
from parity import check

x, v = tf.constant([[2.0, 3.0], [1.0, 4.0]]), tf.constant([[1.0, 0.0], [0.5, -1.0]])
with tf.autodiff.ForwardAccumulator(primals=x, tangents=v) as acc:
    y = tf.reduce_sum(x ** 3, axis=1)
    z = tf.sin(x) @ x
check("cubes", acc.jvp(y), 1e-4)
check("products", acc.jvp(z), 1e-4)
check("not connected", acc.jvp(tf.constant(1.0)))
check("as zeros", acc.jvp(tf.constant(1.0), unconnected_gradients=tf.UnconnectedGradients.ZERO))

dense = tf.keras.layers.Dense(1)
dense.build([None, 2])
dense.set_weights([np.array([[0.5], [-1.0]]), np.array([0.1])])
with tf.autodiff.ForwardAccumulator(primals=dense.kernel.value, tangents=tf.constant([[1.0], [0.0]])) as acc:
    loss = tf.reduce_sum((tf.matmul(x, dense.kernel.value) - tf.constant([1.0, -1.0])) ** 2)
check("has a tangent or none", acc.jvp(loss) is None or float(acc.jvp(loss)) > -1e9)

w = tf.Variable([1.0, 2.0])
with tf.autodiff.ForwardAccumulator(w, tf.constant([1.0, 0.0])) as acc:
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(w ** 3) + w[0] * w[1]
    g = tape.gradient(y, w)
check("Hessian times a direction", acc.jvp(g), 1e-4)
