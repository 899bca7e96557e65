"""GradientTape: what a tape sees of a variable: reads under it, not before it, and not while it is stopped."""
import tensorflow as tf
from parity import check

for look in (False, True):  # also where what was recorded has run in between
    v = tf.Variable(3.0)
    before = v.read_value()
    with tf.GradientTape(persistent=True) as tape:
        y = before * v
        if look:
            float(y)
        z = y * v * before
    check("read before", tape.gradient(y, v))
    check("read before, longer", tape.gradient(z, v))
    check("by what was read before", tape.gradient(z, before))
    del tape

    v = tf.Variable(3.0)
    product = v * 2.0
    with tf.GradientTape() as tape:
        y = product * v
        if look:
            float(y)
    check("computed before", tape.gradient(y, v))

    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * 1.0
        with tape.stop_recording():
            quiet = v.read_value()
            if look:
                float(y)
        y = y + quiet * 5.0
    check("read while stopped", tape.gradient(y, v))

    v = tf.Variable(2.0)
    a = tf.convert_to_tensor(v)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = v * a
        g = inner.gradient(y, v)
        if look:
            float(g)
        z = g * v
    check("nested", outer.gradient(z, v))

    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        a = v.read_value()
        y = a * a
        if look:
            float(y)
    check("read under it", [tape.gradient(y, v), tape.gradient(y, a)])

v = tf.Variable(3.0)
with tf.GradientTape() as tape:
    with tape.stop_recording():
        c = v * 5.0
check("only while stopped", [len(tape.watched_variables()), tape.gradient(c, v)])
v = tf.Variable(2.0)
with tf.GradientTape() as tape:
    with tape.stop_recording():
        tape.watch(v)
    y = v * v
check("variable watched while stopped", tape.gradient(y, v))
x = tf.constant(2.0)
with tf.GradientTape() as tape:
    with tape.stop_recording():
        tape.watch(x)
    y = x * x
check("tensor watched while stopped", tape.gradient(y, x))


def watched(do):
    u = tf.Variable([2.0, 1.0])
    with tf.GradientTape() as t:
        do(u)
    return len(t.watched_variables())


check("what counts as watching", [watched(do) for do in (
    lambda u: u.assign([1.0, 1.0]), lambda u: u.assign_sub([1.0, 1.0]), lambda u: u.scatter_nd_update([[0]], [1.0]),
    lambda u: u[0].assign(3.0), lambda u: u.shape, lambda u: u.read_value(), lambda u: u.numpy(),
    tf.function(lambda u: u.assign([1.0, 1.0])))])
x = tf.Variable([1.0, -2.0])
with tf.GradientTape() as tape:
    y = tf.sign(x) * 3.0
check("sign", tape.gradient(y, x))
x = tf.constant([1.0, -2.0])
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    steps = [tf.floor(x), tf.round(x), tf.math.ceil(x), tf.cast(x > 0, tf.float32), tf.stop_gradient(x), tf.zeros_like(x),
             tf.math.floormod(x, 2.0)]
check("steps", [tape.gradient(y, x) for y in steps])
