"""Xception: separable convolutions with shortcuts."""
from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import decode_predictions, head, network, of_mode  # noqa: F401

preprocess_input = of_mode("tf")


def _norm(x, name=None):
    return L.BatchNormalization(axis=-1, **({"name": name} if name else {}))(x)


def _separable(x, filters, name, act):
    """act: before the convolution (then named after it), or behind it."""
    if act == "before":
        x = L.Activation("relu", name=name + "_act")(x)
    x = L.SeparableConv2D(filters, (3, 3), padding="same", use_bias=False, name=name)(x)
    x = _norm(x, name + "_bn")
    return L.Activation("relu", name=name + "_act")(x) if act == "behind" else x


def _down(x, filters, name):
    """Two separable convolutions, a pooling, and a strided shortcut; a pair of filters: one each."""
    one, two = filters
    residual = _norm(L.Conv2D(two, (1, 1), strides=(2, 2), padding="same", use_bias=False)(x))
    x = x if name == "block2" else L.Activation("relu", name=name + "_sepconv1_act")(x)
    x = _separable(x, one, name + "_sepconv1", None)
    x = _separable(x, two, name + "_sepconv2", "before")
    x = L.MaxPooling2D((3, 3), strides=(2, 2), padding="same", name=name + "_pool")(x)
    return L.Add()([x, residual])


def _xception(inputs, settings):
    x = L.Conv2D(32, (3, 3), strides=(2, 2), use_bias=False, name="block1_conv1")(inputs)
    x = L.Activation("relu", name="block1_conv1_act")(_norm(x, "block1_conv1_bn"))
    x = L.Conv2D(64, (3, 3), use_bias=False, name="block1_conv2")(x)
    x = L.Activation("relu", name="block1_conv2_act")(_norm(x, "block1_conv2_bn"))
    for b, filters in ((2, 128), (3, 256), (4, 728)):
        x = _down(x, (filters, filters), f"block{b}")
    for b in range(5, 13):
        before = x
        for c in (1, 2, 3):
            x = _separable(x, 728, f"block{b}_sepconv{c}", "before")
        x = L.Add()([x, before])
    x = _down(x, (728, 1024), "block13")
    x = _separable(x, 1536, "block14_sepconv1", "behind")
    x = _separable(x, 2048, "block14_sepconv2", "behind")
    return head(x, settings, names=False)


Xception = network(_xception, "xception", "Xception", 299, 71)
