"""Convolution and pooling layers against fixed weights."""
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers
from parity import check, raises

r = np.random.RandomState(0)
x = r.uniform(-1, 1, (2, 6, 6, 3)).astype("float32")


def run(layer, data=x):
    layer.build(data.shape)
    layer.set_weights([r.uniform(-0.5, 0.5, w.shape).astype("float32") for w in layer.get_weights()])
    return layer(data)


check("conv2d", run(layers.Conv2D(4, 3, activation="relu")), tol=2e-5)
check("same strided", run(layers.Conv2D(2, (3, 2), strides=2, padding="same")), tol=2e-5)
check("dilated", run(layers.Conv2D(2, 3, dilation_rate=2, use_bias=False)), tol=2e-5)
check("groups", run(layers.Conv2D(4, 3, groups=2), x[..., :2]), tol=2e-5)
check("depthwise", run(layers.DepthwiseConv2D(3, depth_multiplier=2))[0], tol=2e-5)
check("separable", run(layers.SeparableConv2D(4, 3)), tol=2e-5)
check("transpose", run(layers.Conv2DTranspose(2, 3, strides=2, padding="same"))[0], tol=2e-5)
check("conv1d", run(layers.Conv1D(3, 2, padding="causal"), x[:, 0]), tol=2e-5)
check("conv3d", run(layers.Conv3D(2, 2), x[:, :, :, :, None]).shape)
check("max pool", layers.MaxPooling2D()(x))
check("max pool same", layers.MaxPool2D((3, 3), strides=2, padding="same")(x))
check("average pool", layers.AveragePooling2D(2)(x))
check("global average", layers.GlobalAveragePooling2D()(x))
check("global max kept", layers.GlobalMaxPooling2D(keepdims=True)(x))
check("pool 1d", layers.MaxPooling1D(2)(x[:, 0]))
check("global 1d", layers.GlobalAveragePooling1D()(x[:, 0]))
check("upsampling", layers.UpSampling2D(2)(x[:1, :2, :2]))
check("upsampling bilinear", layers.UpSampling2D(2, interpolation="bilinear")(x[:1, :2, :2, :1]))
check("cropping", layers.Cropping2D(1)(x).shape)
check("padding", layers.ZeroPadding2D(((1, 0), (0, 2)))(x).shape)
c = layers.Conv2D(8, 3, padding="same")
check("compute_output_shape", c.compute_output_shape((None, 28, 28, 1)))
model = keras.Sequential([keras.Input((28, 28, 1)), c, layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(10)])
check("shapes", [l.output.shape for l in model.layers])
check("params", model.count_params())
raises(ValueError, lambda: layers.Conv2D(4, 3, padding="no such"))
