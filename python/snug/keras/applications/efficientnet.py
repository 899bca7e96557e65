"""EfficientNetB0 to B7: blocks that widen, filter, weigh their channels and narrow; width and depth scaled together."""
import math

from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import check, decode_predictions, entry, finish, of_mode, pooled  # noqa: F401
from snug.keras.applications.mobilenet_v2 import pads, rounded

preprocess_input = of_mode(None)
#           kernel, repeats, filters in, filters out, expansion, stride
_BLOCKS = ((3, 1, 32, 16, 1, 1), (3, 2, 16, 24, 6, 2), (5, 2, 24, 40, 6, 2), (3, 3, 40, 80, 6, 2), (5, 3, 80, 112, 6, 1),
           (5, 4, 112, 192, 6, 2), (3, 1, 192, 320, 6, 1))
CONV = {"class_name": "VarianceScaling", "config": {"scale": 2.0, "mode": "fan_out", "distribution": "truncated_normal"}}
_DENSE = {"class_name": "VarianceScaling", "config": {"scale": 1.0 / 3.0, "mode": "fan_out", "distribution": "uniform"}}


def conv(x, filters, kernel, name, **more):
    return L.Conv2D(filters, kernel, padding=more.pop("padding", "same"), kernel_initializer=CONV, name=name, **more)(x)


def norm_act(x, prefix, act=True, **settings):
    x = L.BatchNormalization(axis=3, name=prefix + "bn", **settings)(x)
    return L.Activation("silu", name=prefix + "activation")(x) if act else x


def weigh(x, channels, squeezed, name):
    w = L.GlobalAveragePooling2D(name=name + "se_squeeze")(x)
    w = L.Reshape((1, 1, channels), name=name + "se_reshape")(w)
    w = conv(w, squeezed, 1, name + "se_reduce", activation="silu")
    w = conv(w, channels, 1, name + "se_expand", activation="sigmoid")
    return L.Multiply(name=name + "se_excite")([x, w])


def _block(inputs, kernel, narrow, out, expansion, stride, drop, name):
    filters, x = narrow * expansion, inputs
    if expansion != 1:
        x = norm_act(conv(x, filters, 1, name + "expand_conv", use_bias=False), name + "expand_")
    if stride == 2:
        x = L.ZeroPadding2D(padding=pads(x, kernel), name=name + "dwconv_pad")(x)
    x = L.DepthwiseConv2D(kernel, strides=stride, padding="valid" if stride == 2 else "same", use_bias=False,
                          depthwise_initializer=CONV, name=name + "dwconv")(x)
    x = norm_act(x, name)
    x = weigh(x, filters, max(1, int(narrow * 0.25)), name)
    x = norm_act(conv(x, out, 1, name + "project_conv", use_bias=False), name + "project_", False)
    if stride == 1 and narrow == out:
        if drop > 0:
            x = L.Dropout(drop, noise_shape=(None, 1, 1, 1), name=name + "drop")(x)
        x = L.Add(name=name + "add")([x, inputs])
    return x


def _stem(inputs, width):
    x = L.Rescaling(1.0 / 255.0)(inputs)
    x = L.Normalization(axis=3)(x)
    x = L.ZeroPadding2D(padding=pads(x, 3), name="stem_conv_pad")(x)
    x = conv(x, rounded(32 * width), 3, "stem_conv", strides=2, padding="valid", use_bias=False)
    return norm_act(x, "stem_")


def _blocks(x, width, depth, drop_rate):
    whole, done = float(sum(math.ceil(depth * b[1]) for b in _BLOCKS)), 0
    for i, (kernel, repeats, narrow, out, expansion, stride) in enumerate(_BLOCKS):
        narrow, out = rounded(narrow * width), rounded(out * width)
        for j in range(math.ceil(depth * repeats)):
            x = _block(x, kernel, narrow if j == 0 else out, out, expansion, stride if j == 0 else 1, drop_rate * done / whole,
                       f"block{i + 1}{chr(j + 97)}_")
            done += 1
    return x


def top(x, classes, activation, dropout):
    x = L.GlobalAveragePooling2D(name="avg_pool")(x)
    x = L.Dropout(dropout, name="top_dropout")(x)
    return L.Dense(classes, activation=activation, kernel_initializer=_DENSE, name="predictions")(x)


def _network(i, width, depth, size, dropout):
    def make(include_top=True, weights="imagenet", input_tensor=None, input_shape=None, pooling=None, classes=1000,
             classifier_activation="softmax", name=f"efficientnetb{i}"):
        check(weights, include_top, classes)
        inputs = entry(input_shape, input_tensor, size, 32, include_top)
        x = _blocks(_stem(inputs, width), width, depth, 0.2)
        x = norm_act(conv(x, rounded(1280 * width), 1, "top_conv", use_bias=False), "top_")
        x = top(x, classes, classifier_activation, dropout) if include_top else pooled(x, pooling)
        return finish(inputs, x, name, weights)
    make.__name__ = make.__qualname__ = f"EfficientNetB{i}"
    return make


(EfficientNetB0, EfficientNetB1, EfficientNetB2, EfficientNetB3, EfficientNetB4, EfficientNetB5, EfficientNetB6, EfficientNetB7) = (
    _network(i, *row) for i, row in enumerate(((1.0, 1.0, 224, 0.2), (1.0, 1.1, 240, 0.2), (1.1, 1.2, 260, 0.3), (1.2, 1.4, 300, 0.3),
                                               (1.4, 1.8, 380, 0.4), (1.6, 2.2, 456, 0.4), (1.8, 2.6, 528, 0.5), (2.0, 3.1, 600, 0.5))))
