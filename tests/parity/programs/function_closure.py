"""What functions close over: variables, tensors, objects, methods; variables made once."""
import tensorflow as tf
from parity import check, raises

v = tf.Variable(2.0)
c = tf.constant(10.0)


@tf.function
def scale(x):
    return x * v + c


check("first", scale(tf.constant(1.0)))
v.assign(5.0)
check("variable changed", scale(tf.constant(1.0)))
c = tf.constant(0.0)
check("the tensor is the one of the trace", scale(tf.constant(1.0)))


class Counter(tf.Module):
    def __init__(self):
        self.n = tf.Variable(0)
        self.step = 2

    @tf.function
    def up(self, by):
        self.n.assign_add(by * self.step)
        return self.n


a, b = Counter(), Counter()
check("a", a.up(tf.constant(3)))
check("a again", a.up(tf.constant(4)))
check("b", b.up(tf.constant(1)))


class Layer(tf.Module):
    def __init__(self):
        self.w = None

    @tf.function
    def __call__(self, x):
        if self.w is None:
            self.w = tf.Variable(tf.ones((2, 2)) * 0.5)
        return x @ self.w


layer = Layer()
check("made at the first call", layer(tf.constant([[1.0, 2.0]])))
check("kept", layer(tf.constant([[3.0, 4.0]])))


@tf.function
def bad(x):
    return x + tf.Variable(1.0)


raises(ValueError, lambda: bad(tf.constant(1.0)))
inner = tf.function(lambda x: x ** 2)


@tf.function
def outer(x):
    return inner(x) + inner(x + 1.0)


check("nested", outer(tf.constant(3.0)))
with tf.GradientTape() as tape:
    y = outer(scale(v))
check("gradient through", tape.gradient(y, v))
