"""MobileNetV3Small and Large: MobileNetV2's blocks, where channels are weighed and the bends are piecewise linear."""
from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import check, decode_predictions, entry, finish, of_mode, pooled  # noqa: F401
from snug.keras.applications.mobilenet_v2 import norm, pads, rounded

preprocess_input = of_mode(None)
#               expansion, filters, kernel, stride, weighed, hard swish (a kernel of None is the network's: 5, or 3 of a minimalistic one)
_SMALL = ((1, 16, 3, 2, True, False), (72 / 16, 24, 3, 2, False, False), (88 / 24, 24, 3, 1, False, False), (4, 40, None, 2, True, True),
          (6, 40, None, 1, True, True), (6, 40, None, 1, True, True), (3, 48, None, 1, True, True), (3, 48, None, 1, True, True),
          (6, 96, None, 2, True, True), (6, 96, None, 1, True, True), (6, 96, None, 1, True, True))
_LARGE = ((1, 16, 3, 1, False, False), (4, 24, 3, 2, False, False), (3, 24, 3, 1, False, False), (3, 40, None, 2, True, False),
          (3, 40, None, 1, True, False), (3, 40, None, 1, True, False), (6, 80, 3, 2, False, True), (2.5, 80, 3, 1, False, True),
          (2.3, 80, 3, 1, False, True), (2.3, 80, 3, 1, False, True), (6, 112, 3, 1, True, True), (6, 112, 3, 1, True, True),
          (6, 160, None, 2, True, True), (6, 160, None, 1, True, True), (6, 160, None, 1, True, True))


def _bend(x, swish):
    return (L.Activation("hard_swish") if swish else L.ReLU())(x)


def _weigh(x, channels, name):
    w = L.GlobalAveragePooling2D(keepdims=True, name=name + "avg_pool")(x)
    w = L.Conv2D(rounded(channels * 0.25), 1, padding="same", name=name + "conv")(w)
    w = L.ReLU(name=name + "relu")(w)
    w = L.Conv2D(channels, 1, padding="same", name=name + "conv_1")(w)
    w = L.ReLU(6.0)(w + 3.0) * (1.0 / 6.0)
    return L.Multiply(name=name + "mul")([x, w])


def _block(x, row, filters, i):
    expansion, _, kernel, stride, weighed, swish = row
    before, channels, prefix = x, x.shape[-1], f"expanded_conv_{i}_" if i else "expanded_conv_"
    wide = rounded(channels * expansion)
    if i:
        x = L.Conv2D(wide, 1, padding="same", use_bias=False, name=prefix + "expand")(x)
        x = _bend(norm(x, prefix + "expand_bn"), swish)
    if stride == 2:
        x = L.ZeroPadding2D(padding=pads(x, kernel), name=prefix + "depthwise_pad")(x)
    x = L.DepthwiseConv2D(kernel, strides=stride, padding="same" if stride == 1 else "valid", use_bias=False,
                          name=prefix + "depthwise")(x)
    x = _bend(norm(x, prefix + "depthwise_bn"), swish)
    if weighed:
        x = _weigh(x, wide, prefix + "squeeze_excite_")
    x = L.Conv2D(filters, 1, padding="same", use_bias=False, name=prefix + "project")(x)
    x = norm(x, prefix + "project_bn")
    return L.Add(name=prefix + "add")([before, x]) if stride == 1 and channels == filters else x


def _top(x, width, classes, rate, activation, swish):
    x = L.GlobalAveragePooling2D(keepdims=True)(x)
    x = _bend(L.Conv2D(width, 1, padding="same", use_bias=True, name="conv_2")(x), swish)
    x = L.Dropout(rate)(x) if rate > 0 else x
    x = L.Flatten()(L.Conv2D(classes, 1, padding="same", name="logits")(x))
    return L.Activation(activation, name="predictions")(x)


def _network(blocks, width, default):
    def make(input_shape=None, alpha=1.0, minimalistic=False, include_top=True, weights="imagenet", input_tensor=None, classes=1000,
             pooling=None, dropout_rate=0.2, classifier_activation="softmax", include_preprocessing=True, name=default):
        check(weights, include_top, classes)
        inputs = entry(input_shape, input_tensor, None, 32, include_top)
        x, swish = inputs, not minimalistic
        if include_preprocessing:
            x = L.Rescaling(scale=1.0 / 127.5, offset=-1.0)(x)
        x = L.Conv2D(16, 3, strides=(2, 2), padding="same", use_bias=False, name="conv")(x)
        x = _bend(norm(x, "conv_bn"), swish)
        for i, (expansion, filters, kernel, stride, weighed, bent) in enumerate(blocks):
            row = (expansion, filters, kernel or (5 if swish else 3), stride, weighed and swish, bent and swish)
            x = _block(x, row, rounded(filters * alpha), i)
        x = L.Conv2D(rounded(x.shape[-1] * 6), 1, padding="same", use_bias=False, name="conv_1")(x)
        x = _bend(norm(x, "conv_1_bn"), swish)
        last = rounded(width * alpha) if alpha > 1.0 else width
        x = _top(x, last, classes, dropout_rate, classifier_activation, swish) if include_top else pooled(x, pooling)
        return finish(inputs, x, name, weights)
    make.__name__ = make.__qualname__ = default
    return make


MobileNetV3Small = _network(_SMALL, 1024, "MobileNetV3Small")
MobileNetV3Large = _network(_LARGE, 1280, "MobileNetV3Large")
