"""ResNet50V2, 101V2 and 152V2: the same with normalisation before each convolution."""
import functools

from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import decode_predictions, head, network, of_mode  # noqa: F401
from snug.keras.applications.resnet import EPSILON

preprocess_input = of_mode("tf")


def _norm_act(x, name):
    x = L.BatchNormalization(axis=3, epsilon=EPSILON, name=name + "_bn")(x)
    return L.Activation("relu", name=name + "_relu")(x)


def _block(x, filters, name, stride=1, conv_shortcut=False):
    before = _norm_act(x, name + "_preact")
    if conv_shortcut:
        shortcut = L.Conv2D(4 * filters, 1, strides=stride, name=name + "_0_conv")(before)
    else:
        shortcut = L.MaxPooling2D(1, strides=stride)(x) if stride > 1 else x
    x = L.Conv2D(filters, 1, strides=1, use_bias=False, name=name + "_1_conv")(before)
    x = _norm_act(x, name + "_1")
    x = L.ZeroPadding2D(padding=((1, 1), (1, 1)), name=name + "_2_pad")(x)
    x = L.Conv2D(filters, 3, strides=stride, use_bias=False, name=name + "_2_conv")(x)
    x = _norm_act(x, name + "_2")
    x = L.Conv2D(4 * filters, 1, name=name + "_3_conv")(x)
    return L.Add(name=name + "_out")([shortcut, x])


def _resnet(depths, inputs, settings):
    x = L.ZeroPadding2D(padding=((3, 3), (3, 3)), name="conv1_pad")(inputs)
    x = L.Conv2D(64, 7, strides=2, use_bias=True, name="conv1_conv")(x)
    x = L.ZeroPadding2D(padding=((1, 1), (1, 1)), name="pool1_pad")(x)
    x = L.MaxPooling2D(3, strides=2, name="pool1_pool")(x)
    for s, (depth, filters) in enumerate(zip(depths, (64, 128, 256, 512)), 2):
        for b in range(1, depth + 1):
            x = _block(x, filters, f"conv{s}_block{b}", stride=2 if b == depth and s < 5 else 1, conv_shortcut=b == 1)
    x = L.BatchNormalization(axis=3, epsilon=EPSILON, name="post_bn")(x)
    x = L.Activation("relu", name="post_relu")(x)
    return head(x, settings)


ResNet50V2, ResNet101V2, ResNet152V2 = (network(functools.partial(_resnet, d), f"resnet{n}v2", f"ResNet{n}V2")
                                        for n, d in ((50, (3, 4, 6, 3)), (101, (3, 4, 23, 3)), (152, (3, 8, 36, 3))))
