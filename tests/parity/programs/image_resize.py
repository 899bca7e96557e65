"""tf.image.resize: methods, antialias, aspect, batches."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

x = np.random.RandomState(1).rand(1, 5, 7, 2).astype(np.float32)
for method in ("bilinear", "nearest", "area", "bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"):
    check(method + " up", tf.image.resize(x, [8, 9], method=method), 1e-3)
    check(method + " down", tf.image.resize(x, [3, 4], method=method), 1e-3)
for method in ("bilinear", "bicubic", "lanczos3"):
    check(method + " antialias", tf.image.resize(x, [3, 4], method=method, antialias=True), 1e-3)
check("one", tf.image.resize(x[0], [4, 4]), 1e-3)
check("aspect", tf.image.resize(x[0], [4, 4], preserve_aspect_ratio=True), 1e-3)
u = (x[0] * 255).astype(np.uint8)
check("bytes", tf.image.resize(u, [3, 3]), 1e-3)
check("bytes nearest", tf.image.resize(u, [3, 3], method="nearest"))
check("with_pad", tf.image.resize_with_pad(x[0], 6, 6), 1e-3)
check("crop_or_pad", tf.image.resize_with_crop_or_pad(x[0], 4, 9))
d = Dataset.from_tensors(x[0]).map(lambda p: tf.image.resize(p, (2, 3)))
check("map", list(d), 1e-3)
raises((ValueError, tf.errors.InvalidArgumentError), lambda: tf.image.resize(x, [3]))
raises((ValueError, tf.errors.InvalidArgumentError), lambda: tf.image.resize(x[0, 0], [3, 3]))
