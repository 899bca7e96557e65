"""`if` on tensors, `for` over tf.range, `while` on tensors inside tf.function."""
import tensorflow as tf
from parity import check


@tf.function
def absolute(x):
    if x > 0.0:
        return x
    else:
        return -x


check("positive", absolute(tf.constant(3.0)))
check("negative", absolute(tf.constant(-4.0)))


@tf.function
def factorial(n):
    result = tf.constant(1)
    for i in tf.range(1, n + 1):
        result *= i
    return result


check("5!", factorial(tf.constant(5)))
check("7!", factorial(tf.constant(7)))


@tf.function
def collatz_steps(n):
    steps = tf.constant(0)
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


check("collatz", collatz_steps(tf.constant(27)))


@tf.function
def running(xs):
    total = tf.zeros_like(xs[0])
    for x in xs:
        total = total * 0.5 + x
    return total


check("over rows", running(tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])))


@tf.function
def clipped_sum(xs):
    s = 0.0
    for x in xs:
        if x < 0.0:
            continue
        s += x
        if s > 10.0:
            break
    return s


check("break", clipped_sum(tf.constant([4.0, -1.0, 5.0, 3.0, 100.0])))
v = tf.Variable(1.5)


@tf.function
def power(n):
    y = tf.constant(1.0)
    for _ in tf.range(n):
        y = y * v
    return y


with tf.GradientTape() as tape:
    y = power(tf.constant(4))
check("gradient through a loop", tape.gradient(y, v))


@tf.function
def unrolled(x):
    for i in range(3):
        x = x * float(i + 1)
    return x


check("python loop", unrolled(tf.constant(2.0)))
