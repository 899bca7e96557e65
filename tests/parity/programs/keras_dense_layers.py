"""Dense, Activation, Flatten, Reshape, Permute, RepeatVector, Lambda, Masking, merging layers."""
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers
from parity import check

x = np.linspace(-1, 1, 24).reshape(2, 3, 4).astype("float32")
d = layers.Dense(2, use_bias=False)
d.build(x.shape)
d.set_weights([np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0], [-1.0, 1.0]], "float32")])
check("dense on the last axis", d(x))
check("flatten", layers.Flatten()(x))
check("reshape", layers.Reshape((4, -1))(x))
check("permute", layers.Permute((2, 1))(x))
check("repeat", layers.RepeatVector(2)(x[:, 0]))
check("lambda", layers.Lambda(lambda t: t * 2.0 + 1.0)(x[0]))
check("activation", layers.Activation("relu")(x[0]))
check("leaky", layers.LeakyReLU(negative_slope=0.2)(x[0]))
check("softmax", layers.Softmax(axis=-1)(x[0]))
check("relu layer", layers.ReLU(max_value=0.5)(x[0]))
p = layers.PReLU(alpha_initializer="ones")
check("prelu", p(x[0]))
a, b = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 5.0]])
for layer in (layers.Add(), layers.Subtract(), layers.Multiply(), layers.Average(), layers.Maximum(), layers.Minimum(),
              layers.Concatenate(), layers.Dot(axes=1)):
    check(type(layer).__name__, layer([a, b]))
check("concatenate axis", layers.concatenate([x, x], axis=1).shape)
check("rescaling", layers.Rescaling(1.0 / 127.5, offset=-1)(np.array([0.0, 255.0], "float32")))
check("zero padding", layers.ZeroPadding1D(1)(x).shape)
check("masking", layers.Masking(0.0)(np.array([[[1.0], [0.0]]], "float32"))._keras_mask)
check("gaussian noise off", layers.GaussianNoise(1.0)(x[0], training=False))
check("identity", layers.Identity()(a))
check("config", {k: v for k, v in layers.Dense(3, activation="relu", name="d").get_config().items()
                 if k in ("name", "units", "activation", "use_bias", "trainable")})
check("from_config", layers.Dense.from_config(layers.Dense(3).get_config()).units)
check("add function", layers.add([a, b]))
check("names", [layers.Dense(1).name.startswith("dense"), layers.Conv2D(1, 1).name.startswith("conv2d")])
