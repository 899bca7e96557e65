"""Functions of tf.image that need no files."""
import tensorflow as tf
from parity import check

images = tf.reshape(tf.range(2 * 4 * 4 * 3, dtype=tf.float32), (2, 4, 4, 3)) / 10.0
check("resized", tf.image.resize(images, (2, 2)))
check("resized larger", tf.image.resize(images[:1, :2, :2], (3, 5)))
check("image", tf.image.flip_left_right(tf.reshape(tf.range(8), (1, 2, 4, 1))))
check("grayscale", tf.image.rgb_to_grayscale(tf.ones((1, 2, 2, 3))), tol=1e-4)
check("resize nearest", tf.image.resize(tf.reshape(tf.range(16.0), (1, 4, 4, 1)), (2, 2), method="nearest"))
check("central crop", tf.image.central_crop(tf.ones((4, 4, 3)), 0.5).shape)
check("normalized", tf.image.per_image_standardization(tf.reshape(tf.range(12.0), (2, 2, 3))), tol=1e-4)
check("extract_patches", tf.image.extract_patches(tf.reshape(tf.range(16), (1, 4, 4, 1)), [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"))
