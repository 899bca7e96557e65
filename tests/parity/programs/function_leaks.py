"""tf.function: names of arguments, Python called at each call, tensors that get out, summaries and scopes that do nothing."""
import tensorflow as tf
from parity import check, raises

said, seen, kept = [], [], []


@tf.function
def f(a, pair):
    said.append((str(a), str(pair[1])))
    kept.append(a + 1)
    return a * pair[0]


check("value", f(tf.constant(2), (tf.constant(3), tf.constant([1]))))
check("names", said[0][0])
raises((AttributeError, NotImplementedError), lambda: kept[0].numpy())


@tf.function
def told(x):
    tf.py_function(lambda v: seen.append(int(v)), inp=[x], Tout=[])
    return x + 1


for n in (1, 1, 5):
    told(tf.constant(n))
check("called each time", seen)
v = tf.Variable(0)


@tf.function
def writes_then_asks(x):
    v.assign_add(1)
    if v > 2:
        return x * 10.0
    return x


check("asks after a write", [writes_then_asks(tf.constant(1.0)) for _ in range(4)])
check("written once a call", v)


@tf.function
def draws_then_asks(x):
    r = tf.random.uniform([])
    v.assign_add(10)
    if r >= 0.0:
        return x + 1.0
    return x


check("asks after a draw", [draws_then_asks(tf.constant(1.0)) for _ in range(3)])
check("and a write", v)
raises((TypeError,), lambda: kept[0] + 1)
raises((TypeError,), lambda: tf.reduce_sum(kept[0]))
raises((TypeError,), lambda: tf.function(lambda: kept[0] * 2)())
raises((TypeError,), lambda: v.assign(kept[0]))
