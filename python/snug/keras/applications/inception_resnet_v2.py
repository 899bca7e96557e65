"""InceptionResNetV2: branches of several filters, added to what came in, scaled."""
from snug import _C
from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import decode_predictions, head, network, of_mode  # noqa: F401

preprocess_input = of_mode("tf")
#           branches: (filters, kernel) one after the other
_BRANCHES = {"block35": (((32, 1),), ((32, 1), (32, 3)), ((32, 1), (48, 3), (64, 3))),
             "block17": (((192, 1),), ((128, 1), (160, (1, 7)), (192, (7, 1)))),
             "block8": (((192, 1),), ((192, 1), (224, (1, 3)), (256, (3, 1))))}


class CustomScaleLayer(L._Built):
    """The first input and `scale` times the second; the engine's."""
    _row = _C.layer_row("CustomScaleLayer")


def _conv(x, filters, kernel, strides=1, padding="same", name=None):
    x = L.Conv2D(filters, kernel, strides=strides, padding=padding, use_bias=False, name=name)(x)
    x = L.BatchNormalization(axis=3, scale=False, name=name and name + "_bn")(x)
    return L.Activation("relu", name=name and name + "_ac")(x)


def _chain(x, rows):
    """Convolutions one after the other; one with a third number has that stride, and no padding."""
    for filters, kernel, *strided in rows:
        x = _conv(x, filters, kernel, *strided, "valid") if strided else _conv(x, filters, kernel)
    return x


def _block(x, kind, i, scale, last=False):
    name = f"{kind}_{i}"
    mixed = L.Concatenate(axis=3, name=name + "_mixed")([_chain(x, rows) for rows in _BRANCHES[kind]])
    up = L.Conv2D(x.shape[3], 1, padding="same", use_bias=True, name=name + "_conv")(mixed)
    x = CustomScaleLayer(scale)([x, up])
    return x if last else L.Activation("relu", name=name + "_ac")(x)


def _reduced(x, name, *branches):
    made = [_chain(x, rows) for rows in branches]
    return L.Concatenate(axis=3, name=name)([*made, L.MaxPooling2D(3, strides=2, padding="valid")(x)])


def _body(inputs, settings):
    x = _conv(inputs, 32, 3, 2, "valid")
    x = _conv(_conv(x, 32, 3, padding="valid"), 64, 3)
    x = L.MaxPooling2D(3, strides=2)(x)
    x = _conv(_conv(x, 80, 1, padding="valid"), 192, 3, padding="valid")
    x = L.MaxPooling2D(3, strides=2)(x)
    branches = [_chain(x, rows) for rows in (((96, 1),), ((48, 1), (64, 5)), ((64, 1), (96, 3), (96, 3)))]
    branches.append(_conv(L.AveragePooling2D(3, strides=1, padding="same")(x), 64, 1))
    x = L.Concatenate(axis=3, name="mixed_5b")(branches)
    for i in range(1, 11):
        x = _block(x, "block35", i, 0.17)
    x = _reduced(x, "mixed_6a", ((384, 3, 2),), ((256, 1), (256, 3), (384, 3, 2)))
    for i in range(1, 21):
        x = _block(x, "block17", i, 0.1)
    x = _reduced(x, "mixed_7a", ((256, 1), (384, 3, 2)), ((256, 1), (288, 3, 2)), ((256, 1), (288, 3), (320, 3, 2)))
    for i in range(1, 10):
        x = _block(x, "block8", i, 0.2)
    x = _block(x, "block8", 10, 1.0, last=True)
    return head(_conv(x, 1536, 1, name="conv_7b"), settings, names=False)


InceptionResNetV2 = network(_body, "inception_resnet_v2", "InceptionResNetV2", 299, 75)
