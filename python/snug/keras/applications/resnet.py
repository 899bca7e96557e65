"""ResNet50, 101 and 152: stacks of bottlenecks with a shortcut, normalised after each convolution."""
import functools

from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import decode_predictions, head, network, of_mode  # noqa: F401

preprocess_input = of_mode("caffe")
EPSILON = 1.001e-5


def _conv_norm(x, name, filters, kernel=1, stride=1, act=True, **more):
    x = L.Conv2D(filters, kernel, strides=stride, name=name + "_conv", **more)(x)
    x = L.BatchNormalization(axis=3, epsilon=EPSILON, name=name + "_bn")(x)
    return L.Activation("relu", name=name + "_relu")(x) if act else x


def _block(x, filters, name, stride=1, conv_shortcut=True):
    shortcut = _conv_norm(x, name + "_0", 4 * filters, 1, stride, act=False) if conv_shortcut else x
    x = _conv_norm(x, name + "_1", filters, 1, stride)
    x = _conv_norm(x, name + "_2", filters, 3, padding="same")
    x = _conv_norm(x, name + "_3", 4 * filters, act=False)
    x = L.Add(name=name + "_add")([shortcut, x])
    return L.Activation("relu", name=name + "_out")(x)


def _resnet(depths, inputs, settings):
    x = L.ZeroPadding2D(padding=((3, 3), (3, 3)), name="conv1_pad")(inputs)
    x = _conv_norm(x, "conv1", 64, 7, 2)
    x = L.ZeroPadding2D(padding=((1, 1), (1, 1)), name="pool1_pad")(x)
    x = L.MaxPooling2D(3, strides=2, name="pool1_pool")(x)
    for s, (depth, filters) in enumerate(zip(depths, (64, 128, 256, 512)), 2):
        for b in range(1, depth + 1):
            x = _block(x, filters, f"conv{s}_block{b}", stride=2 if b == 1 and s > 2 else 1, conv_shortcut=b == 1)
    return head(x, settings)


ResNet50, ResNet101, ResNet152 = (network(functools.partial(_resnet, d), f"resnet{n}", f"ResNet{n}")
                                  for n, d in ((50, (3, 4, 6, 3)), (101, (3, 4, 23, 3)), (152, (3, 8, 36, 3))))
