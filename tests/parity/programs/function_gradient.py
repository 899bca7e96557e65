"""A tape inside a tf.function, a tape around it, and training with it."""
import numpy as np
import tensorflow as tf
from parity import check

w = tf.Variable([[0.5], [-1.0]])
x = tf.constant([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]])
y = tf.constant([[1.0], [0.0], [2.0]])


@tf.function
def loss_fn():
    return tf.reduce_mean(tf.square(x @ w - y))


with tf.GradientTape() as tape:
    loss = loss_fn()
check("around", tape.gradient(loss, w))


@tf.function
def inside(data):
    with tf.GradientTape() as t:
        value = tf.reduce_sum(tf.sin(data @ w))
    return value, t.gradient(value, w)


check("inside", inside(x))


@tf.function
def second(a):
    with tf.GradientTape() as t2:
        t2.watch(a)
        with tf.GradientTape() as t1:
            t1.watch(a)
            b = a ** 3
        d = t1.gradient(b, a)
    return t2.gradient(d, a)


check("second order", second(tf.constant([1.0, 2.0])))
opt = tf.keras.optimizers.SGD(0.05)


@tf.function
def train():
    with tf.GradientTape() as t:
        value = loss_fn()
    opt.apply_gradients([(t.gradient(value, w), w)])
    return value


check("losses", [float(train()) for _ in range(6)])
check("weights", w)
check("tf.gradients", tf.function(lambda a: tf.gradients(a ** 2, a)[0])(tf.constant(3.0)))
