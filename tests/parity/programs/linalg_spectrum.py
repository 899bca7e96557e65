"""Eigenvalues and singular values, with vectors up to their signs, and gradients through them."""
import keras
import numpy as np
import tensorflow as tf
from parity import check

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
