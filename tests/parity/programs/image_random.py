"""Random changes of pictures: what is certain about them."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

x = np.random.RandomState(3).rand(6, 5, 3).astype(np.float32)

def one_of(y, *choices):
    return any(np.allclose(np.asarray(y), c, atol=1e-5) for c in choices)

for _ in range(4):
    check("left_right", one_of(tf.image.random_flip_left_right(x), x, x[:, ::-1]))
    check("up_down", one_of(tf.image.random_flip_up_down(x), x, x[::-1]))
check("crop", tf.image.random_crop(x, [2, 3, 3]).shape)
check("brightness", bool(np.abs((np.asarray(tf.image.random_brightness(x, 0.2)) - x)).max() <= 0.2001))
check("contrast", tf.image.random_contrast(x, 0.5, 0.9).shape)
check("saturation", tf.image.random_saturation(x, 0.5, 0.9).shape)
check("hue", tf.image.random_hue(x, 0.2).shape)
check("stateless", one_of(tf.image.stateless_random_flip_left_right(x, (1, 2)), x, x[:, ::-1]))
same = [np.asarray(tf.image.stateless_random_brightness(x, 0.3, (5, 6))) for _ in range(2)]
check("same", np.array_equal(*same))
check("stateless crop", tf.image.stateless_random_crop(x, (2, 2, 3), (1, 2)).shape)
check("stateless contrast", tf.image.stateless_random_contrast(x, 0.5, 0.9, (1, 2)).shape)
d = Dataset.from_tensors(x).repeat(40).map(lambda p: tf.image.random_flip_left_right(p), num_parallel_calls=2)
seen = [np.array_equal(p, x) for p in d.as_numpy_iterator()]
check("both happen", [any(seen), all(seen)])
check("always one", all(one_of(p, x, x[:, ::-1]) for p in d.as_numpy_iterator()))
crops = Dataset.from_tensors(x).repeat(20).map(lambda p: tf.image.random_crop(p, [2, 2, 3]))
check("crops differ", len({p.numpy().tobytes() for p in crops}) > 3)
check("crops spec", repr(crops.element_spec))
draws = Dataset.range(30).map(lambda i: tf.random.uniform([]))
check("draws differ", len({float(v) for v in draws}) > 25)
noise = Dataset.range(3).map(lambda i: tf.random.normal([4]))
check("noise spec", repr(noise.element_spec))
check("cond", sorted({float(v) for v in Dataset.range(60).map(
    lambda i: tf.cond(tf.random.uniform([]) > 0.5, lambda: 1.0, lambda: 0.0))}))
raises(tf.errors.InvalidArgumentError, lambda: tf.image.random_crop(x, [9, 9, 3]))
