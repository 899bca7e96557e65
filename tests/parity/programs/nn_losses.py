"""Cross entropies and other losses of tf.nn."""
import numpy as np
import tensorflow as tf
from parity import check, raises

logits = tf.constant([[2.0, -1.0, 0.5], [0.1, 0.2, 3.0]])
labels = tf.constant([[1.0, 0.0, 0.0], [0.0, 0.3, 0.7]])
check("softmax", tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
check("sparse", tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2], logits=logits))
check("sigmoid", tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
check("weighted", tf.nn.weighted_cross_entropy_with_logits(labels, logits, pos_weight=2.0))
check("l2_loss", tf.nn.l2_loss(logits))
check("log_poisson", tf.nn.log_poisson_loss([1.0, 2.0], [0.5, 0.2]))
check("large logits", tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 0.0], logits=[-200.0, 200.0]))
x = tf.Variable(logits)
with tf.GradientTape(persistent=True) as tape:
    a = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels, x))
    b = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits([0, 2], x))
    c = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels, x))
check("gradients", [tape.gradient(t, x) for t in (a, b, c)])
check("ints of int64", tf.nn.sparse_softmax_cross_entropy_with_logits(labels=np.array([1, 1]), logits=logits))
raises((ValueError, tf.errors.InvalidArgumentError),
       lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 2], logits=logits))
