"""tf.while_loop with several variables, maximum_iterations, gradients."""
import tensorflow as tf
from parity import check

i, total = tf.while_loop(lambda i, s: i < 10, lambda i, s: (i + 1, s + i), (tf.constant(0), tf.constant(0)))
check("sum", [i, total])
r = tf.while_loop(lambda i: tf.less(i, 100), lambda i: (tf.add(i, 7),), (tf.constant(0),))
check("one variable", r)
check("maximum_iterations", tf.while_loop(lambda i: True, lambda i: (i + 1,), (tf.constant(0),), maximum_iterations=5))
check("never", tf.while_loop(lambda i: i > 5, lambda i: (i + 1,), (tf.constant(0),)))
x = tf.Variable(1.1)
with tf.GradientTape() as tape:
    _, y = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * x), (tf.constant(0), tf.constant(1.0)))
check("value", y)
check("gradient", tape.gradient(y, x))


@tf.function
def newton(a):
    def body(g):
        return [0.5 * (g + a / g)]
    return tf.while_loop(lambda g: tf.abs(g * g - a) > 1e-4, body, [a])[0]


check("newton", newton(tf.constant(10.0)), tol=1e-4)
check("other value", newton(tf.constant(2.0)), tol=1e-4)


@tf.function
def fibonacci(n):
    a, b = tf.constant(0), tf.constant(1)
    for _ in tf.range(n):
        a, b = b, a + b
    return a


check("fibonacci", [fibonacci(tf.constant(k)) for k in (1, 2, 10)])
m = tf.constant([[1.0, 1.0], [1.0, 0.0]])
_, p = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a @ m), (0, tf.eye(2)))
check("matrix power", p)
