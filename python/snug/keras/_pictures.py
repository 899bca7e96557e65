"""keras.utils on pictures: image_dataset_from_directory, load_img, img_to_array, array_to_img, save_img."""
import functools
import os

from snug import _C
from snug._given import default_only
from snug._lazy import tf

_CHANNELS = {"rgb": 3, "rgba": 4, "grayscale": 1}
_SUBSETS = {None: 0, "training": 1, "validation": 2}


def check_folder(labels, label_mode, shuffle, seed, validation_split, subset):
    if labels not in ("inferred", None) and not isinstance(labels, (list, tuple)):
        raise ValueError(f'`labels` argument should be a list/tuple of integer labels, or "inferred", or None. Received: {labels}')
    if label_mode not in ("int", "categorical", "binary", None):
        raise ValueError(f'`label_mode` argument must be one of "int", "categorical", "binary", or None. Received: {label_mode}')
    if (validation_split is None) != (subset is None):
        raise ValueError("If `subset` is set, `validation_split` must be set, and inversely.")
    if validation_split is not None and not 0 < validation_split < 1:
        raise ValueError(f"`validation_split` must be between 0 and 1, received: {validation_split}")
    if validation_split and shuffle and seed is None:
        raise ValueError("If using `validation_split` and shuffling the data, you must provide a `seed` argument, to make sure that"
                         " there is no overlap between the training and validation subset.")
    if subset not in ("training", "validation", "both", None):
        raise ValueError(f'`subset` must be either "training", "validation" or "both", received: {subset}')


def check_binary(label_mode, names):
    if label_mode == "binary" and len(names) != 2:
        raise ValueError(f'When passing `label_mode="binary"`, there must be exactly 2 class_names. Received: class_names={names}')


def part_of(n, validation_split, subset):
    """Which of n files a subset has; says so, as Keras does."""
    if not validation_split:
        return slice(None)
    last = int(validation_split * n)
    print(f"Using {n - last if subset == 'training' else last} files for {subset}.")
    return slice(None, -last) if subset == "training" else slice(-last, None)


def label_of(mode, n):
    if mode == "categorical":
        return lambda path, label: (path, tf.one_hot(label, n))
    if mode == "binary":
        return lambda path, label: (path, tf.cast(label, tf.float32)[tf.newaxis])
    return None


def image_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None, color_mode="rgb", batch_size=32,
                                 image_size=(256, 256), shuffle=True, seed=None, validation_split=None, subset=None,
                                 interpolation="bilinear", follow_links=False, crop_to_aspect_ratio=False,
                                 pad_to_aspect_ratio=False, data_format=None, format=None, verbose=True, fast=False):
    """As Keras has it. fast, Snug's own: JPEG pictures are decoded at a half, a quarter or an eighth where that is still as large
    as image_size, which is several times quicker and a little smoother."""
    check_folder(labels, label_mode, shuffle, seed, validation_split, subset)
    if color_mode not in _CHANNELS:
        raise ValueError(f'`color_mode` must be one of {{"rgb", "rgba", "grayscale"}}. Received: {color_mode}')
    if subset == "both":
        rest = (interpolation, follow_links, crop_to_aspect_ratio, pad_to_aspect_ratio, data_format, format)
        return tuple(image_dataset_from_directory(directory, labels, label_mode, class_names, color_mode, batch_size, image_size,
                                                  shuffle, seed, validation_split, part, *rest,
                                                  verbose and part == "training", fast)
                     for part in ("training", "validation"))
    if seed is None:
        import random
        seed = random.randrange(1_000_000)
    plain = labels is None or label_mode is None
    kind = 1 if labels is None else 2 if isinstance(labels, (list, tuple)) else 0
    try:
        files, classes, found = _C.dataset_of_folder(
            str(directory), kind, [int(n) for n in labels] if kind == 2 else None, list(class_names) if class_names else None,
            int(bool(shuffle)), seed & 0xffffffff, validation_split or 0.0, _SUBSETS[subset], int(follow_links))
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(str(error)) from None
    names = [c.decode() for c in classes]
    if verbose:
        print(f"Found {found} files" + ("." if plain or kind else f" belonging to {len(names)} classes."))
    check_binary(label_mode, names)
    part_of(found, validation_split, subset)
    paths = [parts[0].decode() for parts in _rows(files)]
    if not paths:
        raise ValueError(f"No images found in directory {directory}. Allowed formats: ('.bmp', '.gif', '.jpeg', '.jpg', '.png')")
    from snug import data
    shape = data.LEAF if kind == 1 else (data.LEAF, data.LEAF)
    made = data.Dataset(lambda ignore: files, (), shape)
    made = _decoded(made, plain, kind == 1, label_of(label_mode, len(names)), _CHANNELS[color_mode], tuple(image_size), interpolation,
                    crop_to_aspect_ratio, fast)
    if batch_size is not None:
        if shuffle:
            made = made.shuffle(batch_size * 8, seed=seed)
        made = made.batch(batch_size)
    elif shuffle:
        made = made.shuffle(1024, seed=seed)
    made = made.prefetch(data.AUTOTUNE)
    made.class_names, made.file_paths = names, paths
    return made


def _rows(files):
    it = _C.Iterator(files, 2, list)
    while True:
        try:
            yield it.next_numpy()
        except StopIteration:
            return


def _decoded(files, plain, no_labels, label, channels, size, interpolation, crop, fast):
    def picture(path):
        if fast and not crop:
            from snug import _dataops
            return _dataops.function("snug.image.decode_resize")(tf.io.read_file(path), size, channels, interpolation, fast=True)
        image = tf.io.decode_image(tf.io.read_file(path), channels=channels, expand_animations=False)
        if crop:
            image = _crop(image, size)
        return tf.ensure_shape(tf.image.resize(image, size, method=interpolation), (*size, channels))

    from snug.data import AUTOTUNE
    if plain:
        return files.map(picture if no_labels else lambda path, _: picture(path), num_parallel_calls=AUTOTUNE)

    def both(path, number):
        path, number = (path, number) if label is None else label(path, number)
        return picture(path), number
    return files.map(both, num_parallel_calls=AUTOTUNE)


def _crop(image, size):
    """The middle of the picture that has the aspect of the size."""
    h, w = tf.shape(image)[0], tf.shape(image)[1]
    crop_h = tf.minimum(h, tf.cast(tf.cast(w * size[0], tf.float32) / size[1], tf.int32))
    crop_w = tf.minimum(w, tf.cast(tf.cast(h * size[1], tf.float32) / size[0], tf.int32))
    top, left = (h - crop_h) // 2, (w - crop_w) // 2
    return image[top:top + crop_h, left:left + crop_w]


@default_only("backend_module")
def smart_resize(x, size, interpolation="bilinear", data_format="channels_last", backend_module=None):
    """Resized without a change of aspect: what is too long is cut off on both sides."""
    if len(size) != 2:
        raise ValueError(f"Expected `size` to be a tuple of 2 integers, but got: {size}.")
    image = tf.convert_to_tensor(x)
    if data_format == "channels_first":
        made = tf.keras.ops.moveaxis(smart_resize(tf.keras.ops.moveaxis(image, -3, -1), size, interpolation), -1, -3)
        return made if tf.is_tensor(x) else made.numpy()
    if len(image.shape) not in (3, 4):
        raise ValueError("Expected an image array with shape `(height, width, channels)`, or `(batch_size, height, width, channels)`, but"
                         f" got input with incorrect rank, of shape {image.shape}.")
    h, w = image.shape[-3:-1]
    crop_h, crop_w = (max(min(h, int(float(w * size[0]) / size[1])), 1), max(min(w, int(float(h * size[1]) / size[0])), 1))
    top, left = int(float(h - crop_h) / 2), int(float(w - crop_w) / 2)
    made = tf.image.resize(image[..., top:top + crop_h, left:left + crop_w, :], size, method=interpolation)
    return made if tf.is_tensor(x) else made.numpy()


# --- single pictures ------------------------------------------------------------------------------------------
def load_img(path, color_mode="rgb", target_size=None, interpolation="nearest", keep_aspect_ratio=False, grayscale=False):
    """An array of bytes; Keras gives a PIL picture, which img_to_array takes as this."""
    channels = 1 if grayscale else _CHANNELS[color_mode]
    image = tf.io.decode_image(tf.io.read_file(str(path)), channels=channels, expand_animations=False)
    if target_size is not None and keep_aspect_ratio:
        (h, w), (high, wide) = image.shape[:2], target_size
        ch, cw = min(h, w * high // wide), min(w, h * wide // high)
        image = tf.image.crop_to_bounding_box(image, (h - ch) // 2, (w - cw) // 2, ch, cw)
    if target_size is not None and tuple(image.shape[:2]) != tuple(target_size):
        image = tf.cast(tf.round(tf.cast(tf.image.resize(image, target_size, method=interpolation), tf.float32)), tf.uint8)
    return image.numpy()


def img_to_array(img, data_format=None, dtype=None):
    import numpy as np
    x = np.asarray(img, dtype=dtype or "float32")
    if x.ndim not in (2, 3):
        raise ValueError(f"Unsupported image shape: {x.shape}")
    x = x[:, :, None] if x.ndim == 2 else x
    return x.transpose(2, 0, 1) if data_format == "channels_first" else x


@functools.lru_cache
def _picture_class():
    import numpy as np

    class Picture(np.ndarray):
        """Pixels, with what scripts ask of PIL's pictures: save and show."""
        mode = property(lambda self: {1: "L", 3: "RGB", 4: "RGBA"}[1 if self.ndim == 2 else self.shape[-1]])
        width = property(lambda self: self.shape[1])
        height = property(lambda self: self.shape[0])

        def save(self, path, format=None, quality=None):
            save_img(path, self if self.ndim == 3 else self[..., None], file_format=format, scale=False, quality=quality)

        def show(self, title=None):
            print(f"a picture of {self.shape}; Snug does not open windows")
    return Picture


def array_to_img(x, data_format=None, scale=True, dtype=None):
    """An array that can be saved as PIL's pictures are."""
    import numpy as np
    x = np.asarray(x, dtype=dtype or "float32")
    if x.ndim != 3:
        raise ValueError(f"Expected image array to have rank 3 (single image). Got array with shape: {x.shape}")
    x = x.transpose(1, 2, 0) if data_format == "channels_first" else x
    if scale:
        x = x - x.min()
        x = x / x.max() * 255 if x.max() != 0 else x
    x = x.astype("uint8")
    return (x[..., 0] if x.shape[-1] == 1 else x).view(_picture_class())


def save_img(path, x, data_format=None, file_format=None, scale=True, quality=None):
    """quality: of JPEG, whose pictures PIL writes with 75 of 100 where nothing is said."""
    import numpy as np
    image = np.asarray(array_to_img(x, data_format, scale))
    image = image if image.ndim == 3 else image[..., None]
    if file_format is not None and str(file_format).lower() not in ("jpeg", "jpg", "png"):
        raise NotImplementedError(f"save_img(file_format={file_format!r}) is not in Snug; there are 'jpeg' and 'png'")
    kind = str(file_format or os.path.splitext(str(path))[1].lstrip(".")).lower()
    jpeg = kind in ("jpeg", "jpg")
    tf.io.write_file(str(path), tf.io.encode_jpeg(image, quality=75 if quality is None else int(quality)) if jpeg else tf.io.encode_png(image))
