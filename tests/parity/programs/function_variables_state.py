"""State in functions: counters, assign then read, several variables, returned variables, order of effects."""
import tensorflow as tf
from parity import check

a, b = tf.Variable(1.0), tf.Variable(10.0)


@tf.function
def swap():
    old = a.read_value()
    a.assign(b)
    b.assign(old)
    return a + 0.0, b + 0.0


check("swap", swap())
check("swap back", swap())


@tf.function
def ordered(x):
    before = a.read_value()
    a.assign_add(x)
    between = a.read_value()
    a.assign(a * 2.0)
    return before, between, a.read_value()


check("order", ordered(tf.constant(4.0)))
check("order again", ordered(tf.constant(1.0)))
history = []


@tf.function
def log(x):
    history.append("traced")
    a.assign(x)
    return a


for i in range(3):
    check("returned", log(tf.constant(float(i))))
check("traced once", history)
m = tf.Variable(tf.zeros((3, 2)))


@tf.function
def fill(i, row):
    m[i].assign(row)
    m.scatter_nd_add([[0, 0]], [1.0])
    return tf.reduce_sum(m)


check("slices", [fill(tf.constant(1), tf.constant([1.0, 2.0])), fill(tf.constant(2), tf.constant([3.0, 4.0]))])
check("matrix", m)
step = tf.Variable(0, dtype=tf.int64, trainable=False)


@tf.function
def count(n):
    for _ in tf.range(n):
        step.assign_add(2)
    return step


count(tf.constant(5))
check("in a loop", step)
with tf.GradientTape() as tape:
    a.assign(3.0)
    y = a * a
    a.assign(100.0)
    z = a * 2.0
check("gradients follow versions", tape.gradient([y, z], a))

# --- elements of datasets are each call's own -----------------------------------------------------------
elements = iter(tf.data.Dataset.range(10))


@tf.function
def doubled(iterator):
    return next(iterator) * 2


check("elements", [doubled(elements).numpy(), doubled(elements).numpy(), next(elements).numpy()])


@tf.function
def summed(dataset):
    total = tf.constant(0, tf.int64)
    for element in dataset:
        total += element
    return total


check("sums", [summed(tf.data.Dataset.range(5)), summed(tf.data.Dataset.range(3))])
