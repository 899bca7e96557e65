"""Eigenvalues and singular values, with vectors up to their signs, and gradients through them."""
import keras
import numpy as np
import tensorflow as tf
from parity import check, raises

r = np.random.RandomState(1)
a = r.randn(2, 5, 3).astype("float32")
s = np.einsum("bij,bik->bjk", a, a)

values, vectors = tf.linalg.eigh(s)
check("eigenvalues", values, 1e-4)
check("eigvalsh", tf.linalg.eigvalsh(s), 1e-4)
check("eigenvectors", tf.abs(vectors), 1e-4)
check("put together", tf.einsum("bij,bj,bkj->bik", vectors, values, vectors), 1e-4)
check("double", tf.linalg.eigvalsh(s[0].astype("float64")), 1e-9)

sv, u, v = tf.linalg.svd(a)
check("singular values", sv, 1e-4)
check("shapes", [u.shape, v.shape])
check("u s v", tf.einsum("bij,bj,bkj->bik", u, sv, v), 1e-4)
check("of wide ones", tf.linalg.svd(np.swapaxes(a, 1, 2), compute_uv=False), 1e-4)
u, sv, vh = keras.ops.svd(a[0], full_matrices=False)
check("keras", [u.shape, sv.shape, vh.shape])
check("keras put together", (u * sv) @ vh, 1e-4)
check("keras eigh", keras.ops.eigh(s[0])[0], 1e-4)

x = tf.Variable(s[0])
with tf.GradientTape() as tape:
    w, q = tf.linalg.eigh(x)
    y = tf.reduce_sum(w ** 2) + tf.reduce_sum(q ** 4)
check("gradient", tape.gradient(y, x), 1e-2)
x = tf.Variable(a[0])
with tf.GradientTape() as tape:
    y = tf.reduce_sum(tf.linalg.svd(x, compute_uv=False))
check("gradient of the nuclear norm", tape.gradient(y, x), 1e-3)
q, upper = keras.ops.qr(a[0])
check("qr", q @ upper, 1e-4)

# Matrices that are not square; signs, and columns that are only at right angles to the others, are free.
wide = a[0].T
for name, m in (("wide", wide), ("tall", wide.T), ("several", np.stack([wide, 2.0 * wide]))):
    turn = lambda x: np.swapaxes(np.asarray(x), -1, -2)
    for mode in ("reduced", "complete"):
        q, upper = keras.ops.qr(m, mode=mode)
        check(f"qr of {name}, {mode}", [q.shape, np.abs(upper), q @ upper, turn(q) @ np.asarray(q)], 1e-4)
    q, upper = tf.linalg.qr(m, full_matrices=True)
    check(f"tf's qr of {name}", [q.shape, upper.shape, q @ upper], 1e-4)
    u, sv, vh = keras.ops.svd(m)
    n = sv.shape[-1]
    check(f"svd of {name}", [u.shape, sv, vh.shape, (u[..., :n] * sv[..., None, :]) @ vh[..., :n, :]], 1e-4)
    check(f"right angles of {name}", [turn(u) @ np.asarray(u), turn(vh) @ np.asarray(vh)], 1e-4)
raises(ValueError, lambda: keras.ops.lu_factor(wide))
check("lu_factor", keras.ops.lu_factor(np.array([[1.0, 2.0, 0.5], [4.0, 1.0, 1.0], [2.0, 3.0, 3.0]], "float32")), 1e-5)
