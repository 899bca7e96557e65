"""Classes drawn to stand for all that are wrong, and the losses that use them: tf.nn.nce_loss, tf.nn.sampled_softmax_loss."""
import math

from snug._lazy import tf
from snug._more import host_rows


def _draw(n, unique, draw, name, seed):
    """n classes of a distribution, each once if they are to be; and how many draws that took."""
    import numpy as np
    rows = host_rows(None, name, seed)
    if not unique:
        return draw(rows, n), n
    found, tries = {}, 0
    while len(found) < n:
        for c in draw(rows, n - len(found) if tries else n):
            tries += 1
            if len(found) < n:
                found.setdefault(int(c))
    return np.array(list(found), "int64"), tries


def _sampler(called, draw, share):
    """A sampler of the distribution that `draw` draws from and whose probabilities are `share`."""
    def sample(true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None):
        true_classes = tf.convert_to_tensor(true_classes)
        if unique and num_sampled > range_max:
            raise tf.errors.InvalidArgumentError(None, None, f"num_sampled: {num_sampled}, range_max: {range_max}; unique sampling needs more"
                                                 " classes than samples")
        if int(true_classes.shape[-1]) != num_true:
            raise tf.errors.InvalidArgumentError(None, None, f"true_classes must have num_true columns, expected: {true_classes.shape[-1]} was:"
                                                 f" {num_true}")
        found, tries = _draw(num_sampled, unique, lambda rows, n: draw(rows, n, range_max), called, seed)

        def expected(classes):
            p = share(tf.cast(classes, "float32"), range_max)
            return -tf.math.expm1(tries * tf.math.log1p(-p)) if unique else p * num_sampled
        classes = tf.constant(found, dtype="int64")
        return classes, expected(true_classes), expected(classes)
    return sample


def _draw_log(rows, n, most):
    import numpy as np
    return np.minimum(np.exp(rows.rand(n) * math.log(most + 1)).astype("int64") - 1, most - 1)


log_uniform_candidate_sampler = _sampler("log_uniform_candidates", _draw_log, lambda c, most: tf.math.log((c + 2.0) / (c + 1.0)) / math.log(most + 1))
uniform_candidate_sampler = _sampler("uniform_candidates", lambda rows, n, most: rows.randint(0, most, n), lambda c, most: tf.ones_like(c) / most)


def learned_unigram_candidate_sampler(*args, **kwargs):
    raise NotImplementedError("learned_unigram_candidate_sampler, which learns how often classes come, is not in Snug;"
                              " log_uniform_candidate_sampler (classes sorted by how often they come) and uniform_candidate_sampler are")


def _logits(weights, biases, labels, inputs, sampled, num_true, settings, seed=None):
    """Of true and of drawn classes, less the logarithms of how often each is drawn."""
    num_sampled, num_classes, values, subtract, remove = settings
    labels = tf.reshape(tf.cast(labels, "int64"), (-1, num_true))
    if values is None:
        values = sampled(labels, num_true, num_sampled, True, num_classes, seed)
    classes, true_count, drawn_count = values
    classes = tf.stop_gradient(classes)
    weights = tf.concat(list(weights), 0) if isinstance(weights, (list, tuple)) else weights
    of_true = tf.reduce_sum(tf.gather(weights, labels) * tf.expand_dims(inputs, 1), -1) + tf.gather(biases, labels)
    of_drawn = tf.matmul(inputs, tf.gather(weights, classes), transpose_b=True) + tf.gather(biases, classes)
    if remove:
        hit = tf.reduce_any(tf.equal(labels[:, :, None], classes[None, None, :]), 1)
        of_drawn = tf.where(hit, tf.cast(-1e37, of_drawn.dtype), of_drawn)
    if subtract:
        of_true, of_drawn = of_true - tf.math.log(true_count), of_drawn - tf.math.log(drawn_count)
    return of_true, of_drawn


def nce_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None, remove_accidental_hits=False,
             name="nce_loss"):
    true, drawn = _logits(weights, biases, labels, inputs, log_uniform_candidate_sampler, num_true,
                          (num_sampled, num_classes, sampled_values, True, remove_accidental_hits))
    logits = tf.concat([true, drawn], 1)
    wanted = tf.concat([tf.ones_like(true) / num_true, tf.zeros_like(drawn)], 1)
    return tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=wanted, logits=logits), 1)


def sampled_softmax_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None,
                         remove_accidental_hits=True, seed=None, name="sampled_softmax_loss"):
    true, drawn = _logits(weights, biases, labels, inputs, log_uniform_candidate_sampler, num_true,
                          (num_sampled, num_classes, sampled_values, True, remove_accidental_hits), seed)
    wanted = tf.concat([tf.ones_like(true) / num_true, tf.zeros_like(drawn)], 1)
    return tf.nn.softmax_cross_entropy_with_logits(labels=wanted, logits=tf.concat([true, drawn], 1))
