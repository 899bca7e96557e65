"""Variables in expressions; augmented assignment makes tensors; counters; validate_shape."""
import numpy as np
import tensorflow as tf
from parity import check, raises

v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
check("add", v + 1)
check("matmul", v @ v)
check("index", v[0])
check("slice", v[:, 1])
check("compare", v > 2.0)
check("reduce", tf.reduce_sum(v))
check("numpy", np.asarray(v))
check("neg", -v)
check("transpose", tf.transpose(v))
check("is a variable", isinstance(v, tf.Variable))
w = v
w = w + 1.0
check("now a tensor", w)
check("v unchanged", v)
check("type", isinstance(w, tf.Variable))
c = tf.Variable(0, dtype=tf.int64)
for _ in range(5):
    c.assign_add(1)
check("counter", c)
check("int of a variable", int(c) + 1)
values = []
for step in range(3):
    values.append(c.assign_add(step + 1).numpy())
check("values in between", [int(x) for x in values])
check("from a function", tf.Variable(lambda: tf.ones((2,))))
u = tf.Variable(np.arange(3), dtype=tf.float32)
check("from an array", u)
u.assign(u * u + u)
check("assigned from itself", u)
check("initialized_value", tf.Variable(3.0).value())
raises(AttributeError, lambda: tf.constant(1.0).assign(2.0))
