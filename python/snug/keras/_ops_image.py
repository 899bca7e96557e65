"""keras.ops.image: what the table has under these names, and what is made of tf.image."""
from snug import _C
from snug._given import default_only
from snug._lazy import tf


def _picture(images):
    return tf.convert_to_tensor(images)


def _batched(function):
    """One picture is a batch of one."""
    def call(images, *args, **kwargs):
        images = _picture(images)
        if len(images.shape) == 3:
            return tf.squeeze(function(tf.expand_dims(images, 0), *args, **kwargs), 0)
        return function(images, *args, **kwargs)
    call.__name__, call.__doc__, call.__wrapped__ = function.__name__, function.__doc__, function
    return call


def _last(data_format):
    if data_format == "channels_first":
        raise NotImplementedError("keras.ops.image: Snug has pictures with their channels last")


def _two(value):
    return (value, value) if isinstance(value, int) else tuple(value)


@default_only("fill_mode", "keras.ops.image.resize")
def resize(images, size, interpolation="bilinear", antialias=False, crop_to_aspect_ratio=False, pad_to_aspect_ratio=False,
           fill_mode="constant", fill_value=0.0, data_format=None):
    _last(data_format)
    images, (high, wide) = _picture(images), _two(size)
    h, w = images.shape[-3:-1]
    if crop_to_aspect_ratio:
        ch, cw = min(h, int(w * high / wide)), min(w, int(h * wide / high))
        images = tf.image.crop_to_bounding_box(images, (h - ch) // 2, (w - cw) // 2, ch, cw)
    elif pad_to_aspect_ratio:
        ph, pw = max(h, int(w * high / wide)), max(w, int(h * wide / high))
        top, left = (ph - h) // 2, (pw - w) // 2
        ends = [[top, ph - h - top], [left, pw - w - left], [0, 0]]
        images = tf.pad(images, ([[0, 0]] if len(images.shape) == 4 else []) + ends, constant_values=fill_value)
    made = tf.image.resize(images, (high, wide), method=interpolation, antialias=antialias)
    return made if made.dtype == images.dtype else tf.cast(made, images.dtype)


@_batched
def extract_patches(images, size, strides=None, dilation_rate=1, padding="valid", data_format=None):
    _last(data_format)
    size = _two(size)
    if len(size) == 3:
        raise NotImplementedError("keras.ops.image.extract_patches of volumes is not in Snug; there are patches of pictures")
    strides, rate = _two(size if strides is None else strides), _two(dilation_rate)
    return tf.image.extract_patches(images, (1, *size, 1), (1, *strides, 1), (1, *rate, 1), padding.upper())


@_batched
def perspective_transform(images, start_points, end_points, interpolation="bilinear", fill_value=0, data_format=None):
    """What moves end points to start points, by eight equations for each picture."""
    _last(data_format)
    start, end = (tf.reshape(tf.cast(p, "float32"), (-1, 4, 2)) for p in (start_points, end_points))
    x, y, u, v = end[..., 0], end[..., 1], start[..., 0], start[..., 1]
    one, none = tf.ones_like(x), tf.zeros_like(x)
    above = tf.stack([x, y, one, none, none, none, -x * u, -y * u], -1)
    below = tf.stack([none, none, none, x, y, one, -x * v, -y * v], -1)
    found = tf.linalg.solve(tf.concat([above, below], 1), tf.concat([u, v], 1)[..., None])
    return _C.function("keras.ops.image.affine_transform")(images, found[..., 0], interpolation, "constant", fill_value)


def pad_images(images, top_padding=None, left_padding=None, bottom_padding=None, right_padding=None, target_height=None,
               target_width=None, data_format=None):
    _last(data_format)
    images = _picture(images)
    h, w = images.shape[-3:-1]
    top, bottom = _ends(top_padding, bottom_padding, target_height, h)
    left, right = _ends(left_padding, right_padding, target_width, w)
    return tf.pad(images, ([[0, 0]] if len(images.shape) == 4 else []) + [[top, bottom], [left, right], [0, 0]])


def _ends(before, after, target, extent):
    if before is None and after is None:
        raise ValueError("Must specify exactly two of the paddings and the target of an axis.")
    before = target - extent - after if before is None else before
    return before, target - extent - before if after is None else after


def crop_images(images, top_cropping=None, left_cropping=None, bottom_cropping=None, right_cropping=None, target_height=None,
                target_width=None, data_format=None):
    _last(data_format)
    images = _picture(images)
    h, w = images.shape[-3:-1]
    top, bottom = _ends(top_cropping, bottom_cropping, h, target_height or 0) if target_height is not None else (top_cropping, bottom_cropping)
    left, right = _ends(left_cropping, right_cropping, w, target_width or 0) if target_width is not None else (left_cropping, right_cropping)
    return images[..., top:h - bottom, left:w - right, :]


@_batched
def gaussian_blur(images, kernel_size=(3, 3), sigma=(1.0, 1.0), data_format=None):
    _last(data_format)
    channels = images.shape[-1]
    line = []
    for n, s in zip(_two(kernel_size), sigma if isinstance(sigma, (list, tuple)) else (sigma, sigma)):
        at = tf.range(n, dtype="float32") - (n - 1) / 2
        bell = tf.exp(-0.5 * tf.square(1.0 / s * at))
        line.append(bell / tf.reduce_sum(bell))
    kernel = tf.tile(tf.reshape(tf.tensordot(line[0], line[1], 0), (*_two(kernel_size), 1, 1)), (1, 1, channels, 1))
    return tf.cast(tf.nn.depthwise_conv2d(tf.cast(images, "float32"), kernel, (1, 1, 1, 1), "SAME"), images.dtype)


def map_coordinates(inputs, coordinates, order, fill_mode="constant", fill_value=0):
    """Values between places: of the nearest one (order 0), or of all around by their share (order 1)."""
    import itertools
    inputs, at = tf.convert_to_tensor(inputs), [tf.cast(c, "float32") for c in tf.unstack(tf.convert_to_tensor(coordinates))]
    if order not in (0, 1):
        raise NotImplementedError("keras.ops.image.map_coordinates: Snug has orders 0 and 1")
    total = None
    for corner in itertools.product((0, 1) if order else (0,), repeat=len(at)):
        weight, places, valid = None, [], None
        for c, step, extent in zip(at, corner, inputs.shape):
            low = tf.floor(c) if order else tf.round(c)
            part = (c - low if step else 1.0 - (c - low)) if order else None
            place = tf.cast(low, "int32") + step
            inside = (place >= 0) & (place < extent)
            places.append(_bound(place, extent, fill_mode))
            weight = part if weight is None else weight * part
            valid = inside if valid is None else valid & inside
        value = tf.cast(tf.gather_nd(inputs, tf.stack(places, -1)), "float32")
        value = tf.where(valid, value, float(fill_value)) if fill_mode == "constant" else value
        value = value if weight is None else value * weight
        total = value if total is None else total + value
    return tf.cast(total, inputs.dtype)


def _bound(place, n, mode):
    if mode == "wrap":
        return tf.math.floormod(place, n)
    if mode == "mirror":
        place = tf.math.floormod(place, 2 * n - 2) if n > 1 else place * 0
        return tf.minimum(place, 2 * n - 2 - place) if n > 1 else place
    if mode == "reflect":
        place = tf.math.floormod(place, 2 * n)
        return tf.minimum(place, 2 * n - 1 - place)
    return tf.clip_by_value(place, 0, n - 1)


def sobel_edges(images, data_format=None):
    _last(data_format)
    return tf.image.sobel_edges(images)


def ssim(img1, img2, max_val=1.0, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03, data_format=None):
    _last(data_format)
    return tf.image.ssim(img1, img2, max_val, filter_size, filter_sigma, k1, k2)


def __getattr__(name):
    if not name.startswith("__"):
        found = _C.function("keras.ops.image." + name)
        if found is not None:
            return found
    raise AttributeError(f"keras.ops.image.{name} is not in Snug")


NAMES = ("resize extract_patches affine_transform perspective_transform pad_images crop_images gaussian_blur map_coordinates sobel_edges"
         " ssim rgb_to_grayscale rgb_to_hsv hsv_to_rgb").split()
