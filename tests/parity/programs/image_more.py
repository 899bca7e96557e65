"""Metrics and patches of pictures."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

x = tf.constant(np.random.RandomState(4).rand(1, 6, 6, 3).astype(np.float32))
y = tf.clip_by_value(x + 0.1, 0.0, 1.0)
check("psnr", tf.image.psnr(x, y, 1.0), 1e-4)
check("total_variation", tf.image.total_variation(x), 1e-4)
check("patches", tf.image.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"))
check("map patches", list(Dataset.from_tensors(x).map(lambda p: tf.image.extract_patches(
    p, [1, 3, 3, 1], [1, 3, 3, 1], [1, 1, 1, 1], "VALID").shape[-1])))
