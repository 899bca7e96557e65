"""tf.image: what is made of several functions of the table."""
from snug import _C, _capture, _dataops
from snug._lazy import tf
from snug._types import Peek


class ResizeMethod:
    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA, LANCZOS3, LANCZOS5, GAUSSIAN, MITCHELLCUBIC = (
        "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")


def _row(name):
    if name not in _rows:
        _rows[name] = _C.function(name, False, name.rsplit(".", 1)[-1])
    return _rows[name]


_rows = {}


def resize(images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False, name=None):
    images = images if isinstance(images, _capture.Slot) else tf.convert_to_tensor(images)
    if isinstance(images, _capture.Slot) and not images.shape.is_fully_defined():
        return _dataops.function("tf.image.resize")(images, size, method, preserve_aspect_ratio, antialias)
    if preserve_aspect_ratio:
        h, w = images.shape[-3:-1]
        scale = min(int(size[0]) / h, int(size[1]) / w)
        size = [round(scale * h), round(scale * w)]
    return _row("tf.image.resize")(images, size, method, False, antialias)


def resize_with_pad(image, target_height, target_width, method="bilinear", antialias=False):
    image = image if isinstance(image, _capture.Slot) else tf.convert_to_tensor(image)
    height, width = image.shape[-3:-1]
    if height is None or width is None:
        raise Peek
    ratio = max(width / target_width, height / target_height)
    new = int(height / ratio), int(width / ratio)
    top, left = max(0, int((target_height - height / ratio) / 2)), max(0, int((target_width - width / ratio) / 2))
    return tf.image.pad_to_bounding_box(resize(image, new, method, antialias=antialias), top, left, target_height, target_width)


def is_jpeg(contents, name=None):
    if isinstance(contents, _capture.Slot):
        return tf.strings.regex_full_match(tf.strings.substr(contents, 0, 3), r"\xff\xd8\xff")
    data = contents.numpy() if hasattr(contents, "numpy") else contents
    return tf.constant(data[:3] == b"\xff\xd8\xff")


# --- colours: whole numbers are changed as numbers of [0, 1] and come back ----------------------------------
def _colours(name):
    def change(image, *args, **kwargs):
        image = image if isinstance(image, _capture.Slot) else tf.convert_to_tensor(image)
        kind = image.dtype
        if kind.is_floating:
            return _row(name)(image, *args, **kwargs)
        return tf.image.convert_image_dtype(_row(name)(tf.image.convert_image_dtype(image, tf.float32), *args, **kwargs), kind,
                                            saturate=True)
    change.__name__, change.__doc__, change.__wrapped__ = name.rsplit(".", 1)[-1], _row(name).__doc__, _row(name)
    return change


adjust_brightness, adjust_contrast = _colours("tf.image.adjust_brightness"), _colours("tf.image.adjust_contrast")
adjust_saturation, adjust_hue = _colours("tf.image.adjust_saturation"), _colours("tf.image.adjust_hue")
random_brightness, random_contrast = _colours("tf.image.random_brightness"), _colours("tf.image.random_contrast")
random_saturation, random_hue = _colours("tf.image.random_saturation"), _colours("tf.image.random_hue")


# --- random by a seed ---------------------------------------------------------------------------------------
def _draw(seed, low, high):
    return tf.random.stateless_uniform([], seed, low, high)


def stateless_random_brightness(image, max_delta, seed):
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return tf.image.adjust_brightness(image, _draw(seed, -max_delta, max_delta))


def stateless_random_contrast(image, lower, upper, seed):
    if upper <= lower or lower < 0:
        raise ValueError("upper must be > lower, and lower not negative.")
    return tf.image.adjust_contrast(image, _draw(seed, lower, upper))


def stateless_random_saturation(image, lower, upper, seed=None):
    if upper <= lower or lower < 0:
        raise ValueError("upper must be > lower, and lower not negative.")
    return tf.image.adjust_saturation(image, _draw(seed, lower, upper))


def stateless_random_hue(image, max_delta, seed):
    if not 0 <= max_delta <= 0.5:
        raise ValueError("max_delta must be in [0, 0.5].")
    return tf.image.adjust_hue(image, _draw(seed, -max_delta, max_delta))


def _jpeg_quality(image, low, high, draw):
    if not 0 <= low < high <= 100:
        raise ValueError("min_jpeg_quality must be less than max_jpeg_quality, both between 0 and 100.")
    return tf.image.adjust_jpeg_quality(image, int(draw(low, high)))


def random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed=None):
    return _jpeg_quality(image, min_jpeg_quality, max_jpeg_quality,
                         lambda low, high: tf.random.uniform([], low, high, dtype=tf.int32, seed=seed))


def stateless_random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed):
    return _jpeg_quality(image, min_jpeg_quality, max_jpeg_quality,
                         lambda low, high: tf.random.stateless_uniform([], seed, low, high, dtype=tf.int32))


def stateless_random_flip_up_down(image, seed):
    image = image if isinstance(image, _capture.Slot) else tf.convert_to_tensor(image)
    return tf.where(_draw(seed, 0.0, 1.0) < 0.5, tf.image.flip_up_down(image), image)


def non_max_suppression(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"), name=None):
    """Which boxes to keep, best first: of two that overlap by more than the threshold, the better one. It looks at values."""
    import numpy as np
    if any(isinstance(v, _capture.Slot) for v in (boxes, scores)):
        raise Peek
    boxes, scores = (np.asarray(tf.convert_to_tensor(v, dtype=tf.float32)) for v in (boxes, scores))
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    areas = np.prod(high - low, axis=1)
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        if len(kept) == int(max_output_size) or not scores[i] > float(score_threshold):
            break
        common = np.prod(np.clip(np.minimum(high[i], high[kept]) - np.maximum(low[i], low[kept]), 0, None), axis=1)
        union = areas[i] + areas[kept] - common
        if not np.any(common > float(iou_threshold) * union):
            kept.append(i)
    return tf.constant(np.array(kept, "int32"))


_COLOURS = ((1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (.5, 0, .5, 1), (.5, .5, 0, 1), (.5, 0, 0, 1), (0, 0, .5, 1), (0, 1, 1, 1),
            (1, 0, 1, 1))


def draw_bounding_boxes(images, boxes, colors=None, name=None):
    """Lines of a pixel; boxes are (top, left, bottom, right) as parts of the picture, and colours come in turn."""
    images, boxes = tf.convert_to_tensor(images), tf.convert_to_tensor(boxes)
    n, height, width, depth = images.shape
    colors = tf.convert_to_tensor(([[1.0]] if depth == 1 else _COLOURS) if colors is None else colors, dtype=tf.float32)
    if colors.shape[1] < depth:
        raise tf.errors.InvalidArgumentError(None, None, f"colors have {colors.shape[1]} channels, the pictures {depth}")
    colors = colors[:, :depth]
    ends = tf.cast(boxes * tf.constant([height - 1, width - 1] * 2, boxes.dtype), tf.int32)
    row, column = tf.range(height)[None, :, None], tf.range(width)[None, None, :]
    for i in range(boxes.shape[1]):
        top, left, bottom, right = (ends[:, i, k][:, None, None] for k in range(4))
        across = ((row == top) | (row == bottom)) & (column >= left) & (column <= right)
        down = ((column == left) | (column == right)) & (row >= top) & (row <= bottom)
        lines = (across | down) & (top <= bottom) & (left <= right)
        images = tf.where(lines[..., None], tf.cast(colors[i % colors.shape[0]], images.dtype), images)
    return images
