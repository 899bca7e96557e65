"""Complex constants and variables; Fourier transforms of one row."""
import numpy as np
import tensorflow as tf
from parity import check

z = tf.constant([1 + 2j, 3 - 1j])
check("dtype", z.dtype)
check("value", z.numpy())
check("printed", str(z))
check("element", z[0].numpy())
check("sum", tf.reduce_sum(z).numpy())
check("asked for", tf.constant([1.0, 2.0], dtype=tf.complex64).numpy())
check("array", tf.convert_to_tensor(np.array([[1j, 2]], np.complex64)).numpy())
check("product", (z * tf.math.conj(z)).numpy())
v = tf.Variable([1 + 1j, 2 + 0j])
v.assign_add([1j, 1 + 0j])
check("variable", v.numpy())
v.assign([0j, 2j])
check("assigned", (v + 1).numpy())
x = tf.sin(tf.range(16.0))
check("rfft", [tf.math.real(tf.signal.rfft(x)), tf.math.imag(tf.signal.rfft(x))], tol=1e-4)
check("irfft", tf.signal.irfft(tf.signal.rfft(x)), tol=1e-4)
check("dct", tf.signal.dct(x, norm="ortho"), tol=1e-4)
check("idct", tf.signal.idct(tf.signal.dct(x)), tol=1e-4)
with tf.GradientTape() as tape:
    tape.watch(x)
    loss = tf.reduce_sum(tf.abs(tf.signal.rfft(x)) ** 2)
check("gradient", tape.gradient(loss, x), tol=1e-4)
one = tf.Variable(1 + 2j)
one.assign_add(1j)
check("a single one", [tf.constant(1j).shape.rank, one.shape.rank, (tf.constant([1j, 2.0]) * 1j).shape.as_list()])
check("its value", [str(one.numpy()), str(tf.constant(2 + 1j).numpy())])
