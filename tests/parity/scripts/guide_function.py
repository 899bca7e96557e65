"""In the style of "Better performance with tf.function"."""
import timeit
import numpy as np
import tensorflow as tf


@tf.function
def add(a, b):
    return a + b


print(add(tf.ones([2, 2]), tf.ones([2, 2])))
v = tf.Variable(1.0)
with tf.GradientTape() as tape:
    result = add(v, 1.0)
print(tape.gradient(result, v))


@tf.function
def dense_layer(x, w, b):
    return add(tf.matmul(x, w), b)


print(dense_layer(tf.ones([3, 2]), tf.ones([2, 2]), tf.ones([2])))


@tf.function
def double(a):
    print("Tracing with", a.dtype, a.shape)
    return a + a


print(double(tf.constant(1)))
print(double(tf.constant(1.1)))
print(double(tf.constant(1)))


@tf.function
def f(x):
    if x > 0:
        return x * 2
    return x - 1


print(f(tf.constant(3)), f(tf.constant(-3)))


@tf.function
def get_MSE(y_true, y_pred):
    sq_diff = tf.pow(y_true - y_pred, 2)
    return tf.reduce_mean(sq_diff)


print(get_MSE(tf.constant([1.0, 2.0]), tf.constant([3.0, 2.0])).numpy())
external_list = []


@tf.function
def side_effect(x):
    print("Python side effect")
    external_list.append(x.shape)


side_effect(tf.constant([1, 2]))
side_effect(tf.constant([1, 2]))
side_effect(tf.constant([1, 2]))
print(len(external_list))


class Count(tf.Module):
    def __init__(self):
        self.count = None

    @tf.function
    def __call__(self):
        if self.count is None:
            self.count = tf.Variable(0)
        return self.count.assign_add(1)


c = Count()
print(c())
print(c())
foo = 1


def mutable(x):
    return x + foo


h = tf.function(mutable)
print(h(tf.constant(1)))
foo = 10
print(h(tf.constant(1)))
opt1 = tf.keras.optimizers.SGD(learning_rate=0.1)
w = tf.Variable(2.0)
x = tf.constant(-1.0)


@tf.function
def train_step(w, x, optimizer):
    with tf.GradientTape() as tape:
        L = tf.reduce_sum(tf.square(w * x))
    gradients = tape.gradient(L, [w])
    optimizer.apply_gradients(zip(gradients, [w]))


train_step(w, x, opt1)
print("Calling `train_step` with SGD optimizer: %.3f" % w.numpy())


def power(x, y):
    return tf.pow(x, y)


slow = tf.function(lambda x: tf.reduce_sum(tf.stack([x ** i for i in range(5)])))
print(slow(tf.constant(2.0)))
cell = tf.keras.layers.LSTMCell(10)
fn = tf.function(lambda x: tf.matmul(x, x))
elapsed = timeit.timeit(lambda: fn(tf.ones((8, 8))), number=10)
print(elapsed > 0)


@tf.function
def simple_relu(x):
    if tf.greater(x, 0):
        return x
    else:
        return 0


print(simple_relu(tf.constant(1)), simple_relu(tf.constant(-1)))
print(tf.autograph is not None)
