"""Transposes, diagonal parts, triangles, norms."""
import numpy as np
import tensorflow as tf
from parity import check

m = tf.constant([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
check("transpose", tf.transpose(m))
check("perm", tf.transpose(tf.reshape(tf.range(24), (2, 3, 4)), perm=[2, 0, 1]))
check("matrix_transpose", tf.linalg.matrix_transpose(tf.reshape(tf.range(12), (2, 2, 3))))
check("diag_part", tf.linalg.diag_part(m))
check("trace", tf.linalg.trace(m))
check("band_part", tf.linalg.band_part(m, -1, 0))
check("upper", tf.linalg.band_part(tf.ones((3, 3)), 0, -1))
check("norm", tf.linalg.norm(m))
check("norm axis", tf.norm(m, axis=1))
check("norm inf", tf.norm(m, ord=np.inf, axis=1))
check("l2_normalize", tf.linalg.l2_normalize(m, axis=1))
check("set_diag", tf.linalg.set_diag(m, [0.0, 0.0, 0.0]))

# --- other diagonals ------------------------------------------------------------------------------------
check("above", tf.linalg.diag([1, 2], k=1))
check("below", tf.linalg.diag([[1.0, 2.0], [3.0, 4.0]], k=-2))
check("more rows", tf.linalg.diag([1.0, 2.0], num_rows=4))
check("more columns", tf.linalg.diag([1.0, 2.0], k=-1, num_cols=5))
check("something else beside", tf.linalg.diag([1.0, 0.0], k=1, padding_value=7.0))
