"""DenseNet121, 169 and 201: each convolution reads all that its block has made so far."""
import functools

from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import decode_predictions, head, network, of_mode  # noqa: F401
from snug.keras.applications.resnet import EPSILON

preprocess_input = of_mode("torch")
GROWTH = 32


def _norm_act(x, name, act=None):
    x = L.BatchNormalization(axis=3, epsilon=EPSILON, name=name + "_bn")(x)
    return L.Activation("relu", name=act or name + "_relu")(x)


def _conv(x, name):
    new = _norm_act(x, name + "_0")
    new = L.Conv2D(4 * GROWTH, 1, use_bias=False, name=name + "_1_conv")(new)
    new = _norm_act(new, name + "_1")
    new = L.Conv2D(GROWTH, 3, padding="same", use_bias=False, name=name + "_2_conv")(new)
    return L.Concatenate(axis=3, name=name + "_concat")([x, new])


def _transition(x, name):
    x = _norm_act(x, name)
    x = L.Conv2D(int(x.shape[3] * 0.5), 1, use_bias=False, name=name + "_conv")(x)
    return L.AveragePooling2D(2, strides=2, name=name + "_pool")(x)


def _densenet(depths, inputs, settings):
    x = L.ZeroPadding2D(padding=((3, 3), (3, 3)))(inputs)
    x = L.Conv2D(64, 7, strides=2, use_bias=False, name="conv1_conv")(x)
    x = _norm_act(x, "conv1")
    x = L.ZeroPadding2D(padding=((1, 1), (1, 1)))(x)
    x = L.MaxPooling2D(3, strides=2, name="pool1")(x)
    for s, depth in enumerate(depths, 2):
        for b in range(1, depth + 1):
            x = _conv(x, f"conv{s}_block{b}")
        x = _transition(x, f"pool{s}") if s < 5 else x
    x = L.BatchNormalization(axis=3, epsilon=EPSILON, name="bn")(x)
    x = L.Activation("relu", name="relu")(x)
    return head(x, settings)


DenseNet121, DenseNet169, DenseNet201 = (network(functools.partial(_densenet, d), f"densenet{n}", f"DenseNet{n}")
                                         for n, d in ((121, (6, 12, 24, 16)), (169, (6, 12, 32, 32)), (201, (6, 12, 48, 32))))
