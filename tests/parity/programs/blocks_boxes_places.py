"""Blocks as rows of the batch, pooling with places, boxes on pictures, and special functions that are made of others."""
import numpy as np
import tensorflow as tf
from parity import check, raises

rng = np.random.default_rng(3)
x = tf.constant(rng.normal(size=(2, 4, 6, 3)).astype("float32"))
for name, block, borders in (("plain", [2, 2], [[0, 0], [0, 0]]), ("borders", [3, 2], [[1, 1], [2, 0]]), ("rows alone", [2], [[0, 0]])):
    cut = tf.space_to_batch(x, block, borders)
    check(f"space_to_batch {name}", cut)
    check(f"batch_to_space {name}", tf.batch_to_space(cut, block, borders))
check("nn.space_to_batch", tf.nn.space_to_batch(x, [1, 3], [[0, 0], [0, 0]]))
raises(tf.errors.InvalidArgumentError, lambda: tf.space_to_batch(x, [3, 2], [[0, 0], [0, 0]]))
v = tf.Variable(x)
with tf.GradientTape() as tape:
    y = tf.reduce_sum(tf.batch_to_space(tf.space_to_batch(v, [3, 2], [[1, 1], [0, 0]]) ** 2, [3, 2], [[0, 3], [1, 0]]))
check("gradient of blocks", tape.gradient(y, v))

for name, size, step, padding in (("2", 2, 2, "VALID"), ("same", 3, 2, "SAME"), ("oblong", [1, 2, 3, 1], [1, 1, 2, 1], "SAME"),
                                  ("overlaps", [3, 2], [1, 1], "VALID")):
    check(f"max_pool_with_argmax {name}", list(tf.nn.max_pool_with_argmax(x, size, step, padding)))
found = tf.nn.max_pool_with_argmax(tf.zeros([2, 4, 4, 2]) - 1.0, 2, 2, "SAME", output_dtype=tf.int32, include_batch_in_index=True)
check("ties, of a batch", found.argmax)
with tf.GradientTape() as tape:
    y = tf.reduce_sum(tf.nn.max_pool_with_argmax(v, 3, 2, "SAME").output ** 2)
check("gradient of the largest", tape.gradient(y, v))

boxes = tf.constant([[[0.1, 0.2, 0.7, 0.9], [0.0, 0.0, 1.0, 1.0], [-0.5, 0.3, 0.5, 1.4]], [[0.9, 0.1, 0.2, 0.5], [1.2, 0.1, 1.5, 0.5], [0.3, 0.3, 0.3, 0.3]]])
pictures = tf.constant(rng.uniform(size=(2, 9, 12, 3)).astype("float32"))
check("boxes", tf.image.draw_bounding_boxes(pictures, boxes, [[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]))
check("boxes in its own colours", tf.image.draw_bounding_boxes(pictures, tf.tile(boxes, [1, 4, 1]), None))
check("grey boxes", tf.image.draw_bounding_boxes(pictures[..., :1], boxes, [[0.3]]))
check("grey boxes in its own colours", tf.image.draw_bounding_boxes(pictures[..., :1], boxes, None))
check("boxes with alpha", tf.image.draw_bounding_boxes(tf.ones([1, 5, 5, 4]), boxes[:1], [[0.1, 0.2, 0.3, 0.4]]))
check("boxes in a function", tf.function(tf.image.draw_bounding_boxes)(pictures, boxes, tf.constant([[0.0, 1.0, 0.0]])))

p = tf.constant([[1.0, 2.0, 3.0], [0.5, 0.5, 4.0]])
check("lbeta", tf.math.lbeta(p))
check("erfcinv", tf.math.erfcinv(tf.constant([0.1, 0.5, 1.0, 1.7])))

# Names within scopes of a v1 graph, and shapes that variables are told.
with tf.Graph().as_default():
    v1, names = tf.compat.v1, []
    for _ in range(2):
        with tf.name_scope("in") as scope:
            with v1.name_scope("deep"):
                names.append(v1.placeholder(tf.float32, name="q").name)
            names += [scope, v1.placeholder(tf.float32, [None], name="x").name, v1.placeholder(tf.float32).name]
            names += [v1.get_variable(f"w{len(names)}", [2]).name, v1.Variable(1.0, name="v").name]
    with v1.name_scope(None, "other"):
        names.append(v1.placeholder(tf.float32, name="x").name)
        with tf.name_scope("in/"):
            names.append(v1.placeholder(tf.float32, name="z").name)
    names.append(v1.placeholder(tf.float32, name="x").name)
    check("names", names)
check("a shape", tf.Variable([1.0, 2.0], shape=[2]).shape)
raises(ValueError, lambda: tf.Variable([1.0, 2.0], shape=[3]))
raises(ValueError, lambda: tf.Variable([[1.0, 2.0]], shape=[None, 3]))
