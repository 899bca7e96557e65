"""Each convolution and pooling layer once: shape of the output and its sum under fixed weights."""
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers as L
from parity import check

x1 = np.sin(np.arange(2 * 8 * 3)).reshape(2, 8, 3).astype("float32")
x2 = np.sin(np.arange(2 * 6 * 6 * 3)).reshape(2, 6, 6, 3).astype("float32")
x3 = np.sin(np.arange(1 * 4 * 4 * 4 * 2)).reshape(1, 4, 4, 4, 2).astype("float32")
cases = [
    (L.Conv1D(4, 3, strides=2), x1), (L.Conv1D(3, 2, padding="causal", dilation_rate=2), x1), (L.Conv2D(4, (2, 3), padding="same"), x2),
    (L.Conv3D(2, 2), x3), (L.Conv1DTranspose(4, 3, strides=2), x1), (L.Conv2DTranspose(4, 3, strides=2, padding="same"), x2),
    (L.Conv3DTranspose(2, 2), x3), (L.DepthwiseConv1D(3), x1), (L.DepthwiseConv2D(3, strides=2), x2), (L.SeparableConv1D(4, 3), x1),
    (L.SeparableConv2D(4, 3, padding="same"), x2), (L.MaxPooling1D(2), x1), (L.MaxPooling2D((2, 3)), x2), (L.MaxPooling3D(2), x3),
    (L.AveragePooling1D(3, strides=2, padding="same"), x1), (L.AveragePooling2D(3, strides=1, padding="same"), x2), (L.AveragePooling3D(2), x3),
    (L.GlobalMaxPooling1D(), x1), (L.GlobalMaxPooling2D(), x2), (L.GlobalMaxPooling3D(), x3), (L.GlobalAveragePooling1D(), x1),
    (L.GlobalAveragePooling2D(), x2), (L.GlobalAveragePooling3D(), x3), (L.UpSampling1D(2), x1), (L.UpSampling2D((2, 1)), x2), (L.UpSampling3D(2), x3),
    (L.ZeroPadding1D((1, 2)), x1), (L.ZeroPadding2D(2), x2), (L.ZeroPadding3D(1), x3), (L.Cropping1D(1), x1), (L.Cropping2D(((1, 0), (2, 1))), x2),
    (L.Cropping3D(1), x3),
]
for i, (layer, x) in enumerate(cases):
    layer.build(x.shape)
    layer.set_weights([np.cos(np.arange(w.size)).reshape(w.shape) * 0.5 for w in layer.get_weights()])
    y = layer(x)
    name = f"{i} {type(layer).__name__}"
    check(name, [y.shape, tf.reduce_sum(y), tf.reduce_sum(y * y)], tol=1e-4)
    check(name + " shape", tuple(layer.compute_output_shape((None,) + x.shape[1:])))
    check(name + " weights", [w.shape for w in layer.get_weights()])
