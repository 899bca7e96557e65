"""Crops, pads, flips, quarter turns."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
b = np.stack([x, x + 100])
check("crop", tf.image.crop_to_bounding_box(x, 1, 1, 2, 2))
check("pad", tf.image.pad_to_bounding_box(x, 1, 2, 6, 6))
check("central", tf.image.central_crop(x, 0.5))
check("crop_or_pad", tf.image.resize_with_crop_or_pad(x, 2, 5))
check("left_right", tf.image.flip_left_right(x))
check("up_down", tf.image.flip_up_down(b))
check("transpose", tf.image.transpose(x))
for k in range(4):
    check("rot90", tf.image.rot90(x, k=k))
check("batch rot90", tf.image.rot90(b))
d = Dataset.from_tensor_slices(b)
check("map", list(d.map(lambda p: tf.image.flip_left_right(tf.image.crop_to_bounding_box(p, 0, 1, 3, 2)))))
check("map pad", list(d.map(lambda p: tf.image.pad_to_bounding_box(p, 0, 0, 5, 5))))
check("map spec", repr(d.map(lambda p: tf.image.resize_with_crop_or_pad(p, 2, 2)).element_spec))
v = Dataset.from_generator(lambda: iter([x, x[:2]]), output_signature=tf.TensorSpec([None, 3, 2], tf.float32))
check("vague", list(v.map(lambda p: tf.image.resize_with_crop_or_pad(p, 3, 3)).batch(2)))
check("vague spec", repr(v.map(lambda p: tf.image.resize_with_crop_or_pad(p, 3, 3)).element_spec))
check("vague flip", list(v.map(tf.image.flip_up_down)))
raises((ValueError, tf.errors.InvalidArgumentError), lambda: tf.image.crop_to_bounding_box(x, 3, 0, 2, 2))
