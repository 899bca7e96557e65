"""Whole numbers keep their bits, and lose those that their dtype has not: products of matrices, numbers beside tensors, ranges, borders. What
TensorFlow refuses of them: an axis twice, steps that lead away, negative exponents."""
import numpy as np
import tensorflow as tf
from parity import check, raises

wide, wrong = 2 ** 53 + 1, tf.errors.InvalidArgumentError
rows = np.array([[2 ** 40 + 1, -(2 ** 31) - 7], [3, 2 ** 62 + 5]])


def i64(*v):
    return tf.constant(v, tf.int64)


check("i64 matmul", tf.matmul(tf.constant(rows), tf.constant(rows[::-1].copy())))
check("i64 matmul turned", tf.matmul(tf.constant(rows), tf.constant(rows), transpose_b=True))
check("i32 matmul", tf.matmul([[2 ** 20, -7], [2 ** 31 - 1, 3]], [[2 ** 20 + 3, 1], [-(2 ** 31), 5]]))
check("i64 matvec", tf.linalg.matvec(tf.constant(rows), i64(2 ** 20 + 1, -3)))
check("i64 tensordot", tf.tensordot(i64(2 ** 40 + 1, 5), i64(2 ** 20 + 1, -(2 ** 61)), 1))
check("i64 einsum", tf.einsum("ij,jk->ik", tf.constant(rows), tf.constant(rows)))
check("i64 einsum of one", tf.einsum("ij->j", tf.constant(rows)))
check("i64 einsum of a diagonal", tf.einsum("ii->i", tf.constant(rows)))
check("i64 einsum of three", tf.einsum("i,i,i->", i64(2 ** 30 + 1, 1), i64(2 ** 30, -2), i64(3, 5)))
for number in (2 ** 31, 2 ** 31 + 1, -(2 ** 31) - 5, 2 ** 35 + 3):
    one = tf.constant([1])
    check(f"i32 beside {number}", [one + number, one - number, one * number, number - one, tf.maximum(one, number), one < number])
check("ranges", [tf.range(wide, wide + 3, dtype=tf.int64), tf.range(wide, wide - 6, -2, dtype=tf.int64), tf.range(5, 0, -2), tf.range(3, 3),
                 tf.range(i64(wide)[0], wide + 400)[-2:], tf.range(0, 10, 3, dtype=tf.float32)])
check("a border", [tf.pad(i64(1), [[1, 2]], constant_values=tf.constant(wide, tf.int64)), tf.pad(i64(wide), [[1, 0]])])
check("none of the largest", tf.math.top_k([[1.0, 2.0]], 0))
check("powers", [tf.pow([2, -3, 5], [3, 3, 0]), tf.pow(i64(3), i64(39))])
for axes in ([0, 0], [0, -2]):
    for reduce in (tf.reduce_sum, tf.reduce_max, tf.reduce_mean):
        raises(wrong, lambda: reduce(tf.ones((2, 3)), axes))
raises(wrong, lambda: tf.reverse([[1, 2]], [0, 0]))
raises(wrong, lambda: tf.range(5, 0, 1))
raises(wrong, lambda: tf.range(0, 5, -1))
raises(wrong, lambda: tf.range(5.0, 0.0))
raises(wrong, lambda: tf.pow([2, 1], [1, -1]).numpy())
raises(wrong, lambda: tf.pow(tf.constant([2]), -1).numpy())
