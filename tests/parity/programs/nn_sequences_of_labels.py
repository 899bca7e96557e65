"""CTC: its loss, gradients, and the greedy reading; losses over drawn classes, the draws given."""
import keras
import numpy as np
import tensorflow as tf
from parity import check

r = np.random.RandomState(3)
logits = r.randn(7, 3, 5).astype("float32")
labels = np.array([[1, 2, 2], [3, 4, 0], [1, 0, 0]])
lengths, steps = np.array([3, 2, 1]), np.array([7, 6, 4])

x = tf.Variable(logits)
with tf.GradientTape() as tape:
    loss = tf.nn.ctc_loss(labels, x, lengths, steps, blank_index=0)
check("loss", loss, 1e-4)
check("gradient", tape.gradient(loss, x), 1e-4)
check("batch first", tf.nn.ctc_loss(labels, tf.transpose(logits, (1, 0, 2)), lengths, steps, logits_time_major=False, blank_index=0), 1e-4)
check("keras", keras.ops.ctc_loss(labels, np.transpose(logits, (1, 0, 2)), lengths, steps), 1e-4)
(found,), scores = tf.nn.ctc_greedy_decoder(logits, steps.astype("int32"))
check("read", tf.sparse.to_dense(found))
check("scores", scores, 1e-4)
read, scores = keras.ops.ctc_decode(np.transpose(logits, (1, 0, 2)), steps, strategy="greedy")
check("keras reads", read)

weights, biases = tf.Variable(r.randn(20, 4).astype("float32")), tf.Variable(r.randn(20).astype("float32"))
inputs, wanted = r.randn(3, 4).astype("float32"), np.array([[1], [4], [9]], "int64")
drawn = (tf.constant([2, 4, 7], dtype=tf.int64), tf.constant([[0.3], [0.2], [0.1]]), tf.constant([0.25, 0.2, 0.15]))
for name, function in (("nce", tf.nn.nce_loss), ("sampled softmax", tf.nn.sampled_softmax_loss)):
    with tf.GradientTape() as tape:
        loss = function(weights, biases, wanted, inputs, 3, 20, sampled_values=drawn)
    check(name, loss, 1e-4)
    check(name + " gradient", tf.convert_to_tensor(tape.gradient(loss, biases)), 1e-4)
classes, of_true, of_drawn = tf.random.log_uniform_candidate_sampler(wanted, 1, 5, True, 20)
check("drawn", [classes.shape, classes.dtype, of_true.shape, of_drawn.shape, len(set(classes.numpy().tolist()))])
check("not unique", tf.random.uniform_candidate_sampler(wanted, 1, 6, False, 12)[1], 1e-5)
