"""Convolutions and pooling of tf.nn: paddings, strides, dilations, gradients."""
import numpy as np
import tensorflow as tf
from parity import check, raises

r = np.random.RandomState(0)
x = tf.Variable(r.uniform(-1, 1, (2, 6, 7, 3)), dtype=tf.float32)
k = tf.Variable(r.uniform(-1, 1, (3, 3, 3, 4)), dtype=tf.float32)
d = tf.constant(r.uniform(-1, 1, (3, 3, 3, 2)), tf.float32)
check("valid", tf.nn.conv2d(x, k, strides=1, padding="VALID"), tol=2e-5)
check("same strided", tf.nn.conv2d(x, k, strides=[1, 2, 2, 1], padding="SAME"), tol=2e-5)
check("dilated", tf.nn.conv2d(x, k, 1, "VALID", dilations=2), tol=2e-5)
check("depthwise", tf.nn.depthwise_conv2d(x, d, [1, 1, 1, 1], "SAME")[0], tol=2e-5)
check("transposed", tf.nn.conv2d_transpose(tf.ones((1, 3, 3, 4)), k, (1, 7, 7, 3), 2, "VALID"), tol=2e-5)
check("conv1d", tf.nn.conv1d(x[:, 0], k[0], stride=1, padding="SAME"), tol=2e-5)
check("max_pool", tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID"))
check("max_pool same", tf.nn.max_pool(x, ksize=3, strides=2, padding="SAME"))
check("avg_pool", tf.nn.avg_pool2d(x, 2, 2, "SAME"))
with tf.GradientTape(persistent=True) as tape:
    y = tf.reduce_sum(tf.nn.conv2d(x, k, 2, "SAME") ** 2)
    z = tf.reduce_sum(tf.nn.max_pool2d(x, 2, 2, "VALID") ** 2)
check("dy/dk", tape.gradient(y, k), tol=1e-4)
check("dy/dx", tape.gradient(y, x)[0], tol=1e-4)
check("dz/dx", tape.gradient(z, x)[1])
raises((ValueError, tf.errors.InvalidArgumentError), lambda: tf.nn.conv2d(x, tf.ones((3, 3, 2, 4)), 1, "SAME"))
