"""What the networks share: pixels into numbers, numbers into names, the last layers, where weights come from."""
import os

from snug._files import read_json
from snug._lazy import tf
from snug.keras import layers as L

MEAN = {"caffe": [103.939, 116.779, 123.68], "torch": [0.485, 0.456, 0.406]}
DEVIATION = [0.229, 0.224, 0.225]


def preprocess_input(x, data_format=None, mode="caffe"):
    """Pixels of 0 to 255 as the network was trained on them: caffe (BGR, mean taken off), tf (-1 to 1), torch (normalised)."""
    import numpy as np
    if mode not in ("caffe", "tf", "torch"):
        raise ValueError(f"Expected mode to be one of `caffe`, `tf` or `torch`. Received: mode={mode}")
    if data_format == "channels_first":
        move = np.moveaxis if isinstance(x, np.ndarray) else tf.keras.ops.moveaxis
        return move(preprocess_input(move(x, -3, -1), None, mode), -1, -3)
    if mode == "tf":
        return x / 127.5 - 1.0 if not isinstance(x, np.ndarray) else x.astype("float32", copy=False) / 127.5 - 1.0
    if mode == "torch":
        return (x / 255.0 - np.array(MEAN["torch"], "float32")) / np.array(DEVIATION, "float32")
    turned = x[..., ::-1]
    return turned - np.array(MEAN["caffe"], "float32") if isinstance(x, np.ndarray) else tf.cast(turned, "float32") - MEAN["caffe"]


def decode_predictions(preds, top=5):
    """[(id, name, probability)] of each row, by the list of classes in Keras' cache folder."""
    import numpy as np
    path = os.path.expanduser("~/.keras/models/imagenet_class_index.json")
    preds = np.asarray(preds)
    if preds.ndim != 2 or preds.shape[1] != 1000:
        raise ValueError("`decode_predictions` expects a batch of predictions (i.e. a 2D array of shape (samples, 1000))."
                         f" Received array with shape: {preds.shape}")
    if not os.path.exists(path):
        raise FileNotFoundError(f"the names of ImageNet's classes are not in '{path}', and Snug downloads nothing")
    names = read_json(path)
    if any(not isinstance(names.get(str(i)), list) for i in range(1000)):
        raise ValueError(f"'{path}' does not hold the names of ImageNet's 1,000 classes; put Keras' own file there")
    return [[tuple(names[str(i)]) + (float(row[i]),) for i in row.argsort()[-top:][::-1]] for row in preds]


def of_mode(mode):
    """preprocess_input of one family."""
    def preprocess(x, data_format=None):
        return x if mode is None else preprocess_input(x, data_format, mode)
    preprocess.__name__ = "preprocess_input"
    return preprocess


def check(weights, include_top, classes):
    if weights not in ("imagenet", None) and not os.path.exists(str(weights)):
        raise ValueError("The `weights` argument should be either `None` (random initialization), `imagenet` (pre-training on ImageNet),"
                         f" or the path to the weights file to be loaded. Received: weights={weights}")
    if weights == "imagenet" and include_top and classes != 1000:
        raise ValueError(f'If using `weights="imagenet"` with `include_top=True`, `classes` should be 1000. Received classes={classes}')
    if weights == "imagenet":
        raise ValueError("weights='imagenet' would be downloaded, which Snug does not do; give weights=None, or a file that Keras'"
                         " model.save_weights('x.weights.h5') wrote")


def entry(input_shape, input_tensor, size, smallest, include_top=True):
    """The input of a network; `size` is that of its classifier."""
    if input_shape is not None and len(input_shape) != 3:
        raise ValueError("`input_shape` must be a tuple of three integers.")
    if input_shape is not None and any(n is not None and n < smallest for n in input_shape[:2]):
        raise ValueError(f"Input size must be at least {smallest}x{smallest}; Received: input_shape={tuple(input_shape)}")
    shape = tuple(input_shape) if input_shape is not None else (size, size, 3) if include_top else (None, None, 3)
    return L.Input(shape=shape) if input_tensor is None else input_tensor


def pooled(x, pooling, names=True):
    """The end of a network without its classifier."""
    if pooling not in ("avg", "max"):
        return x
    kind = L.GlobalAveragePooling2D if pooling == "avg" else L.GlobalMaxPooling2D
    return kind(name=pooling + "_pool" if names else None)(x)


def head(x, settings, names=True):
    """The end of a network: averages and one dense layer, or pooling alone."""
    if not settings["include_top"]:
        return pooled(x, settings["pooling"], names)
    x = L.GlobalAveragePooling2D(name="avg_pool")(x)
    return L.Dense(settings["classes"], activation=settings["classifier_activation"], name="predictions")(x)


def network(body, default, title, size=224, smallest=32):
    """The function that makes a network, with the arguments that nearly all of them have; body(inputs, settings) gives the last tensor."""
    def make(include_top=True, weights="imagenet", input_tensor=None, input_shape=None, pooling=None, classes=1000,
             classifier_activation="softmax", name=default):
        check(weights, include_top, classes)
        inputs = entry(input_shape, input_tensor, size, smallest, include_top)
        settings = {"include_top": include_top, "pooling": pooling, "classes": classes, "classifier_activation": classifier_activation}
        return finish(inputs, body(inputs, settings), name, weights)
    make.__name__ = make.__qualname__ = title
    return make


def finish(inputs, x, name, weights):
    from snug.keras import Model
    model = Model(inputs, x, name=name)
    if weights is not None:
        model.load_weights(weights)
    return model
