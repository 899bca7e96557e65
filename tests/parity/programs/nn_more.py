"""More of tf.nn: 3-D convolution, separable, pooling variants, normalization, candidate functions."""
import numpy as np
import tensorflow as tf
from parity import check

r = np.random.RandomState(0)
x = tf.constant(r.uniform(-1, 1, (1, 5, 6, 2)), tf.float32)
v = tf.constant(r.uniform(-1, 1, (1, 4, 4, 4, 2)), tf.float32)
check("conv3d", tf.nn.conv3d(v, tf.constant(r.uniform(-1, 1, (2, 2, 2, 2, 3)), tf.float32), [1, 1, 1, 1, 1], "VALID"), tol=2e-5)
check("separable", tf.nn.separable_conv2d(x, tf.constant(r.rand(3, 3, 2, 1), tf.float32), tf.constant(r.rand(1, 1, 2, 3), tf.float32), [1, 1, 1, 1], "SAME"), tol=2e-5)
check("atrous", tf.nn.atrous_conv2d(x, tf.constant(r.rand(2, 2, 2, 2), tf.float32), 2, "VALID"), tol=2e-5)
check("convolution", tf.nn.convolution(x, tf.constant(r.rand(2, 2, 2, 2), tf.float32), padding="SAME"), tol=2e-5)
check("explicit padding", tf.nn.conv2d(x, tf.ones((3, 3, 2, 1)), 1, [[0, 0], [1, 1], [2, 0], [0, 0]]), tol=2e-5)
check("max_pool1d", tf.nn.max_pool1d(x[:, 0], 2, 2, "VALID"))
check("max_pool3d", tf.nn.max_pool3d(v, 2, 2, "VALID"))
check("avg_pool1d", tf.nn.avg_pool1d(x[:, 0], 3, 1, "SAME"))
check("avg_pool3d", tf.nn.avg_pool3d(v, 2, 2, "SAME"))
check("pool", tf.nn.pool(x, [2, 2], "MAX", strides=[2, 2], padding="VALID"))
check("log_softmax axis", tf.nn.log_softmax(x, axis=1)[0, :, 0])
check("compute_average_loss", tf.nn.compute_average_loss(tf.constant([1.0, 2.0, 3.0]), global_batch_size=6))
check("scale_regularization_loss", tf.nn.scale_regularization_loss(tf.constant(4.0)))
check("in_top_k", tf.nn.in_top_k([1, 0], [[0.1, 0.9], [0.2, 0.8]], 1))
check("isotonic-like", tf.nn.softmax(tf.constant([[1.0, 2.0], [3.0, 3.0]]), axis=-1))
check("dropout keeps dtype", tf.nn.dropout(tf.ones((3,), tf.float64), 0.5).dtype)
check("experimental dropout", tf.nn.experimental.stateless_dropout(tf.ones((4, 5)), rate=0.5, seed=[1, 2]).shape)
