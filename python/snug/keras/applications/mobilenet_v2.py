"""MobileNetV2: narrow tensors between blocks that widen, filter each channel, and narrow again."""
from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import check, decode_predictions, entry, finish, of_mode, pooled  # noqa: F401

preprocess_input = of_mode("tf")
#           filters, stride, expansion
_BLOCKS = ((16, 1, 1), (24, 2, 6), (24, 1, 6), (32, 2, 6), (32, 1, 6), (32, 1, 6), (64, 2, 6), (64, 1, 6), (64, 1, 6), (64, 1, 6),
           (96, 1, 6), (96, 1, 6), (96, 1, 6), (160, 2, 6), (160, 1, 6), (160, 1, 6), (320, 1, 6))


def rounded(value, divisor=8):
    """The nearest multiple, not more than a tenth below."""
    near = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return near + divisor if near < 0.9 * value else near


def pads(x, kernel):
    """Zeros before a strided convolution, so that it ends at the last pixel."""
    rows, columns = x.shape[1:3]
    odd = (1, 1) if rows is None else (1 - rows % 2, 1 - columns % 2)
    half = kernel // 2
    return ((half - odd[0], half), (half - odd[1], half))


def norm(x, name):
    return L.BatchNormalization(axis=-1, epsilon=1e-3, momentum=0.999, name=name)(x)


def _block(x, filters, stride, expansion, i):
    before, prefix = x, f"block_{i}_" if i else "expanded_conv_"
    channels = x.shape[-1]
    if i:
        x = L.Conv2D(expansion * channels, 1, padding="same", use_bias=False, activation=None, name=prefix + "expand")(x)
        x = L.ReLU(6.0, name=prefix + "expand_relu")(norm(x, prefix + "expand_BN"))
    if stride == 2:
        x = L.ZeroPadding2D(padding=pads(x, 3), name=prefix + "pad")(x)
    x = L.DepthwiseConv2D(3, strides=stride, activation=None, use_bias=False, padding="same" if stride == 1 else "valid",
                          name=prefix + "depthwise")(x)
    x = L.ReLU(6.0, name=prefix + "depthwise_relu")(norm(x, prefix + "depthwise_BN"))
    x = L.Conv2D(filters, 1, padding="same", use_bias=False, activation=None, name=prefix + "project")(x)
    x = norm(x, prefix + "project_BN")
    return L.Add(name=prefix + "add")([before, x]) if channels == filters and stride == 1 else x


def MobileNetV2(input_shape=None, alpha=1.0, include_top=True, weights="imagenet", input_tensor=None, pooling=None, classes=1000,
                classifier_activation="softmax", name=None):
    check(weights, include_top, classes)
    inputs = entry(input_shape, input_tensor, 224, 32, include_top)
    x = L.Conv2D(rounded(32 * alpha), 3, strides=(2, 2), padding="same", use_bias=False, name="Conv1")(inputs)
    x = L.ReLU(6.0, name="Conv1_relu")(norm(x, "bn_Conv1"))
    for i, (filters, stride, expansion) in enumerate(_BLOCKS):
        x = _block(x, rounded(int(filters * alpha)), stride, expansion, i)
    last = rounded(1280 * alpha) if alpha > 1.0 else 1280
    x = L.Conv2D(last, 1, use_bias=False, name="Conv_1")(x)
    x = L.ReLU(6.0, name="out_relu")(norm(x, "Conv_1_bn"))
    if include_top:
        x = L.GlobalAveragePooling2D()(x)
        x = L.Dense(classes, activation=classifier_activation, name="predictions")(x)
    else:
        x = pooled(x, pooling, names=False)
    return finish(inputs, x, name or f"mobilenetv2_{alpha:0.2f}_{inputs.shape[1]}", weights)
