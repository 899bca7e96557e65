"""Names that tutorials use now and then: unicode_split, non_max_suppression, random.split, get_structure."""
import numpy as np
import tensorflow as tf
from parity import check

check("characters", tf.strings.unicode_split("né to", "UTF-8"))
check("of nothing", tf.strings.unicode_split("", input_encoding="UTF-8").shape)
boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.9, 0.9], [2.0, 2.0, 3.0, 3.0], [1.0, 1.0, 0.0, 0.1], [2.5, 2.5, 3.5, 3.5]]
scores = [0.8, 0.9, 0.3, 0.7, 0.6]
check("kept", tf.image.non_max_suppression(boxes, scores, 5))
check("strict", tf.image.non_max_suppression(boxes, scores, 5, iou_threshold=0.05))
check("two", tf.image.non_max_suppression(boxes, scores, 2))
check("good ones", tf.image.non_max_suppression(boxes, scores, 5, 0.5, score_threshold=0.5))
seeds = tf.random.split([1, 2], 3)
check("seeds", [seeds.shape, seeds.dtype.name, len(np.unique(seeds.numpy()))])
check("the same again", bool(tf.reduce_all(seeds == tf.random.split([1, 2], 3))))
check("folded", tf.random.fold_in([1, 2], 7).shape)
check("other data", bool(tf.reduce_all(tf.random.fold_in([1, 2], 7) == tf.random.fold_in([1, 2], 8))))
pictures = tf.data.Dataset.from_tensor_slices(np.ones((3, 6, 6, 3), "float32"))
counter = tf.data.Dataset.counter()


def augment(picture, seed):
    new = tf.random.split(seed, 1)[0, :]
    picture = tf.image.stateless_random_crop(picture, size=[4, 4, 3], seed=seed)
    return tf.clip_by_value(tf.image.stateless_random_brightness(picture, 0.5, seed=new), 0, 1)


augmented = tf.data.Dataset.zip((pictures, (counter, counter))).map(augment).batch(2)
check("augmented", [p.shape for p in augmented])
check("structure", repr(tf.data.experimental.get_structure(tf.data.Dataset.range(3).batch(2))))
