"""EfficientNetV2: EfficientNet's blocks, of which the first ones filter and narrow in one convolution."""
import math

from snug.keras import layers as L
from snug.keras.applications.efficientnet import CONV, conv, norm_act, top, weigh
from snug.keras.applications.imagenet_utils import DEVIATION, MEAN, check, decode_predictions, entry, finish, of_mode, pooled  # noqa: F401

preprocess_input = of_mode(None)
#        repeats, filters in, filters out, expansion, weighed, stride, fused
_B = ((1, 32, 16, 1, 0, 1, 1), (2, 16, 32, 4, 0, 2, 1), (2, 32, 48, 4, 0, 2, 1), (3, 48, 96, 4, 1, 2, 0), (5, 96, 112, 6, 1, 1, 0),
      (8, 112, 192, 6, 1, 2, 0))
_S = ((2, 24, 24, 1, 0, 1, 1), (4, 24, 48, 4, 0, 2, 1), (4, 48, 64, 4, 0, 2, 1), (6, 64, 128, 4, 1, 2, 0), (9, 128, 160, 6, 1, 1, 0),
      (15, 160, 256, 6, 1, 2, 0))
_M = ((3, 24, 24, 1, 0, 1, 1), (5, 24, 48, 4, 0, 2, 1), (5, 48, 80, 4, 0, 2, 1), (7, 80, 160, 4, 1, 2, 0), (14, 160, 176, 6, 1, 1, 0),
      (18, 176, 304, 6, 1, 2, 0), (5, 304, 512, 6, 1, 1, 0))
_L = ((4, 32, 32, 1, 0, 1, 1), (7, 32, 64, 4, 0, 2, 1), (7, 64, 96, 4, 0, 2, 1), (10, 96, 192, 4, 1, 2, 0), (19, 192, 224, 6, 1, 1, 0),
      (25, 224, 384, 6, 1, 2, 0), (7, 384, 640, 6, 1, 1, 0))
#           blocks, width, depth, size
_KINDS = {"B0": (_B, 1.0, 1.0, 224), "B1": (_B, 1.0, 1.1, 240), "B2": (_B, 1.1, 1.2, 260), "B3": (_B, 1.2, 1.4, 300),
          "S": (_S, 1.0, 1.0, 384), "M": (_M, 1.0, 1.0, 480), "L": (_L, 1.0, 1.0, 480)}


def _rounded(filters, width):
    return max(8, int(filters * width + 4) // 8 * 8)


def _norm_act(x, prefix, act=True):
    return norm_act(x, prefix, act, momentum=0.9)


def _filtered(x, row, name):
    """A block up to where it narrows."""
    narrow, _, expansion, weighed, stride, fused = row
    wide = narrow * expansion
    if expansion != 1:
        x = conv(x, wide, 3 if fused else 1, name + "expand_conv", strides=stride if fused else 1, use_bias=False)
        x = _norm_act(x, name + "expand_")
    if not fused:
        x = L.DepthwiseConv2D(3, strides=stride, padding="same", use_bias=False, depthwise_initializer=CONV,
                              name=name + "dwconv2")(x)
        x = _norm_act(x, name)
    return weigh(x, wide, max(1, int(narrow * 0.25)), name) if weighed else x


def _block(inputs, row, drop, name):
    narrow, out, expansion, _, stride, fused = row
    alone = fused and expansion == 1        # one convolution does it all
    x = _filtered(inputs, row, name)
    x = conv(x, out, 3 if alone else 1, name + "project_conv", strides=stride if alone else 1, use_bias=False)
    x = _norm_act(x, name + "project_", alone)
    if stride == 1 and narrow == out:
        x = L.Dropout(drop, noise_shape=(None, 1, 1, 1), name=name + "drop")(x) if drop else x
        x = L.Add(name=name + "add")([x, inputs])
    return x


def _blocks(x, blocks, width, depth):
    whole, done = float(sum(b[0] for b in blocks)), 0
    for i, (repeats, narrow, out, expansion, weighed, stride, fused) in enumerate(blocks):
        narrow, out = _rounded(narrow, width), _rounded(out, width)
        for j in range(math.ceil(depth * repeats)):
            row = (narrow if j == 0 else out, out, expansion, weighed, stride if j == 0 else 1, fused)
            x = _block(x, row, 0.2 * done / whole, f"block{i + 1}{chr(j + 97)}_")
            done += 1
    return x


def _prepared(x, kind):
    if not kind.startswith("B") or x.shape[-1] != 3:
        return L.Rescaling(scale=1.0 / 128.0, offset=-1)(x)
    x = L.Rescaling(scale=1.0 / 255)(x)
    return L.Normalization(mean=MEAN["torch"], variance=[d**2 for d in DEVIATION], axis=3)(x)


def _network(kind, blocks, width, depth, size):
    def make(include_top=True, weights="imagenet", input_tensor=None, input_shape=None, pooling=None, classes=1000,
             classifier_activation="softmax", include_preprocessing=True, name=f"efficientnetv2-{kind.lower()}"):
        check(weights, include_top, classes)
        inputs = entry(input_shape, input_tensor, size, 32, include_top)
        x = _prepared(inputs, kind) if include_preprocessing else inputs
        x = conv(x, _rounded(blocks[0][1], width), 3, "stem_conv", strides=2, use_bias=False)
        x = _blocks(_norm_act(x, "stem_"), blocks, width, depth)
        x = _norm_act(conv(x, _rounded(1280, width), 1, "top_conv", use_bias=False), "top_")
        x = top(x, classes, classifier_activation, 0.2) if include_top else pooled(x, pooling)
        return finish(inputs, x, name, weights)
    make.__name__ = make.__qualname__ = f"EfficientNetV2{kind}"
    return make


globals().update({f"EfficientNetV2{kind}": _network(kind, *row) for kind, row in _KINDS.items()})
