"""VGG16 and VGG19: blocks of 3x3 convolutions, each ended by a pooling."""
from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import check, decode_predictions, entry, finish, of_mode, pooled  # noqa: F401

preprocess_input = of_mode("caffe")


def _vgg(depths, name, include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation):
    check(weights, include_top, classes)
    inputs = x = entry(input_shape, input_tensor, 224, 32, include_top)
    for b, (depth, filters) in enumerate(zip(depths, (64, 128, 256, 512, 512)), 1):
        for c in range(1, depth + 1):
            x = L.Conv2D(filters, (3, 3), activation="relu", padding="same", name=f"block{b}_conv{c}")(x)
        x = L.MaxPooling2D((2, 2), strides=(2, 2), name=f"block{b}_pool")(x)
    if include_top:
        x = L.Flatten(name="flatten")(x)
        x = L.Dense(4096, activation="relu", name="fc1")(x)
        x = L.Dense(4096, activation="relu", name="fc2")(x)
        x = L.Dense(classes, activation=classifier_activation, name="predictions")(x)
    else:
        x = pooled(x, pooling, names=False)
    return finish(inputs, x, name, weights)


def VGG16(include_top=True, weights="imagenet", input_tensor=None, input_shape=None, pooling=None, classes=1000,
          classifier_activation="softmax", name="vgg16"):
    return _vgg((2, 2, 3, 3, 3), name, include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation)


def VGG19(include_top=True, weights="imagenet", input_tensor=None, input_shape=None, pooling=None, classes=1000,
          classifier_activation="softmax", name="vgg19"):
    return _vgg((2, 2, 4, 4, 4), name, include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation)
