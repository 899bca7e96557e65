"""InceptionV3: blocks of parallel branches, put side by side."""
from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import decode_predictions, head, network, of_mode  # noqa: F401

preprocess_input = of_mode("tf")


def _conv(x, filters, rows, columns, padding="same", strides=(1, 1)):
    x = L.Conv2D(filters, (rows, columns), strides=strides, padding=padding, use_bias=False)(x)
    x = L.BatchNormalization(axis=3, scale=False)(x)
    return L.Activation("relu")(x)


def _chain(x, *steps):
    """Convolutions one after another: (filters, rows, columns)."""
    for step in steps:
        x = _conv(x, *step)
    return x


def _pooled(x, filters):
    return _conv(L.AveragePooling2D((3, 3), strides=(1, 1), padding="same")(x), filters, 1, 1)


def _stem(x):
    x = _conv(x, 32, 3, 3, "valid", (2, 2))
    x = _conv(x, 32, 3, 3, "valid")
    x = _conv(x, 64, 3, 3)
    x = L.MaxPooling2D((3, 3), strides=(2, 2))(x)
    x = _conv(x, 80, 1, 1, "valid")
    x = _conv(x, 192, 3, 3, "valid")
    return L.MaxPooling2D((3, 3), strides=(2, 2))(x)


def _small(x, pooled, name):
    one = _conv(x, 64, 1, 1)
    five = _chain(x, (48, 1, 1), (64, 5, 5))
    three = _chain(x, (64, 1, 1), (96, 3, 3), (96, 3, 3))
    return L.Concatenate(axis=3, name=name)([one, five, three, _pooled(x, pooled)])


def _long(x, filters, name):
    """Filters of 7 by 1 and 1 by 7."""
    one = _conv(x, 192, 1, 1)
    seven = _chain(x, (filters, 1, 1), (filters, 1, 7), (192, 7, 1))
    twice = _chain(x, (filters, 1, 1), (filters, 7, 1), (filters, 1, 7), (filters, 7, 1), (192, 1, 7))
    return L.Concatenate(axis=3, name=name)([one, seven, twice, _pooled(x, 192)])


def _wide(x, i):
    one = _conv(x, 320, 1, 1)
    three = _conv(x, 384, 1, 1)
    three = L.Concatenate(axis=3, name=f"mixed9_{i}")([_conv(three, 384, 1, 3), _conv(three, 384, 3, 1)])
    twice = _chain(x, (448, 1, 1), (384, 3, 3))
    twice = L.Concatenate(axis=3)([_conv(twice, 384, 1, 3), _conv(twice, 384, 3, 1)])
    return L.Concatenate(axis=3, name=f"mixed{9 + i}")([one, three, twice, _pooled(x, 192)])


def _features(x):
    x = _stem(x)
    for i, pooled in enumerate((32, 64, 64)):
        x = _small(x, pooled, f"mixed{i}")
    three = _conv(x, 384, 3, 3, "valid", (2, 2))
    twice = _conv(_chain(x, (64, 1, 1), (96, 3, 3)), 96, 3, 3, "valid", (2, 2))
    x = L.Concatenate(axis=3, name="mixed3")([three, twice, L.MaxPooling2D((3, 3), strides=(2, 2))(x)])
    for i, filters in enumerate((128, 160, 160, 192), 4):
        x = _long(x, filters, f"mixed{i}")
    three = _conv(_conv(x, 192, 1, 1), 320, 3, 3, "valid", (2, 2))
    seven = _conv(_chain(x, (192, 1, 1), (192, 1, 7), (192, 7, 1)), 192, 3, 3, "valid", (2, 2))
    x = L.Concatenate(axis=3, name="mixed8")([three, seven, L.MaxPooling2D((3, 3), strides=(2, 2))(x)])
    for i in range(2):
        x = _wide(x, i)
    return x


def _inception(inputs, settings):
    return head(_features(inputs), settings, names=False)


InceptionV3 = network(_inception, "inception_v3", "InceptionV3", 299, 75)
