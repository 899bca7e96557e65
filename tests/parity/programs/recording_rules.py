"""Rules of recorded execution that a program can see (docs/recording.md): as if each line had run at once."""
import numpy as np
import tensorflow as tf
from parity import check, raises

v, w = tf.Variable(1.0), tf.Variable(10.0)
# R3: what was recorded before an exception happens; a refused operation leaves nothing behind.
try:
    v.assign_add(1.0)
    tf.ones([2, 3]) + tf.ones([4])
except tf.errors.InvalidArgumentError:
    pass
check("R3 before an exception", v)
# R6, R8: versions and the order of effects.
old, product = v.read_value(), v * w
v.assign(w + 1.0)
w.assign(v + 1.0)
check("R6 old versions", [old, product])
check("R8 order", [v, w])
# R7: an assignment cuts gradients.
a, b = tf.Variable(3.0), tf.Variable(0.0)
with tf.GradientTape() as tape:
    b.assign(a * a)
    y = b * 2.0 + a
check("R7", tape.gradient(y, [a, b]))
# R5: a draw that dies unread still advances the counter.
tf.random.set_seed(1)
tf.random.uniform([2])
second = tf.random.uniform([2]).numpy()
tf.random.set_seed(1)
tf.random.uniform([2]).numpy()
check("R5", bool(np.array_equal(second, tf.random.uniform([2]).numpy())))
# R14, R16: tapes.
with tf.GradientTape(persistent=True) as tape:
    y = a ** 3
a.assign(5.0)
check("R16 old weights", tape.gradient(y, a))
check("R16 again", tape.gradient(y, a))
with tf.GradientTape() as tape:
    y = a * a
tape.gradient(y, a)
raises(RuntimeError, lambda: tape.gradient(y, a))
# R17: numbers select a trace, captured ones are frozen, captured tensors are held, objects are told apart.
calls, factor, held = [], 2.0, tf.constant(7.0)


@tf.function
def f(x, n):
    calls.append(n)
    return x * n * factor + held


check("R17 numbers", [f(tf.constant(1.0), 2), f(tf.constant(1.0), 3), f(tf.constant(5.0), 2)])
factor, held = 100.0, tf.constant(0.0)
check("R17 frozen", f(tf.constant(1.0), 2))
check("R17 traces", len(calls))
# R21: variables only in the first call, whose body runs more than once.
traced = []


class Maker:
    made = None

    @tf.function
    def __call__(self, x):
        traced.append(1)
        if self.made is None:
            self.made = tf.Variable(2.0)
        return self.made.assign_add(x)


maker = Maker()
check("R21 first", maker(tf.constant(1.0)))
check("R21 then", maker(tf.constant(1.0)))
check("R21 more than once", len(traced) > 1)
raises(ValueError, lambda: tf.function(lambda: tf.Variable(1.0))())


@tf.function
def fails(x):
    v.assign_add(1000.0)
    raise KeyError("in the body")


before = v.numpy()
raises(KeyError, lambda: fails(1.0))
check("R21 an exception while tracing drops effects", bool(before == v.numpy()))
# R24: effects behind a bad value do not happen; those of earlier runs have.
first, after = tf.Variable(0.0), tf.Variable(0.0)
place = tf.Variable(9)
try:
    first.assign_add(1.0)
    first.numpy()
    bad = tf.gather(tf.range(3.0) * first, place * 1)
    after.assign_add(bad)
    after.assign_add(1.0)
    after.numpy()
except tf.errors.InvalidArgumentError:
    check("R24 raised", True)
check("R24 before and after", [first, after])
# R26, R27: memory in and out.
array = np.ones(4, np.float32)
x = tf.constant(array)
y = x * 2.0
array[:] = 9.0
check("R26", [x, y])
out = x.numpy()
out[0] = 5.0
check("R27", x)
