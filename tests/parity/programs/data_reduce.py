"""reduce, scan, get_single_element, iterators and their ends."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

d = Dataset.range(5)
check("sum", d.reduce(np.int64(0), lambda s, x: s + x))
check("pair", d.reduce((tf.constant(0, tf.int64), 0.0), lambda s, x: (s[0] + x, s[1] + 1.0)))
check("dict", d.reduce({"n": np.int64(0)}, lambda s, x: {"n": s["n"] + x}))
check("scan", list(d.scan(np.int64(0), lambda s, x: (s + x, s * 10))))
check("single", Dataset.from_tensors([1, 2]).get_single_element())
raises(tf.errors.InvalidArgumentError, lambda: Dataset.range(0).get_single_element())
raises(tf.errors.InvalidArgumentError, lambda: Dataset.range(2).get_single_element())
it = iter(d.take(2))
check("next", next(it))
check("get_next", it.get_next())
raises(StopIteration, lambda: next(it))
raises(tf.errors.OutOfRangeError, lambda: it.get_next())
check("iterator spec", repr(it.element_spec))
it = iter(Dataset.range(1))
optional = it.get_next_as_optional()
check("optional", [bool(optional.has_value()), optional.get_value()])
check("no value", it.get_next_as_optional().has_value())
total = tf.constant(0, tf.int64)
for x in d:
    total += x
check("loop", total)

@tf.function
def in_function(data):
    s = tf.constant(0, tf.int64)
    for x in data:
        s += x
    return s

check("in tf.function", in_function(d))
check("bool", bool(Dataset.range(0)))
