"""NASNetMobile and Large: cells that a search found, each fed by the two before it."""
from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import check, decode_predictions, entry, finish, of_mode, pooled  # noqa: F401
from snug.keras.applications.mobilenet_v2 import pads

preprocess_input = of_mode("tf")


def _norm(x, name):
    return L.BatchNormalization(axis=-1, momentum=0.9997, epsilon=1e-3, name=name)(x)


def _conv(x, filters, name):
    return L.Conv2D(filters, 1, padding="same", use_bias=False, kernel_initializer="he_normal", name=name)(x)


def _pool(x, kind, name, strides=2, padding="valid"):
    return kind((3, 3), strides=strides, padding=padding, name=name)(x)


def _separable(x, filters, kernel, name, strides=1):
    """Twice: bend, filter, normalise; the first may halve the picture."""
    x = L.Activation("relu")(x)
    if strides == 2:
        x = L.ZeroPadding2D(padding=pads(x, kernel), name="separable_conv_1_pad_" + name)(x)
    x = L.SeparableConv2D(filters, kernel, strides=strides, padding="valid" if strides == 2 else "same", use_bias=False,
                          name="separable_conv_1_" + name)(x)
    x = L.Activation("relu")(_norm(x, "separable_conv_1_bn_" + name))
    x = L.SeparableConv2D(filters, kernel, padding="same", use_bias=False, name="separable_conv_2_" + name)(x)
    return _norm(x, "separable_conv_2_bn_" + name)


def _halved(p, filters, i):
    """The cell before the last, at half the size: every second pixel, and those beside them."""
    p = L.Activation("relu", name=f"adjust_relu_1_{i}")(p)
    one = L.AveragePooling2D((1, 1), strides=2, padding="valid", name=f"adjust_avg_pool_1_{i}")(p)
    one = _conv(one, filters // 2, f"adjust_conv_1_{i}")
    two = L.Cropping2D(cropping=((1, 0), (1, 0)))(L.ZeroPadding2D(padding=((0, 1), (0, 1)))(p))
    two = L.AveragePooling2D((1, 1), strides=2, padding="valid", name=f"adjust_avg_pool_2_{i}")(two)
    two = _conv(two, filters // 2, f"adjust_conv_2_{i}")
    return _norm(L.Concatenate(axis=-1)([one, two]), f"adjust_bn_{i}")


def _adjusted(p, x, filters, i):
    """The cell before the last, in the shape of the last."""
    if p is None:
        return x
    if p.shape[-2] != x.shape[-2]:
        return _halved(p, filters, i)
    if p.shape[-1] == filters:
        return p
    p = _conv(L.Activation("relu")(p), filters, f"adjust_conv_projection_{i}")
    return _norm(p, f"adjust_bn_{i}")


def _entered(x, p, filters, kind, i):
    p = _adjusted(p, x, filters, i)
    h = _conv(L.Activation("relu")(x), filters, f"{kind}_conv_1_{i}")
    return p, _norm(h, f"{kind}_bn_1_{i}")


def _normal(x, p, filters, i):
    before = x
    p, h = _entered(x, p, filters, "normal", i)
    x1 = [_separable(h, filters, 5, f"normal_left1_{i}"), _separable(p, filters, 3, f"normal_right1_{i}")]
    x1 = L.Add(name=f"normal_add_1_{i}")(x1)
    x2 = [_separable(p, filters, 5, f"normal_left2_{i}"), _separable(p, filters, 3, f"normal_right2_{i}")]
    x2 = L.Add(name=f"normal_add_2_{i}")(x2)
    x3 = L.Add(name=f"normal_add_3_{i}")([_pool(h, L.AveragePooling2D, f"normal_left3_{i}", 1, "same"), p])
    x4 = [_pool(p, L.AveragePooling2D, f"normal_{side}4_{i}", 1, "same") for side in ("left", "right")]
    x4 = L.Add(name=f"normal_add_4_{i}")(x4)
    x5 = L.Add(name=f"normal_add_5_{i}")([_separable(h, filters, 3, f"normal_left5_{i}"), h])
    return L.Concatenate(axis=-1, name=f"normal_concat_{i}")([p, x1, x2, x3, x4, x5]), before


def _reduction(x, p, filters, i):
    before = x
    p, h = _entered(x, p, filters, "reduction", i)
    padded = L.ZeroPadding2D(padding=pads(h, 3), name=f"reduction_pad_1_{i}")(h)
    x1 = [_separable(h, filters, 5, f"reduction_left1_{i}", 2), _separable(p, filters, 7, f"reduction_right1_{i}", 2)]
    x1 = L.Add(name=f"reduction_add_1_{i}")(x1)
    x2 = [_pool(padded, L.MaxPooling2D, f"reduction_left2_{i}"), _separable(p, filters, 7, f"reduction_right2_{i}", 2)]
    x2 = L.Add(name=f"reduction_add_2_{i}")(x2)
    x3 = [_pool(padded, L.AveragePooling2D, f"reduction_left3_{i}"), _separable(p, filters, 5, f"reduction_right3_{i}", 2)]
    x3 = L.Add(name=f"reduction_add3_{i}")(x3)
    x4 = L.Add()([x2, _pool(x1, L.AveragePooling2D, f"reduction_left4_{i}", 1, "same")])
    x5 = [_separable(x1, filters, 3, f"reduction_left4_{i}"), _pool(padded, L.MaxPooling2D, f"reduction_right5_{i}")]
    x5 = L.Add(name=f"reduction_add4_{i}")(x5)
    return L.Concatenate(axis=-1, name=f"reduction_concat_{i}")([x2, x3, x4, x5]), before


def _cells(x, filters, blocks, skip):
    x, p = _reduction(x, None, filters // 4, "stem_1")
    x, p = _reduction(x, p, filters // 2, "stem_2")
    for stage in range(3):
        if stage:
            x, before = _reduction(x, p, filters * 2**stage, f"reduce_{stage * blocks}")
            p = p if skip else before
        for i in range(blocks):
            x, p = _normal(x, p, filters * 2**stage, f"{stage * blocks + i + (stage > 0)}")
    return L.Activation("relu")(x)


def _network(title, default, size, penultimate, blocks, stem, skip):
    def make(input_shape=None, include_top=True, weights="imagenet", input_tensor=None, pooling=None, classes=1000,
             classifier_activation="softmax", name=default):
        check(weights, include_top, classes)
        if input_shape is None and size == 224:
            input_shape = (224, 224, 3)
        inputs = entry(input_shape, input_tensor, size, 32, include_top)
        x = L.Conv2D(stem, 3, strides=2, padding="valid", use_bias=False, kernel_initializer="he_normal", name="stem_conv1")(inputs)
        x = _cells(_norm(x, "stem_bn1"), penultimate // 24, blocks, skip)
        if include_top:
            x = L.Dense(classes, activation=classifier_activation, name="predictions")(L.GlobalAveragePooling2D()(x))
        else:
            x = pooled(x, pooling, names=False)
        return finish(inputs, x, name, weights)
    make.__name__ = make.__qualname__ = title
    return make


NASNetMobile = _network("NASNetMobile", "nasnet_mobile", 224, 1056, 4, 32, False)
NASNetLarge = _network("NASNetLarge", "nasnet_large", 331, 4032, 6, 96, True)
