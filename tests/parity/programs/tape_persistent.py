"""A persistent tape gives several gradients; stop_recording and reset."""
import tensorflow as tf
from parity import check

x = tf.constant([1.0, 3.0])
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = x * x
    z = tf.reduce_sum(y * y)
check("dz/dx", tape.gradient(z, x))
check("dy/dx", tape.gradient(y, x))
check("dz/dy", tape.gradient(z, y))
del tape

v = tf.Variable(2.0)
with tf.GradientTape() as tape:
    a = v * 3.0
    with tape.stop_recording():
        b = a * a
    c = a * b
check("stop_recording", tape.gradient(c, v))

with tf.GradientTape() as tape:
    first = v * v
    tape.reset()
    second = v * 5.0
check("reset", tape.gradient(first + second, v))

with tf.GradientTape(watch_accessed_variables=False) as tape:
    w = tf.Variable(4.0)
    tape.watch(w)
    y = v * w
check("only what is watched", tape.gradient(y, [v, w]))

with tf.GradientTape(persistent=True) as tape:
    y = v ** 3
v.assign(10.0)
check("gradient of the old version", tape.gradient(y, v))
check("again", tape.gradient(y, v))

x = tf.constant([1.0, 2.0])
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = tf.reduce_sum(x * x)
check("read meanwhile", [y, tape.gradient(y, x)])
with tf.GradientTape() as outer:
    outer.watch(x)
    with tf.GradientTape() as inner:
        inner.watch(x)
        z = tf.reduce_sum(x ** 3)
    g = inner.gradient(z, x)
check("watched by others, too", [g, outer.gradient(tf.reduce_sum(g), x), tape.gradient(y, x)])
