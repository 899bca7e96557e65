"""Comparisons, where, sorting, top_k, unique, in_top_k."""
import numpy as np
import tensorflow as tf
from parity import check

x = tf.constant([[3.0, 1.0, 2.0], [0.5, 9.0, -4.0]])
y = tf.constant([[3.0, 2.0, 1.0], [0.5, 0.0, 0.0]])
for name in "equal not_equal less less_equal greater greater_equal".split():
    check(name, getattr(tf, name)(x, y))
check("where", tf.where(x > y, x, y))
check("where broadcast", tf.where(x > 1.0, x, 0.0))
check("where indices", tf.where(x > 1.0))
check("sort", tf.sort(x, axis=-1))
check("sort down", tf.sort(x, direction="DESCENDING"))
check("argsort", tf.argsort(x, axis=-1))
check("argsort down", tf.argsort([4, 2, 9], direction="DESCENDING"))
values, indices = tf.math.top_k(x, k=2)
check("top_k values", values)
check("top_k indices", indices)
result = tf.nn.top_k([1, 5, 3], k=1)
check("top_k fields", [result.values, result.indices])
u, idx = tf.unique([4, 4, 1, 2, 1])
check("unique", u)
check("unique idx", idx)
check("in_top_k", tf.math.in_top_k([1, 0], x, 2))
check("boolean_mask", tf.boolean_mask(x, [True, False]))
check("boolean_mask elements", tf.boolean_mask(x, x > 0.7))
check("searchsorted", tf.searchsorted([1.0, 3.0, 5.0], [0.0, 3.0, 9.0]))
check("near", tf.abs(x - y) < 1.5)
check("is_inf", tf.math.is_inf([1.0, float("inf")]))
