"""keras.preprocessing.image: load_img, img_to_array and ImageDataGenerator, which works in NumPy, picture by picture; layers and
image_dataset_from_directory do the same in C."""
from snug._given import default_only
import os

from snug.keras._pictures import array_to_img, img_to_array, load_img, save_img, smart_resize  # noqa: F401
from snug.keras.utils import PyDataset

_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png")


class Iterator(PyDataset):
    """Batches without end; `picture(i)` gives a picture, labels[i] its label."""

    def __init__(self, n, batch_size, shuffle, seed):
        import numpy as np
        super().__init__()
        self.n, self.batch_size, self.shuffle, self.seed = n, batch_size, shuffle, seed
        self.batch_index = self.total_batches_seen = 0
        self._random = np.random.RandomState(seed)
        self.index_array = None

    def _order(self):
        import numpy as np
        self.index_array = self._random.permutation(self.n) if self.shuffle else np.arange(self.n)

    def __len__(self):
        return -(-self.n // self.batch_size)

    def reset(self):
        self.batch_index = 0

    def on_epoch_end(self):
        self._order()

    def __iter__(self):
        return self

    def __getitem__(self, i):
        if i >= len(self):
            raise ValueError(f"Asked to retrieve element {i}, but the Sequence has length {len(self)}")
        if self.index_array is None:
            self._order()
        self.total_batches_seen += 1
        return self._batch(self.index_array[i * self.batch_size:(i + 1) * self.batch_size])

    def __next__(self):
        if self.batch_index == 0:
            self._order()
        i, self.batch_index = self.batch_index, (self.batch_index + 1) % len(self)
        return self[i]

    next = __next__

    def _batch(self, indices):
        import numpy as np
        x = np.stack([self.generator.standardize(self.generator.random_transform(self._picture(i).astype("float32"))) for i in indices])
        parts = (x,) if self.labels is None else (x, self.labels[indices])
        if getattr(self, "sample_weight", None) is not None:
            parts += (self.sample_weight[indices],)
        return parts[0] if len(parts) == 1 else parts


class NumpyArrayIterator(Iterator):
    def __init__(self, x, y, generator, batch_size=32, shuffle=False, sample_weight=None, seed=None, subset=None):
        import numpy as np
        x, y = np.asarray(x, "float32"), None if y is None else np.asarray(y)
        if x.ndim != 4:
            raise ValueError(f"Input data in `NumpyArrayIterator` should have rank 4. You passed an array with shape {x.shape}")
        if y is not None and len(x) != len(y):
            raise ValueError(f"`x` (images tensor) and `y` (labels) should have the same length. Found: x.shape = {x.shape}, y.shape = {y.shape}")
        part = _part(len(x), generator, subset)
        weight = None if sample_weight is None else np.asarray(sample_weight)[part]
        self.x, self.labels, self.sample_weight, self.generator = x[part], None if y is None else y[part], weight, generator
        super().__init__(len(self.x), batch_size, shuffle, seed)

    def _picture(self, i):
        return self.x[i]


def _part(n, generator, subset):
    if subset is None:
        return slice(None)
    if subset not in ("training", "validation"):
        raise ValueError(f'Invalid subset name: {subset}; expected "training" or "validation".')
    at = int(n * generator.validation_split)
    return slice(at) if subset == "validation" else slice(at, None)


class DirectoryIterator(Iterator):
    def __init__(self, directory, generator, target_size=(256, 256), color_mode="rgb", classes=None, class_mode="categorical",
                 batch_size=32, shuffle=True, seed=None, subset=None, interpolation="nearest"):
        import numpy as np
        names = list(classes) if classes else sorted(d for d in os.listdir(directory) if os.path.isdir(os.path.join(directory, d)))
        self.class_indices = {name: i for i, name in enumerate(names)}
        found = []
        for name in names:
            of = [os.path.join(root, f) for root, _, files in sorted(os.walk(os.path.join(directory, name))) for f in sorted(files)
                  if f.lower().endswith(_ENDINGS)]
            found += [(path, self.class_indices[name]) for path in of[_part(len(of), generator, subset)]]
        self.filepaths = [p for p, _ in found]
        self.filenames = [os.path.relpath(p, directory) for p in self.filepaths]
        self.classes = np.array([c for _, c in found], "int32")
        self.num_classes, self.samples, self.generator = len(names), len(found), generator
        self.target_size, self.color_mode, self.interpolation = tuple(target_size), color_mode, interpolation
        self.labels = {"categorical": lambda: np.eye(len(names), dtype="float32")[self.classes], "sparse": lambda: self.classes,
                       "binary": lambda: self.classes.astype("float32"), "input": lambda: None, None: lambda: None}[class_mode]()
        print(f"Found {self.samples} images belonging to {self.num_classes} classes.")
        super().__init__(self.samples, batch_size, shuffle, seed)

    def _picture(self, i):
        return img_to_array(load_img(self.filepaths[i], self.color_mode, self.target_size, self.interpolation))


class ImageDataGenerator:
    """Pictures changed at random, in batches."""

    @default_only("zca_epsilon interpolation_order", "ImageDataGenerator")
    def __init__(self, featurewise_center=False, samplewise_center=False, featurewise_std_normalization=False,
                 samplewise_std_normalization=False, zca_whitening=False, zca_epsilon=1e-6, rotation_range=0, width_shift_range=0.0,
                 height_shift_range=0.0, brightness_range=None, shear_range=0.0, zoom_range=0.0, channel_shift_range=0.0,
                 fill_mode="nearest", cval=0.0, horizontal_flip=False, vertical_flip=False, rescale=None, preprocessing_function=None,
                 data_format=None, validation_split=0.0, interpolation_order=1, dtype=None):
        if zca_whitening or brightness_range is not None:
            raise NotImplementedError("zca_whitening and brightness_range are not in Snug's ImageDataGenerator; keras.layers."
                                      "RandomBrightness is")
        if data_format not in (None, "channels_last") or dtype not in (None, "float32"):
            raise NotImplementedError(f"ImageDataGenerator(data_format={data_format!r}, dtype={dtype!r}) is not in Snug: pictures are float32, with"
                                      " their channels last")
        if validation_split and not 0 < validation_split < 1:
            raise ValueError(f"`validation_split` must be strictly between 0 and 1. Received: {validation_split}")
        self.featurewise_center, self.samplewise_center = featurewise_center, samplewise_center
        self.featurewise_std, self.samplewise_std = featurewise_std_normalization, samplewise_std_normalization
        self.rotation_range, self.width_shift_range, self.height_shift_range = rotation_range, width_shift_range, height_shift_range
        self.shear_range, self.channel_shift_range, self.fill_mode, self.cval = shear_range, channel_shift_range, fill_mode, cval
        self.zoom_range = (1 - zoom_range, 1 + zoom_range) if isinstance(zoom_range, (int, float)) else tuple(zoom_range)
        self.horizontal_flip, self.vertical_flip, self.rescale = horizontal_flip, vertical_flip, rescale
        self.preprocessing_function, self.validation_split = preprocessing_function, validation_split
        self.mean = self.std = None

    @default_only("save_to_dir save_prefix save_format ignore_class_split")
    def flow(self, x, y=None, batch_size=32, shuffle=True, sample_weight=None, seed=None, save_to_dir=None, save_prefix="",
             save_format="png", ignore_class_split=False, subset=None):
        return NumpyArrayIterator(x, y, self, batch_size, shuffle, sample_weight, seed, subset)

    @default_only("save_to_dir save_prefix save_format follow_links keep_aspect_ratio")
    def flow_from_directory(self, directory, target_size=(256, 256), color_mode="rgb", classes=None, class_mode="categorical",
                            batch_size=32, shuffle=True, seed=None, save_to_dir=None, save_prefix="", save_format="png", follow_links=False,
                            subset=None, interpolation="nearest", keep_aspect_ratio=False):
        return DirectoryIterator(directory, self, target_size, color_mode, classes, class_mode, batch_size, shuffle, seed, subset,
                                 interpolation)

    @default_only("augment rounds")
    def fit(self, x, augment=False, rounds=1, seed=None):
        import numpy as np
        x = np.asarray(x, "float32")
        self.mean = x.mean((0, 1, 2)) if self.featurewise_center else None
        x = x - self.mean if self.mean is not None else x
        self.std = x.std((0, 1, 2)) if self.featurewise_std else None

    def standardize(self, x):
        import numpy as np
        x = self.preprocessing_function(x) if self.preprocessing_function else x
        x = x * self.rescale if self.rescale else x
        x = x - x.mean(keepdims=True) if self.samplewise_center else x
        x = x / (x.std(keepdims=True) + 1e-6) if self.samplewise_std else x
        x = x - self.mean if self.mean is not None else x
        x = x / (self.std + 1e-6) if self.std is not None else x
        return np.asarray(x, "float32")

    def get_random_transform(self, img_shape, seed=None):
        import numpy as np
        draw = np.random.RandomState(seed) if seed is not None else np.random

        def shift(most, extent):
            by = draw.choice(most) if isinstance(most, (list, tuple)) else draw.uniform(-most, most) if most else 0
            return by * extent if np.max(np.abs(most)) < 1 else by
        zoom = (1, 1) if self.zoom_range == (1, 1) else draw.uniform(*self.zoom_range, 2)
        return {"theta": draw.uniform(-self.rotation_range, self.rotation_range) if self.rotation_range else 0,
                "tx": shift(self.height_shift_range, img_shape[0]), "ty": shift(self.width_shift_range, img_shape[1]),
                "shear": draw.uniform(-self.shear_range, self.shear_range) if self.shear_range else 0, "zx": zoom[0], "zy": zoom[1],
                "flip_horizontal": (draw.random() < 0.5) * self.horizontal_flip, "flip_vertical": (draw.random() < 0.5) * self.vertical_flip,
                "channel_shift_intensity": draw.uniform(-self.channel_shift_range, self.channel_shift_range)
                if self.channel_shift_range else None}

    def apply_transform(self, x, p):
        import numpy as np
        x = _warp(x, p, self.fill_mode, self.cval)
        if p.get("channel_shift_intensity") is not None:
            x = np.clip(x + p["channel_shift_intensity"], x.min(), x.max())
        x = x[:, ::-1] if p.get("flip_horizontal") else x
        return x[::-1] if p.get("flip_vertical") else x

    def random_transform(self, x, seed=None):
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))


def _warp(x, p, fill_mode, cval):
    """The picture turned, shifted, sheared and zoomed around its middle, between pixels by their neighbours."""
    import numpy as np
    theta, shear = np.deg2rad(p.get("theta", 0)), np.deg2rad(p.get("shear", 0))
    m = np.eye(3)
    m = m @ [[np.cos(theta), -np.sin(theta), 0], [np.sin(theta), np.cos(theta), 0], [0, 0, 1]]
    m = m @ [[1, 0, p.get("tx", 0)], [0, 1, p.get("ty", 0)], [0, 0, 1]]
    m = m @ [[1, -np.sin(shear), 0], [0, np.cos(shear), 0], [0, 0, 1]]
    m = m @ [[p.get("zx", 1), 0, 0], [0, p.get("zy", 1), 0], [0, 0, 1]]
    if np.array_equal(m, np.eye(3)):
        return x
    h, w = x.shape[:2]
    rows, columns = np.mgrid[0:h, 0:w]
    at = m[:2, :2] @ np.stack([rows.ravel() - (h / 2 - 0.5), columns.ravel() - (w / 2 - 0.5)]) + m[:2, 2:]
    y, c = at[0] + h / 2 - 0.5, at[1] + w / 2 - 0.5
    y0, c0 = np.floor(y).astype(int), np.floor(c).astype(int)
    fy, fc = (y - y0)[:, None], (c - c0)[:, None]

    def pixels(rows, columns):
        outside = (rows < 0) | (rows >= h) | (columns < 0) | (columns >= w)
        out = x[_fold(rows, h, fill_mode), _fold(columns, w, fill_mode)]
        return np.where(outside[:, None], cval, out) if fill_mode == "constant" else out
    out = ((pixels(y0, c0) * (1 - fc) + pixels(y0, c0 + 1) * fc) * (1 - fy)
           + (pixels(y0 + 1, c0) * (1 - fc) + pixels(y0 + 1, c0 + 1) * fc) * fy)
    return out.reshape(x.shape).astype("float32")


def _fold(i, n, mode):
    import numpy as np
    if mode == "wrap":
        return i % n
    if mode == "reflect":
        i = i % (2 * n)
        return np.where(i < n, i, 2 * n - 1 - i)
    return np.clip(i, 0, n - 1)
