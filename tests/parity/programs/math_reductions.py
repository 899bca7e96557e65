"""Reductions over axes, with keepdims, of several dtypes."""
import numpy as np
import tensorflow as tf
from parity import check, raises

x = tf.constant(np.sin(np.arange(24.0)).reshape(2, 3, 4), tf.float32)
for name in "sum mean max min prod logsumexp std variance euclidean_norm".split():
    f = getattr(tf.math, "reduce_" + name)
    check(name, f(x))
    check(name + " axis", f(x, axis=1))
    check(name + " last, kept", f(x, axis=-1, keepdims=True))
    check(name + " two", f(x, axis=[0, 2]))
i = tf.constant([[1, 2, 3], [4, 5, 6]])
check("int sum", tf.reduce_sum(i))
check("int mean", tf.reduce_mean(i))
check("int max", tf.reduce_max(i, axis=0))
check("int prod", tf.reduce_prod(i))
check("any", tf.reduce_any([[True, False], [False, False]], axis=1))
check("all", tf.reduce_all([[True, True], [False, True]], axis=1))
check("argmax", tf.argmax(x, axis=1))
check("argmin", tf.argmin(x, axis=-1))
check("argmax int32", tf.argmax(x, axis=0, output_type=tf.int32))
check("cumsum", tf.cumsum(x, axis=1))
check("cumsum exclusive reverse", tf.cumsum([1.0, 2.0, 3.0], exclusive=True, reverse=True))
check("cumprod", tf.math.cumprod([1.0, 2.0, 3.0, 4.0]))
check("count_nonzero", tf.math.count_nonzero(i > 2))
check("bincount", tf.math.bincount([1, 1, 3, 0]))
check("segment_sum", tf.math.segment_sum([1.0, 2.0, 3.0], [0, 0, 1]))
for name in ("segment_max", "segment_min", "segment_prod"):        # segments 1 and 2 are empty
    check(name, [getattr(tf.math, name)([[1.0, -2.0], [3.0, 4.0], [-5.0, -6.0]], [0, 0, 3]), getattr(tf.math, name)([7, -8], [0, 2])])
check("unsorted, empty", [tf.math.unsorted_segment_max([1.0, 3.0], [0, 2], 3), tf.math.unsorted_segment_min([1, 3], [0, 2], 3)])
check("raw", tf.raw_ops.SegmentMax(data=[-1.0, -3.0], segment_ids=[0, 2]))
check("unsorted_segment_mean", tf.math.unsorted_segment_mean([1.0, 2.0, 6.0], [1, 0, 1], 2))
check("empty sum", tf.reduce_sum(tf.zeros((0, 3)), axis=0))
check("norm", tf.norm(x))
check("norm 1", tf.norm(x, ord=1, axis=-1))

check("bincount to nothing", tf.math.bincount([1, 2, 2], maxlength=0))
check("bincount to nothing, weights", tf.math.bincount([1, 2, 2], weights=[1.0, 2.0, 3.0], maxlength=0))
check("bincount of nothing", [tf.math.bincount(tf.constant([], tf.int32)), tf.math.bincount(tf.constant([], tf.int32), minlength=2)])
raises(tf.errors.InvalidArgumentError, lambda: tf.math.bincount([1, 2], maxlength=-1))
