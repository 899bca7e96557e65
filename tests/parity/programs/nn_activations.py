"""Activations of tf.nn and keras.activations."""
import numpy as np
import tensorflow as tf
from parity import check

x = tf.constant(np.linspace(-4, 4, 9).reshape(3, 3), tf.float32)
for name in "relu relu6 elu selu silu swish gelu leaky_relu sigmoid tanh softplus softsign softmax log_softmax".split():
    check(name, getattr(tf.nn, name)(x))
check("leaky alpha", tf.nn.leaky_relu(x, alpha=0.1))
check("gelu approximate", tf.nn.gelu(x, approximate=True))
check("softmax axis", tf.nn.softmax(x, axis=0))
check("softmax of large", tf.nn.softmax([1000.0, 1001.0]))
check("l2_normalize", tf.nn.l2_normalize(x + 5.0, axis=1))
check("bias_add", tf.nn.bias_add(x, [1.0, 2.0, 3.0]))
for name in ("relu", "sigmoid", "tanh", "softmax", "elu", "selu", "swish", "gelu", "softplus", "softsign", "linear",
             "exponential", "hard_sigmoid", "mish", "relu6", "leaky_relu", "silu", "log_softmax", "celu", "hard_silu"):
    check("keras " + name, tf.keras.activations.get(name)(x))
mean, variance = tf.nn.moments(x, axes=[0])
check("moments", [mean, variance])
check("batch_normalization", tf.nn.batch_normalization(x, mean, variance, 0.5, 2.0, 1e-3))
check("crelu", tf.nn.crelu(x[0]))
check("zero_fraction", tf.nn.zero_fraction(tf.nn.relu(x)))
