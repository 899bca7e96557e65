"""JPEG pictures: decoded within one level."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

y, x = np.mgrid[0:16, 0:24]
smooth = np.stack([x * 10, y * 15, (x + y) * 6], -1).astype(np.uint8)
data = tf.io.encode_jpeg(smooth, quality=95)
picture = tf.io.decode_jpeg(data)
check("shape", picture.shape)
check("dtype", picture.dtype)
check("near", bool(np.abs(picture.numpy().astype(int) - smooth).max() < 24))
check("mean", float(tf.reduce_mean(tf.cast(picture, tf.float32))), 5e-3)
check("grey", tf.io.decode_jpeg(data, channels=1).shape)
check("grey mean", float(tf.reduce_mean(tf.cast(tf.io.decode_jpeg(data, channels=1), tf.float32))), 5e-3)
check("half", tf.io.decode_jpeg(data, ratio=2).shape)
check("image", tf.io.decode_image(data).shape)
d = Dataset.from_tensors(data).repeat(2).map(lambda b: tf.image.convert_image_dtype(tf.io.decode_jpeg(b, channels=3), tf.float32))
check("map", [float(tf.reduce_mean(p)) for p in d], 5e-3)
check("spec", repr(d.element_spec))
check("is_jpeg", tf.io.is_jpeg(data))
raises(tf.errors.InvalidArgumentError, lambda: tf.io.decode_jpeg(b"none"))
raises(tf.errors.InvalidArgumentError, lambda: tf.io.decode_jpeg(data.numpy()[:100]))
