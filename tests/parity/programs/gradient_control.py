"""stop_gradient, custom_gradient, recompute_grad, gradients of a selection of functions."""
import tensorflow as tf
from parity import check, raises

x = tf.Variable([0.5, -1.0, 2.0])
with tf.GradientTape() as tape:
    y = tf.reduce_sum(tf.stop_gradient(x * x) * x)
check("stop_gradient", tape.gradient(y, x))


@tf.custom_gradient
def log1pexp(v):
    e = tf.exp(v)

    def grad(upstream):
        return upstream * (1 - 1 / (1 + e))
    return tf.math.log(1 + e), grad


big = tf.constant(100.0)
with tf.GradientTape() as tape:
    tape.watch(big)
    y = log1pexp(big)
check("custom_gradient", tape.gradient(y, big))


@tf.custom_gradient
def clip_gradient(v):
    return tf.identity(v), lambda dy: tf.clip_by_value(dy, -1.0, 1.0)


@tf.custom_gradient
def scaled(a, b):
    def grad(dy):
        return 10.0 * dy, 100.0 * dy
    return a * b, grad


with tf.GradientTape() as tape:
    y = tf.reduce_sum(clip_gradient(x) ** 3)
check("clipped", tape.gradient(y, x))
with tf.GradientTape() as tape:
    y = tf.reduce_sum(scaled(x, x + 1.0))
check("two arguments", tape.gradient(y, x))

w = tf.Variable([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]])


@tf.recompute_grad
def block(v):
    return tf.tanh(tf.tanh(v[tf.newaxis] @ w) * 2.0)


with tf.GradientTape() as tape:
    y = tf.reduce_sum(block(x))
check("recompute_grad", tape.gradient(y, [x, w]))


@tf.custom_gradient
def without_variables(t):
    return t * tf.reduce_sum(w), lambda dy: dy


with tf.GradientTape():
    raises(TypeError, lambda: without_variables(x))
