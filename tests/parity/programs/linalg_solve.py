"""Inverse, determinant, solve and Cholesky factor of a small symmetric matrix."""
import tensorflow as tf
from parity import check, raises

m = tf.constant([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
check("inv", tf.linalg.inv(m), tol=1e-4)
check("det", tf.linalg.det(m), tol=1e-4)
check("solve", tf.linalg.solve(m, [[1.0], [2.0], [3.0]]), tol=1e-4)
check("cholesky", tf.linalg.cholesky(m), tol=1e-4)
check("slogdet", tf.linalg.slogdet(m)[1], tol=1e-4)

# What has no inverse is refused; its determinant, and triangular equations, are not.
none = tf.constant([[1.0, 2.0], [2.0, 4.0]])
for name, function in (("inv", tf.linalg.inv), ("in a function", tf.function(tf.linalg.inv)), ("keras", tf.keras.ops.inv),
                       ("adjoint", lambda x: tf.linalg.inv(x, adjoint=True)), ("solve", lambda x: tf.linalg.solve(x, [[1.0], [2.0]])),
                       ("float64", lambda x: tf.linalg.inv(tf.cast(x, tf.float64))), ("lu", lambda x: tf.linalg.lu(x)[0]),
                       ("one of two", lambda x: tf.linalg.inv(tf.stack([m[:2, :2], x])))):
    raises(tf.errors.InvalidArgumentError, lambda: function(none).numpy())
check("det of none", tf.abs(tf.linalg.det(none)))
with tf.GradientTape() as tape:
    tape.watch(m)
    total = tf.reduce_sum(tf.linalg.inv(m) ** 2) + tf.reduce_sum(tf.linalg.solve(m, m[:, :1]))
check("gradient", tape.gradient(total, m), tol=1e-4)
