"""data_format="channels_first": every kind of layer that has it, and normalisation of axis 1."""
import numpy as np
from record import L, head, keras, sgd

R = np.random.RandomState(12)
STEPS, PICTURES, VOLUMES, Y = R.normal(size=(16, 4, 9)), R.normal(size=(16, 3, 6, 5)), R.normal(size=(16, 2, 4, 5, 3)), R.normal(size=(16, 3))
MOVIES = R.normal(size=(16, 3, 2, 4, 5))
XLA = {"jit_compile": True}  # TensorFlow's own kernels for the CPU have no gradients here
# Channels and the last axis differ in extent: Keras 3.15 adds the bias along the wrong one of two equal ones.
CF = {"data_format": "channels_first"}


def case(name, x, *layers):
    return (name, lambda: [L.Input(x.shape[1:])] + [l() for l in layers] + [L.Flatten()] + head(), x, Y, sgd, "mse", [], 3, 16, XLA)


CASES = [
    case("first_conv1d", STEPS, lambda: L.Conv1D(5, 3, strides=2, activation="tanh", **CF), lambda: L.MaxPooling1D(2, **CF)),
    case("first_conv2d", PICTURES, lambda: L.ZeroPadding2D(((1, 0), (0, 2)), **CF), lambda: L.Conv2D(4, 3, activation="relu", **CF), lambda: L.BatchNormalization(axis=1),
         lambda: L.AveragePooling2D((2, 1), **CF), lambda: L.Conv2D(3, 2, padding="same", **CF)),
    case("first_conv3d", VOLUMES, lambda: L.Conv3D(3, 2, activation="tanh", **CF), lambda: L.ZeroPadding3D(1, **CF), lambda: L.Cropping3D((1, 0, 1), **CF)),
    case("first_depthwise", PICTURES, lambda: L.DepthwiseConv2D(3, padding="same", depth_multiplier=2, **CF), lambda: L.SeparableConv2D(3, 2, activation="tanh", **CF)),
    case("first_depthwise1d", STEPS, lambda: L.DepthwiseConv1D(3, **CF), lambda: L.SeparableConv1D(3, 2, **CF), lambda: L.ZeroPadding1D(1, **CF)),
    case("first_transpose", PICTURES, lambda: L.Conv2DTranspose(3, 3, strides=2, padding="same", activation="tanh", **CF), lambda: L.Cropping2D(((1, 2), (3, 0)), **CF)),
    case("first_global", PICTURES, lambda: L.Conv2D(3, 2, **CF), lambda: L.GlobalAveragePooling2D(**CF)),
    case("first_global_kept", PICTURES, lambda: L.Conv2D(3, 2, **CF), lambda: L.GlobalMaxPooling2D(keepdims=True, **CF), lambda: L.UpSampling2D((2, 3), **CF)),
    case("first_global1d", STEPS, lambda: L.Conv1D(4, 2, **CF), lambda: L.GlobalAveragePooling1D(**CF)),
    case("first_adaptive", PICTURES, lambda: L.Conv2D(4, 1, **CF), lambda: L.AdaptiveAveragePooling2D((4, 3), **CF)),
    ("first_flatten", lambda: [L.Input((3, 6, 5)), L.Conv2D(4, 3, **CF), L.Flatten(**CF)] + head(), PICTURES, Y, sgd, "mse", [], 3, 16, XLA),
    case("first_upsampled", PICTURES, lambda: L.Conv2D(2, 3, **CF), lambda: L.UpSampling2D(2, interpolation="bilinear", **CF), lambda: L.Resizing(5, 3, **CF), lambda: L.CenterCrop(4, 2, **CF)),
    case("first_pool3d", VOLUMES, lambda: L.Conv3D(5, 1, **CF), lambda: L.MaxPooling3D((2, 2, 1), **CF), lambda: L.GlobalAveragePooling3D(**CF)),
    case("first_norms", PICTURES, lambda: L.LayerNormalization(axis=1), lambda: L.Conv2D(6, 2, **CF), lambda: L.GroupNormalization(2, axis=1)),
    case("first_conv_lstm", MOVIES, lambda: L.ConvLSTM2D(3, 2, padding="same", return_sequences=True, **CF), lambda: L.ConvLSTM2D(2, 2, **CF)),
    case("first_distributed", MOVIES, lambda: L.TimeDistributed(L.Conv2D(3, 2, **CF)), lambda: L.TimeDistributed(L.Flatten(**CF))),
]
F32_ONLY = ["first_pool3d", "first_upsampled"]  # TensorFlow pools no volumes in f64, and resizes in f32
