"""tf.compat.v1.losses: means over elements, weighted; each is added to the collection of losses."""
from snug import _graph
from snug._lazy import tf


class Reduction:
    NONE, SUM, MEAN, SUM_BY_NONZERO_WEIGHTS = "none", "weighted_sum", "weighted_mean", "weighted_sum_by_nonzero_weights"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"


def _weighted(each, weights, reduction):
    """One number of the losses: their weighted sum over what the reduction says; 0 where that is nothing."""
    weights = tf.cast(weights, each.dtype)
    each = each * weights
    if reduction == Reduction.NONE:
        return each
    total, all_of = tf.reduce_sum(each), tf.broadcast_to(weights, tf.shape(each))
    if reduction == Reduction.SUM:
        return total
    if reduction == Reduction.MEAN:
        return tf.math.divide_no_nan(total, tf.reduce_sum(all_of))
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return total / tf.cast(tf.size(each), each.dtype)
    if reduction != Reduction.SUM_BY_NONZERO_WEIGHTS:
        raise ValueError(f"Invalid Reduction Key {reduction}.")
    return tf.math.divide_no_nan(total, tf.reduce_sum(tf.cast(tf.not_equal(all_of, 0), each.dtype)))


def _reduced(function, args, weights, reduction, loss_collection):
    def loss(weights, *values):
        return _weighted(function(*[tf.convert_to_tensor(v) for v in values]), weights, reduction)
    made = _graph.make(loss, (weights,) + args, {}, "loss") if _graph.active() else loss(weights, *args)
    if _graph.active() and loss_collection:
        _graph.add_to_collection(loss_collection, made)
    return made


def compute_weighted_loss(losses, weights=1.0, scope=None, loss_collection=_graph.GraphKeys.LOSSES, reduction=Reduction.SUM_BY_NONZERO_WEIGHTS):
    return _reduced(lambda each: each, (losses,), weights, reduction, loss_collection)


def mean_squared_error(labels, predictions, weights=1.0, scope=None, loss_collection=_graph.GraphKeys.LOSSES,
                       reduction=Reduction.SUM_BY_NONZERO_WEIGHTS):
    return _reduced(lambda y, p: tf.math.squared_difference(p, tf.cast(y, p.dtype)), (labels, predictions), weights, reduction, loss_collection)


def absolute_difference(labels, predictions, weights=1.0, scope=None, loss_collection=_graph.GraphKeys.LOSSES,
                        reduction=Reduction.SUM_BY_NONZERO_WEIGHTS):
    return _reduced(lambda y, p: tf.abs(p - tf.cast(y, p.dtype)), (labels, predictions), weights, reduction, loss_collection)


def log_loss(labels, predictions, weights=1.0, epsilon=1e-7, scope=None, loss_collection=_graph.GraphKeys.LOSSES,
             reduction=Reduction.SUM_BY_NONZERO_WEIGHTS):
    def each(y, p):
        y = tf.cast(y, p.dtype)
        return -y * tf.math.log(p + epsilon) - (1.0 - y) * tf.math.log(1.0 - p + epsilon)
    return _reduced(each, (labels, predictions), weights, reduction, loss_collection)


def sigmoid_cross_entropy(multi_class_labels, logits, weights=1.0, label_smoothing=0, scope=None, loss_collection=_graph.GraphKeys.LOSSES,
                          reduction=Reduction.SUM_BY_NONZERO_WEIGHTS):
    def each(y, z):
        y = tf.cast(y, z.dtype)
        y = y * (1 - label_smoothing) + 0.5 * label_smoothing
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=z)
    return _reduced(each, (multi_class_labels, logits), weights, reduction, loss_collection)


def softmax_cross_entropy(onehot_labels, logits, weights=1.0, label_smoothing=0, scope=None, loss_collection=_graph.GraphKeys.LOSSES,
                          reduction=Reduction.SUM_BY_NONZERO_WEIGHTS):
    def each(y, z):
        y = tf.cast(y, z.dtype)
        y = y * (1 - label_smoothing) + label_smoothing / z.shape[-1]
        return tf.nn.softmax_cross_entropy_with_logits(y, z)
    return _reduced(each, (onehot_labels, logits), weights, reduction, loss_collection)


def sparse_softmax_cross_entropy(labels, logits, weights=1.0, scope=None, loss_collection=_graph.GraphKeys.LOSSES,
                                 reduction=Reduction.SUM_BY_NONZERO_WEIGHTS):
    return _reduced(lambda y, z: tf.nn.sparse_softmax_cross_entropy_with_logits(y, z), (labels, logits), weights, reduction, loss_collection)


def get_losses(scope=None, loss_collection=_graph.GraphKeys.LOSSES):
    return _graph.get_collection(loss_collection, scope)


def get_regularization_losses(scope=None):
    return _graph.get_collection(_graph.GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope=None, name="total_regularization_loss"):
    total = None
    for loss in get_regularization_losses(scope):
        total = loss if total is None else total + loss
    return tf.constant(0.0) if total is None else total


def get_total_loss(add_regularization_losses=True, name="total_loss", scope=None):
    total = None
    for loss in get_losses(scope) + (get_regularization_losses(scope) if add_regularization_losses else []):
        total = loss if total is None else total + loss
    return total
