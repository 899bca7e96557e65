"""What makes tf.function trace again: shapes, dtypes, Python values, None, structures, objects; methods and options."""
import numpy as np
import tensorflow as tf
from parity import check, raises

log = []


@tf.function
def f(x, flag=None, scale=1):
    log.append(1)
    total = tf.add_n([tf.reduce_sum(t) for t in tf.nest.flatten(x)])
    return total * float(scale)


def count(*args, **kwargs):
    del log[:]
    f(*args, **kwargs)
    return len(log)


a = tf.constant([1.0, 2.0])
check("first", count(a))
check("same", count(a + 1.0))
check("default given", count(a, None, 1))
check("keyword default", count(a, scale=1))
check("other number", count(a, scale=2))
check("flag", count(a, True))
check("flag again", count(a, flag=True))
check("text", count(a, "x"))
check("other text", count(a, "y"))
check("list", count([a, a]))
check("list again", count([a, a * 2.0]))
check("longer list", count([a, a, a]))
check("tuple", count((a, a)))
check("dict", count({"p": a, "q": a}))
check("dict again", count({"q": a, "p": a}))
check("rank", count(tf.constant([[1.0]])))
check("variable", count(tf.Variable([1.0, 2.0])))


@tf.function(autograph=False)
def plain(x):
    return x * 2.0


check("autograph=False", plain(a))
check("jit_compile is taken", tf.function(lambda x: x + 1.0, jit_compile=False)(a))
g = tf.function(lambda x, y: x - y)
check("lambda", g(a, 1.0))


class Model:
    def __init__(self, k):
        self.k, self.traces = k, 0

    @tf.function
    def call(self, x):
        self.traces += 1
        return x * self.k


m1, m2 = Model(2.0), Model(3.0)
check("instances", [m1.call(a), m2.call(a), m1.call(a)])
check("traces", [m1.traces, m2.traces])
m1.k = 100.0
check("frozen attribute", m1.call(a))


@tf.function
def fails(x):
    if x.shape[0] > 2:
        raise ValueError("too long")
    return x


raises(ValueError, lambda: fails(tf.ones((3,))))
check("works after an error", fails(tf.ones((2,))))
raises(TypeError, lambda: f())
check("name", f.__name__)
check("doc", plain.python_function.__name__)


@tf.function
def printer(x):
    log.append("traced")
    y = tf.identity(x)
    return y.shape.as_list(), y


shapes, value = printer(tf.ones((2, 3)))
check("python values come back", [int(s) for s in shapes])
