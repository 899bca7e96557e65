"""Brightness, contrast, saturation, hue, gamma, grey, dtypes."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

x = tf.constant(np.random.RandomState(2).rand(3, 4, 3).astype(np.float32))
u = tf.cast(x * 255.0, tf.uint8)
check("brightness", tf.image.adjust_brightness(x, 0.2))
check("brightness u8", tf.image.adjust_brightness(u, 0.2))
check("contrast", tf.image.adjust_contrast(x, 1.7))
check("saturation", tf.image.adjust_saturation(x, 0.4), 1e-4)
check("hue", tf.image.adjust_hue(x, 0.3), 1e-4)
check("gamma", tf.image.adjust_gamma(x, 0.5, 2.0))
check("grey", tf.image.rgb_to_grayscale(x))
check("rgb", tf.image.grayscale_to_rgb(x[..., :1]))
check("hsv", tf.image.rgb_to_hsv(x), 1e-4)
check("back", tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(x)), 1e-4)
check("standard", tf.image.per_image_standardization(x), 1e-4)
check("to float", tf.image.convert_image_dtype(u, tf.float32))
check("to bytes", tf.image.convert_image_dtype(x, tf.uint8))
check("saturated", tf.image.convert_image_dtype(x * 1.5, tf.uint8, saturate=True))
d = Dataset.from_tensors(u).map(lambda p: tf.image.per_image_standardization(tf.image.convert_image_dtype(p, tf.float32)))
check("map", list(d), 1e-4)
check("map colours", list(Dataset.from_tensors(x).map(lambda p: tf.image.adjust_hue(tf.image.adjust_saturation(
    tf.image.adjust_contrast(tf.image.adjust_brightness(p, 0.1), 1.2), 0.8), 0.1))), 1e-4)
raises((ValueError, tf.errors.InvalidArgumentError), lambda: tf.image.rgb_to_grayscale(x[..., :2]))
