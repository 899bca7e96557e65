"""Fake quantization and its gradients, casts that saturate, factors of matrices, products of complex ones."""
import tensorflow as tf
from parity import check, raises

x = tf.constant([-7.0, -1.0, -0.3, 0.0, 0.26, 0.5, 1.0, 5.9, 6.0, 8.0])
fake = tf.quantization
check("args", fake.fake_quant_with_min_max_args(x))
check("four bits", fake.fake_quant_with_min_max_args(x, min=0, max=6, num_bits=4, narrow_range=True))
low, high = tf.Variable(-1.0), tf.Variable(2.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = fake.fake_quant_with_min_max_vars(x, low, high)
    loss = tf.reduce_sum(y * tf.range(10.0))
check("vars", y)
check("gradients", tape.gradient(loss, [x, low, high]))
lows, highs = tf.Variable([-1.0, -2.0]), tf.Variable([1.0, 4.0])
with tf.GradientTape() as tape:
    y = fake.fake_quant_with_min_max_vars_per_channel(tf.reshape(x, (5, 2)), lows, highs)
check("per channel", y)
check("gradients per channel", tape.gradient(y, [lows, highs]))
raises(tf.errors.InvalidArgumentError, lambda: fake.fake_quant_with_min_max_args(x, num_bits=40))

for dtype in (tf.uint8, tf.int8, tf.int32, tf.float16):
    check(f"saturated {dtype.name}", tf.saturate_cast(tf.constant([1e10, -1e10, 3.7]), dtype))
check("saturated bfloat16", tf.cast(tf.saturate_cast(tf.constant([1e39, -1e39, 3.75], tf.float64), tf.bfloat16), tf.float32))
for dtype in (tf.uint8, tf.int8, tf.int16, tf.uint16, tf.int32):
    check(f"inverted {dtype.name}", tf.bitwise.invert(tf.constant([0, 5], dtype)))
check("bins", tf.histogram_fixed_width_bins([[-1.0, 0.0], [1.5, 15.0]], [0.0, 5.0], nbins=5))

# --- factors --------------------------------------------------------------------------------------------
a = tf.constant([[1.0, 4.0, 2.0], [3.0, 1.0, 0.0], [2.0, 0.5, 5.0]])
both = tf.stack([a, tf.transpose(a) * 2])
lu, p = tf.linalg.lu(both)
check("lu", lu)
check("order of rows", p)
check("lu again", tf.linalg.lu_reconstruct(lu, p))
check("solved", tf.linalg.lu_solve(lu[0], p[0], tf.constant([[1.0], [2.0], [3.0]])))
check("inverse", tf.linalg.lu_matrix_inverse(*tf.linalg.lu(a)))
check("expm", tf.linalg.expm(both / 4))
found = tf.linalg.slogdet(a)
check("slogdet", [found.sign, found.log_abs_determinant])

# --- complex products -----------------------------------------------------------------------------------
z = tf.complex(a, tf.transpose(a))
check("matmul", (tf.matmul(z, z)).numpy())
check("operator", (z @ tf.math.conj(z)).numpy())
check("adjoint", tf.matmul(z, z, adjoint_a=True).numpy())
check("einsum", tf.einsum("ij,jk->ik", z, z).numpy())
check("with a real one", tf.matmul(z, tf.cast(a, tf.complex64)).numpy())
check("boxes of whole numbers", tf.image.crop_and_resize(tf.reshape(tf.range(16.0), (1, 4, 4, 1)), [[0, 0, 1, 1]], [0], [2, 2]))


# --- corners --------------------------------------------------------------------------------------------
def refused(call):
    try:
        return [t.numpy() for t in call()] and False
    except tf.errors.InvalidArgumentError:
        return True


check("limits of zero", tf.quantization.fake_quant_with_min_max_vars([-1.0, 0.0, 2.0], 0.0, 0.0))
check("limits in no order", refused(lambda: [tf.quantization.fake_quant_with_min_max_args([1.0], 3.0, 1.0)]))
check("no factors", refused(lambda: tf.linalg.lu(tf.constant([[0.0, 0.0], [0.0, 1.0]]))))
check("bitcast", [tf.bitcast(tf.constant([1.0, 2.0], tf.float64), tf.int32), tf.bitcast(tf.constant(1.0), tf.int32),
                  tf.bitcast(tf.constant([[1, 2], [3, 4]]), tf.int64), tf.bitcast(tf.constant(1.0, tf.float64), tf.int32)])
check("saturated", tf.saturate_cast(tf.constant([1e300, -1e300, 1.0], tf.float64), tf.float32))
