"""PNG pictures: decoded, encoded, in map functions."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

import os
import tempfile

x = np.random.RandomState(0).randint(0, 256, (5, 4, 3), dtype=np.uint8)
png = tf.io.encode_png(x)
check("rgb", tf.io.decode_png(png))
check("image", tf.image.decode_png(png, channels=3))
check("grey", tf.image.decode_png(png, channels=1).shape)
check("any", tf.io.decode_image(png, expand_animations=False))
check("float", tf.io.decode_image(png, dtype=tf.float32, expand_animations=False)[0])
check("alpha", tf.io.decode_png(png, channels=4)[0])
grey = tf.io.encode_png(x[:, :, :1])
check("of grey", tf.io.decode_png(grey))
check("grey as rgb", tf.io.decode_png(grey, channels=3)[0])
with tempfile.TemporaryDirectory() as folder:
    for i in range(3):
        tf.io.write_file(os.path.join(folder, f"{i}.png"), tf.io.encode_png(x[:3 + i]))
    files = Dataset.list_files(os.path.join(folder, "*.png"), shuffle=False)
    pictures = files.map(lambda p: tf.io.decode_png(tf.io.read_file(p), channels=3))
    check("spec", repr(pictures.element_spec))
    check("shapes", [p.shape.as_list() for p in pictures])
    small = pictures.map(lambda p: tf.image.resize(p, [2, 2]) / 255.0, num_parallel_calls=2)
    check("resized", list(small.batch(3)), 1e-3)
    check("resized spec", repr(small.element_spec))
raises(tf.errors.InvalidArgumentError, lambda: tf.io.decode_png(b"no picture"))
raises(tf.errors.InvalidArgumentError, lambda: tf.io.decode_image(b"text"))
