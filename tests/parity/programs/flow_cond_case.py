"""cond, case, switch_case, eager and in functions, with gradients."""
import tensorflow as tf
from parity import check

x = tf.Variable(3.0)
check("true", tf.cond(x > 2.0, lambda: x * 2.0, lambda: x * 3.0))
check("false", tf.cond(x > 5.0, lambda: x * 2.0, lambda: x * 3.0))
check("python bool", tf.cond(tf.constant(False), true_fn=lambda: 1, false_fn=lambda: 2))
with tf.GradientTape() as tape:
    y = tf.cond(x > 2.0, lambda: x ** 2, lambda: x)
check("gradient", tape.gradient(y, x))


@tf.function
def piecewise(v):
    return tf.cond(v > 0.0, lambda: tf.square(v), lambda: (-v) * 2.0)


check("in a function", [piecewise(tf.constant(3.0)), piecewise(tf.constant(-3.0))])


@tf.function
def slope(v):
    with tf.GradientTape() as t:
        t.watch(v)
        out = piecewise(v)
    return t.gradient(out, v)


check("slopes", [slope(tf.constant(3.0)), slope(tf.constant(-3.0))])
check("case", tf.case([(x < 1.0, lambda: tf.constant(1)), (x < 4.0, lambda: tf.constant(2))], default=lambda: tf.constant(3)))
check("case default", tf.case([(x < 1.0, lambda: tf.constant(1))], default=lambda: tf.constant(3)))
branches = [lambda: tf.constant(10.0), lambda: x * 5.0, lambda: x - 1.0]
check("switch_case", [tf.switch_case(tf.constant(i), branches) for i in range(3)])
check("switch beyond", tf.switch_case(tf.constant(9), branches))


@tf.function
def structure(p):
    return tf.cond(p, lambda: (tf.constant(1.0), [tf.constant(2)]), lambda: (tf.constant(3.0), [tf.constant(4)]))


check("structure", structure(tf.constant(False)))
v = tf.Variable(0)


@tf.function
def effect(p):
    tf.cond(p, lambda: v.assign_add(1), lambda: v.assign_add(100))
    return v.read_value()


check("effects", [effect(tf.constant(True)), effect(tf.constant(False)), effect(tf.constant(True))])
