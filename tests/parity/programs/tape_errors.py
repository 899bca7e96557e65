"""Tapes that are used in unusual ways: errors, integer sources, exceptions inside, gradients of nothing."""
import tensorflow as tf
from parity import check, raises

x = tf.Variable(2.0)
with tf.GradientTape() as tape:
    y = x * x
    inside = tape.gradient(y, x)
check("inside its context", inside)
with tf.GradientTape() as tape:
    i = tf.constant(3)
    tape.watch(i)
    j = i * i
check("integers", tape.gradient(j, i))
try:
    with tf.GradientTape() as tape:
        y = x ** 3
        raise KeyError("stop")
except KeyError:
    pass
check("after an exception", tape.gradient(y, x))
with tf.GradientTape() as tape:
    y = tf.constant(5.0)
check("constant target", tape.gradient(y, x))
with tf.GradientTape() as tape:
    raises((TypeError, ValueError), lambda: tape.watch("text"))
with tf.GradientTape() as tape:
    y = tf.cast(tf.cast(x, tf.int32), tf.float32)
check("through integers", tape.gradient(y, x))
with tf.GradientTape() as tape:
    y = tf.round(x) + tf.floor(x)
check("steps", tape.gradient(y, x))
with tf.GradientTape() as tape:
    y = tf.reduce_sum(tf.where([True, False], x * 2.0, x * 3.0))
check("where", tape.gradient(y, x))
with tf.GradientTape() as tape:
    y = x
    for _ in range(5):
        y = y * x
check("repeated", tape.gradient(y, x))
with tf.GradientTape() as a, tf.GradientTape() as b:
    y = x ** 2
    z = x ** 3
check("two tapes", [a.gradient(y, x), b.gradient(z, x)])
with tf.GradientTape(persistent=True) as tape:
    y = tf.stack([x, x * 2.0, x ** 2])
check("each output", [tape.gradient(y[k], x) for k in range(3)])
with tape:
    z = y * 2.0
check("entered again", tape.gradient(z, x))
with tf.GradientTape() as tape:
    y = tf.argmax([x, x + 1.0])
check("argmax", tape.gradient(y, x))
w = tf.Variable([1.0, 2.0], trainable=False)
with tf.GradientTape() as tape:
    tape.watch(w)
    y = w * 2.0
check("watched variable", tape.gradient(y, w))
with tf.GradientTape() as tape:
    y = tf.sqrt(tf.maximum(x - 2.0, 0.0))
check("infinite", tape.gradient(y, x))
check("nan rule", tf.math.is_nan(tf.constant(0.0) / 0.0))
