"""Indices and labels that are not there: the call that names them fails, what came before it has happened, nothing after it."""
import tensorflow as tf
from parity import check, raises

v, counter = tf.Variable([1.0, 2.0, 3.0, 4.0]), tf.Variable(0)
wrong = tf.errors.InvalidArgumentError


def after_a_write(value, call):
    """What the variable holds once the call behind an assignment has failed."""
    v.assign([value] * 4)
    raises(wrong, call)
    return v.numpy()


indices = tf.constant([0, 9])
check("a list", after_a_write(5.0, lambda: tf.gather(v, [0, 9]).numpy()))
check("a tensor", after_a_write(6.0, lambda: tf.gather(v, indices).numpy()))
check("a sum of two", after_a_write(7.0, lambda: tf.gather(v, indices + 1).numpy()))
check("pairs", after_a_write(8.0, lambda: tf.gather_nd(v, [[9]]).numpy()))
check("updates", after_a_write(9.0, lambda: tf.scatter_nd([[1], [9]], [1.0, 2.0], [4]).numpy()))
check("embedding", after_a_write(10.0, lambda: tf.keras.layers.Embedding(4, 2)(tf.constant([[1, 9]])).numpy()))
x, w = tf.ones((2, 2)), tf.Variable([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
optimizer = tf.keras.optimizers.SGD(0.1)


def step(labels):
    counter.assign_add(1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x @ w))
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    counter.assign_add(10)
    return loss.numpy()


raises(wrong, lambda: step([1, 7]))
check("a label", [counter, w])
check("the next step", step([1, 2]))
check("and its counts", counter)
