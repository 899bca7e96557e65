"""Golden cases of convolutions and poolings: every class of layers_conv.c and layers_pool.c, with each of its settings."""
import numpy as np
from record import L, head, keras, sgd

R = np.random.RandomState(2)
STEPS, PICTURES, VOLUMES, Y = R.normal(size=(16, 9, 4)), R.normal(size=(16, 6, 5, 3)), R.normal(size=(16, 4, 5, 3, 2)), R.normal(size=(16, 3))


def case(name, x, *layers):
    """Layers are made anew for each dtype."""
    return (name, lambda: [L.Input(x.shape[1:])] + [l() for l in layers] + [L.Flatten()] + head(), x, Y, sgd, "mse", [], 3)


CASES = [
    case("conv1d_valid", STEPS, lambda: L.Conv1D(5, 3, strides=2, activation="tanh")),
    case("conv1d_same", STEPS, lambda: L.Conv1D(4, 4, padding="same", use_bias=False), lambda: L.Conv1D(3, 2, strides=3, padding="same")),
    case("conv1d_causal", STEPS, lambda: L.Conv1D(3, 3, padding="causal", dilation_rate=2, activation="relu"), lambda: L.Conv1D(2, 2, padding="causal", strides=2)),
    case("conv1d_groups", STEPS, lambda: L.Conv1D(6, 3, groups=2, padding="same")),
    case("conv3d_valid", VOLUMES, lambda: L.Conv3D(3, (2, 3, 2), activation="tanh")),
    case("conv3d_same", VOLUMES, lambda: L.Conv3D(2, 3, strides=(2, 1, 2), padding="same"), lambda: L.Conv3D(2, 2, padding="same", use_bias=False)),
    case("conv3d_dilated", VOLUMES, lambda: L.Conv3D(2, 2, dilation_rate=(2, 3, 1))),
    case("depthwise1d", STEPS, lambda: L.DepthwiseConv1D(3, strides=2, padding="same", depth_multiplier=2, activation="tanh")),
    case("depthwise2d", PICTURES, lambda: L.DepthwiseConv2D(3, padding="same", activation="relu"), lambda: L.DepthwiseConv2D((2, 3), strides=2, depth_multiplier=2)),
    case("depthwise2d_dilated", PICTURES, lambda: L.DepthwiseConv2D(2, dilation_rate=2, padding="same", use_bias=False)),
    case("separable1d", STEPS, lambda: L.SeparableConv1D(5, 3, padding="same", depth_multiplier=2, activation="tanh")),
    case("separable2d", PICTURES, lambda: L.SeparableConv2D(4, 3, strides=2, padding="same", depth_multiplier=2), lambda: L.SeparableConv2D(3, 2, use_bias=False)),
    case("conv1d_transpose", STEPS, lambda: L.Conv1DTranspose(3, 3, strides=2, activation="tanh"), lambda: L.Conv1DTranspose(2, 2, strides=3, padding="same")),
    case("conv1d_transpose_padded", STEPS, lambda: L.Conv1DTranspose(2, 3, strides=2, output_padding=1, padding="same"), lambda: L.Conv1DTranspose(2, 2, strides=3, output_padding=2)),
    case("conv2d_transpose", PICTURES, lambda: L.Conv2DTranspose(3, 3, strides=2, padding="same", activation="relu")),
    case("conv2d_transpose_valid", PICTURES, lambda: L.Conv2DTranspose(2, (2, 3), strides=(3, 2), use_bias=False)),
    case("conv2d_transpose_padded", PICTURES, lambda: L.Conv2DTranspose(2, 3, strides=2, output_padding=(1, 0), padding="same")),
    case("conv3d_transpose", VOLUMES, lambda: L.Conv3DTranspose(2, 3, strides=2, padding="same", activation="tanh")),
    case("conv3d_transpose_valid", VOLUMES, lambda: L.Conv3DTranspose(2, (3, 2, 2), strides=(1, 2, 3))),
    case("pool1d", STEPS, lambda: L.Conv1D(4, 1), lambda: L.MaxPooling1D(3, strides=2, padding="same"), lambda: L.AveragePooling1D(2, strides=1)),
    case("pool1d_average", STEPS, lambda: L.Conv1D(4, 1), lambda: L.AveragePooling1D(4, padding="same"), lambda: L.MaxPooling1D(2)),
    case("pool3d_max", VOLUMES, lambda: L.Conv3D(3, 1), lambda: L.MaxPooling3D((2, 3, 2), strides=(1, 2, 2), padding="same")),
    case("pool3d_average", VOLUMES, lambda: L.Conv3D(3, 1), lambda: L.AveragePooling3D((3, 2, 2), strides=(2, 1, 2), padding="same"), lambda: L.AveragePooling3D((1, 2, 2))),
    case("global1d", STEPS, lambda: L.Conv1D(4, 2), lambda: L.GlobalAveragePooling1D()),
    case("global1d_max", STEPS, lambda: L.Conv1D(4, 2), lambda: L.GlobalMaxPooling1D(keepdims=True)),
    case("global3d", VOLUMES, lambda: L.Conv3D(4, 2), lambda: L.GlobalAveragePooling3D(keepdims=True)),
    case("global3d_max", VOLUMES, lambda: L.Conv3D(4, 2), lambda: L.GlobalMaxPooling3D()),
    case("global2d_keepdims", PICTURES, lambda: L.Conv2D(4, 2), lambda: L.GlobalAveragePooling2D(keepdims=True)),
]
CASES += [
    case("adaptive1d", STEPS, lambda: L.Conv1D(4, 1), lambda: L.AdaptiveAveragePooling1D(4), lambda: L.AdaptiveMaxPooling1D(2)),
    case("adaptive2d", PICTURES, lambda: L.Conv2D(4, 1), lambda: L.AdaptiveAveragePooling2D((4, 3))),
    case("adaptive2d_max", PICTURES, lambda: L.Conv2D(4, 1), lambda: L.AdaptiveMaxPooling2D((3, 2))),
    case("adaptive3d", VOLUMES, lambda: L.Conv3D(3, 1), lambda: L.AdaptiveAveragePooling3D((3, 2, 2))),
    # data of its own: in VOLUMES two neighbours along the height are equal but for one rounding
    case("adaptive3d_max", np.random.RandomState(5).normal(size=(16, 4, 5, 3, 2)), lambda: L.Conv3D(3, 1), lambda: L.AdaptiveMaxPooling3D((3, 2, 2))),
]
STEP_IDS = R.randint(0, 4, size=(16, 6)).astype(np.int32)
STEP_IDS[:, 0] += 1  # a row that is all masked has no mean
CASES += [(f"global1d_masked{name}", lambda keep=keep: [L.Input((6,), dtype="int32"), L.Embedding(5, 3, mask_zero=True),
                                                        L.GlobalAveragePooling1D(keepdims=keep), L.Flatten()] + head(), STEP_IDS, Y, sgd, "mse", [], 3)
          for name, keep in (("", False), ("_keepdims", True))]
F32_ONLY = ["pool3d_max", "pool3d_average", "adaptive3d", "adaptive3d_max"]  # TensorFlow pools no volumes in f64
