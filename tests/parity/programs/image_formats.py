"""Pictures of another format than the function's name says; shapes of borders that are drawn; pictures with masks by their paths."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset
rng = np.random.RandomState(0)
jpeg = tf.io.encode_jpeg(rng.randint(0, 255, (4, 5, 3)).astype("uint8"))
png = tf.io.encode_png(rng.randint(0, 255, (4, 5, 4)).astype("uint8"))
for name in ("decode_jpeg", "decode_png"):
    decode = getattr(tf.io, name)
    check(name + " of JPEG", tuple(decode(jpeg).shape))
    check(name + " of PNG", decode(png))
    check(name + " in colours", decode(png, channels=3))
    raises(tf.errors.InvalidArgumentError, lambda: decode(b"a text, and no picture"))
    raises(tf.errors.InvalidArgumentError, lambda: decode(jpeg, channels=4))
raises(tf.errors.InvalidArgumentError, lambda: tf.io.decode_bmp(png))


def cut_out(picture):
    top, left = (tf.random.uniform([], 0, 20, dtype=tf.int32) for _ in range(2))
    mask = tf.pad(tf.zeros([8, 8]), [[top, 20 - top], [left, 20 - left]], constant_values=1)
    return tf.cast(picture, tf.float32) * mask


x = rng.randint(1, 255, (6, 28, 28)).astype("uint8")
d = Dataset.from_tensor_slices(x).map(cut_out)
check("cut out", d.element_spec.shape)
check("holes", [int(tf.reduce_sum(tf.cast(p == 0, tf.int32))) for p in d])
with tempfile.TemporaryDirectory() as folder:
    for i in range(3):
        tf.io.write_file(os.path.join(folder, f"{i}.png"), tf.io.encode_png(rng.randint(0, 255, (9 + i, 12, 3)).astype("uint8")))
        tf.io.write_file(os.path.join(folder, f"m{i}.png"), tf.io.encode_png(rng.randint(1, 4, (9 + i, 12, 1)).astype("uint8")))

    def load(path, mask):
        picture = tf.image.convert_image_dtype(tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), (6, 6)), "float32")
        mask = tf.image.resize(tf.io.decode_png(tf.io.read_file(mask), channels=1), (6, 6), method="nearest")
        mask = tf.image.convert_image_dtype(mask, "uint8")
        mask -= 1
        return picture, mask
    pairs = Dataset.from_tensor_slices(([os.path.join(folder, f"{i}.png") for i in range(3)],
                                        [os.path.join(folder, f"m{i}.png") for i in range(3)])).map(load, num_parallel_calls=2).batch(2)
    check("pairs", [str(s) for s in pairs.element_spec])
    check("pictures and masks", [(p, m) for p, m in pairs], 1e-3)
