"""Batch, layer, group and unit normalization; moving statistics."""
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers
from parity import check

x = np.sin(np.arange(40.0)).reshape(10, 4).astype("float32") * 3 + 1
bn = layers.BatchNormalization(momentum=0.9)
check("training", bn(x, training=True))
check("moving mean", bn.moving_mean)
check("moving variance", bn.moving_variance)
check("inference", bn(x, training=False))
bn(x, training=True)
check("second update", bn.get_weights())
check("trainable count", [len(bn.trainable_weights), len(bn.non_trainable_weights)])
bn.trainable = False
check("frozen runs in inference mode", bn(x, training=True))
check("statistics unchanged", bn.moving_mean)
check("no scale", layers.BatchNormalization(scale=False, center=False)(x, training=True))
images = np.cos(np.arange(2 * 3 * 3 * 4)).reshape(2, 3, 3, 4).astype("float32")
check("pictures", layers.BatchNormalization()(images, training=True))
check("axis 1", layers.BatchNormalization(axis=1)(images, training=True).shape)
ln = layers.LayerNormalization(epsilon=1e-6)
check("layer", ln(x))
check("layer axes", layers.LayerNormalization(axis=[1, 2])(images))
check("group", layers.GroupNormalization(groups=2)(images), tol=2e-5)
check("unit", layers.UnitNormalization()(x))
check("rms", layers.RMSNormalization()(x))
n = layers.Normalization(axis=-1)
n.adapt(x)
check("adapted", n(x[:2]), tol=1e-4)
v = tf.Variable(x)
with tf.GradientTape() as tape:
    y = tf.reduce_sum(layers.BatchNormalization()(v, training=True) ** 3)
check("gradient of batch", tape.gradient(y, v), tol=2e-4)
with tf.GradientTape() as tape:
    y = tf.reduce_sum(ln(v) ** 3)
check("gradient of layer", tape.gradient(y, v), tol=2e-4)
