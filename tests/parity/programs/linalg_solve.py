"""Inverse, determinant, solve and Cholesky factor of a small symmetric matrix."""
import tensorflow as tf
from parity import check

m = tf.constant([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
check("inv", tf.linalg.inv(m), tol=1e-4)
check("det", tf.linalg.det(m), tol=1e-4)
check("solve", tf.linalg.solve(m, [[1.0], [2.0], [3.0]]), tol=1e-4)
check("cholesky", tf.linalg.cholesky(m), tol=1e-4)
check("slogdet", tf.linalg.slogdet(m)[1], tol=1e-4)
