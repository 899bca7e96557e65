"""Layers in functions that pipelines repeat: those that prepare pictures, as functions of the table; those of the engine's without
weights, as they are; those of the user's by what they call. Others look at values, so Python calls them for each element."""
import functools

from snug import _capture
from snug._lazy import tf
from snug._types import BY_NAME, Peek


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
        x = call(inner, (x,), {"training": training}, None)
    return x


def _engine(layer, x, training):
    from snug.keras.layers import _Built
    if type(layer).call is not _Built.call or layer._own:
        raise Peek
    return _repeated(layer, x, training)


def _random_crop(layer, x, training):
    return _repeated(layer, x, True) if training is None or training else _float(layer, x)


def _repeated(layer, x, training):
    """A layer of the engine's that has no weights: each worker makes one like it. Those of pictures take one as well as a batch."""
    name, config = layer._engine_words()
    single = layer._takes_picture and x.shape.rank == 3
    if layer._takes_picture and x.shape.rank is None:
        raise Peek
    capture = _capture.active()
    times = capture.layers.get(id(layer), 0)
    capture.layers[id(layer)] = times + 1
    trains = (layer._row["picture"] and layer._row["draws"]) if training is None else bool(training)
    y = capture.layer(name, config, trains, times, tf.expand_dims(x, 0) if single else x)
    return tf.squeeze(y, 0) if single else y


@functools.cache
def _known():
    from snug.keras import _models, layers
    return {layers.Normalization: _normalization, layers.CenterCrop: _crop, layers.RandomCrop: _random_crop, layers.Rescaling: _rescaling,
            layers.Resizing: _resizing, _models.Sequential: _sequential}


def looked_up(layer, x):
    """Words are looked up in Python, element by element; what comes out is known before."""
    dims, lines = x.shape.as_list() if x.shape.rank is not None else None, layer._reads_lines
    if dims is None or (lines and len(dims) > 2) or (layer.output_mode != "int" and not lines):
        raise Peek
    width = layer._width() if layer.output_mode != "int" else getattr(layer, "output_sequence_length", None)
    return _capture.active().blank(BY_NAME[layer._kind()], (*dims[:1], width) if lines else tuple(dims))


def call(layer, args, kwargs, outer):
    """layer(*args, **kwargs); outer: `training` of the layer around it."""
    known = _known().get(type(layer))
    training = kwargs.get("training", outer)
    if known is None and not hasattr(layer, "_engine_words"):
        return layer._run(args, kwargs)             # one of the user's: its own functions are written down
    if len(args) != 1:
        raise Peek
    return (known or _engine)(layer, args[0], training)
