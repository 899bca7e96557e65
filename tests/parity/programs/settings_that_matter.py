"""Settings that scripts seldom give: each changes the result."""
import keras
import numpy as np
import tensorflow as tf
from keras import ops
from parity import check, raises

x = tf.constant([[1.0, 2.0, 0.0], [4.0, 0.0, 6.0]])
check("count_nonzero", [tf.math.count_nonzero(x, axis=1, keepdims=True), tf.math.count_nonzero(x, axis=1, dtype=tf.int32)])
check("bincount", [tf.math.bincount([1, 1, 3, 7], maxlength=4), tf.math.bincount([1, 1, 3], dtype=tf.int64), tf.math.bincount([1, 1, 3], dtype=tf.float32),
                   tf.math.bincount([1, 1, 3, 9], weights=[1.0, 2.0, 3.0, 4.0], minlength=6, maxlength=7)])
check("multi_hot", [ops.multi_hot(np.array([[0, 1], [2, 2]]), 3, axis=0), ops.multi_hot(np.array([[[0, 1], [2, 2]]]), 3)])
check("matmul in i32", tf.matmul(tf.constant([[100, 100]], tf.int8), tf.constant([[3], [4]], tf.int8), output_type=tf.int32))
check("normalize", [ops.normalize(x, axis=-1, order=1), ops.normalize(x, axis=0, order=3), ops.normalize(x, order=2)])
check("retstep", list(ops.linspace(0.0, 1.0, 3, retstep=True)))

p, t = np.array([[[0.2, 0.5], [0.8, 0.5]]], "float32"), np.array([[[0.0, 1.0], [1.0, 0.0]]], "float32")
check("crossentropy along 1", [ops.categorical_crossentropy(t, p, axis=1), tf.keras.backend.categorical_crossentropy(tf.constant(t), tf.constant(p), axis=1)])
check("max_norm", tf.nn.embedding_lookup(tf.constant([[3.0, 4.0], [0.3, 0.4]]), [[0, 1]], max_norm=1.0))
raises(tf.errors.InvalidArgumentError, lambda: tf.unstack(x, num=3))

# --- diagonals ------------------------------------------------------------------------------------------
check("set_diag", [tf.linalg.set_diag(tf.zeros((3, 3)), [1.0, 2.0], k=1), tf.linalg.set_diag(tf.ones((2, 2, 3)), [[5.0, 6.0], [7.0, 8.0]]),
                   tf.linalg.set_diag(tf.constant([[np.inf, 1.0], [2.0, np.inf]]), [3.0, 4.0]), tf.linalg.set_diag(tf.zeros((4, 2)), [1.0, 2.0], k=-2)])

# --- channels first -------------------------------------------------------------------------------------
pictures, colours = np.arange(16, dtype="float32").reshape(1, 1, 4, 4), np.arange(12, dtype="float32").reshape(3, 2, 2) / 12
check("warp", ops.image.affine_transform(pictures, np.array([[1, 0, 1, 0, 1, 0, 0, 0]], "float32"), data_format="channels_first"))
check("colours", [f(colours, data_format="channels_first") for f in (ops.image.rgb_to_grayscale, ops.image.rgb_to_hsv, ops.image.hsv_to_rgb)], 1e-4)
check("blocks", ops.space_to_depth(pictures, 2, data_format="channels_first"))
for mode in ("caffe", "tf", "torch"):
    check("preprocess " + mode, keras.applications.imagenet_utils.preprocess_input(np.arange(12, dtype="float32").reshape(1, 3, 2, 2), "channels_first", mode))

# --- complex numbers ------------------------------------------------------------------------------------
z = tf.constant([[1 + 2j, 3 - 1j]])
check("conjugate", [tf.transpose(z, conjugate=True).numpy(), tf.linalg.matrix_transpose(z, conjugate=True).numpy(), tf.linalg.adjoint(z).numpy(),
                    tf.transpose(z).numpy()])


# --- gradients of what is not connected -----------------------------------------------------------------
@tf.function
def unconnected(a, b):
    return tf.gradients(a * a, [a, b], unconnected_gradients=tf.UnconnectedGradients.ZERO)


check("zeros", unconnected(tf.constant(3.0), tf.constant([1.0, 2.0])))
check("a table in parts", tf.nn.embedding_lookup([tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 4.0]])], [1, 0]))
check("einsum of whole numbers", tf.einsum("bij,bkj->bik", tf.reshape(tf.range(12), (2, 2, 3)), tf.reshape(tf.range(12), (2, 2, 3))))
check("zip of one", [int(e) for e in tf.data.Dataset.zip(tf.data.Dataset.range(3))])
