"""Layers in functions that pipelines repeat: those that prepare pictures, as functions of the table. All others look at values,
so Python calls them for each element."""
from snug._lazy import tf
from snug._types import Peek


def _float(layer, x):
    return tf.cast(x, layer.compute_dtype)


def _rescaling(layer, x, training):
    if not all(isinstance(n, (int, float)) for n in (layer.scale, layer.offset)):
        raise Peek
    return _float(layer, x) * layer.scale + layer.offset


def _resizing(layer, x, training):
    if getattr(layer, "crop_to_aspect_ratio", False) or getattr(layer, "pad_to_aspect_ratio", False):
        raise Peek
    return _float(layer, tf.image.resize(x, (layer.height, layer.width), method=layer.interpolation))


def _flip(layer, x, training):
    x = _float(layer, x)
    if training is False:
        return x
    if "horizontal" in layer.mode:
        x = tf.image.random_flip_left_right(x)
    return tf.image.random_flip_up_down(x) if "vertical" in layer.mode else x


def _normalization(layer, x, training):
    mean, variance = getattr(layer, "mean", None), getattr(layer, "variance", None)
    if mean is None or variance is None:
        raise Peek
    mean, variance = tf.cast(mean, layer.compute_dtype), tf.cast(variance, layer.compute_dtype)
    return (_float(layer, x) - mean) / tf.maximum(tf.sqrt(variance), 1e-7)


def _crop(layer, x, training):
    shape = x.shape.as_list() if x.shape.rank is not None else []
    if None in shape[-3:-1] or len(shape) < 3 or shape[-3] < layer.height or shape[-2] < layer.width:
        raise Peek
    top, left = int((shape[-3] - layer.height) / 2), int((shape[-2] - layer.width) / 2)
    return _float(layer, tf.image.crop_to_bounding_box(x, top, left, layer.height, layer.width))


def _sequential(layer, x, training):
    for inner in layer.layers:
        x = call(inner, x, {"training": training})
    return x


_KNOWN = {"Normalization": _normalization, "CenterCrop": _crop, "Rescaling": _rescaling, "Resizing": _resizing, "RandomFlip": _flip, "Sequential": _sequential}


def call(layer, x, kwargs):
    known = _KNOWN.get(type(layer).__name__)
    if known is None:
        raise Peek
    return known(layer, x, kwargs.get("training"))
