"""keras.losses that are functions of others: CTC and Circle."""
from snug._lazy import tf
from snug.keras.losses import Loss, reduce_weighted


def ctc(y_true, y_pred):
    """Labels are padded with 0, which is the blank; y_pred are probabilities' logits [batch, steps, classes]."""
    if len(y_pred.shape) != 3:
        raise ValueError(f"Targets `y_true` must be a tensor of shape `(batch_size, max_length)` and predictions of 3 axes. Received:"
                         f" {tuple(y_true.shape)}, {tuple(y_pred.shape)}")
    labels = tf.cast(y_true, "int32")
    return tf.nn.ctc_loss(labels, y_pred, tf.reduce_sum(tf.cast(labels != 0, "int32"), -1), tf.fill((y_pred.shape[0],), y_pred.shape[1]),
                          logits_time_major=False, blank_index=0)


def circle(y_true, y_pred, ref_labels=None, ref_embeddings=None, remove_diagonal=True, gamma=80, margin=0.4):
    """Near ones of a class and far ones of others, each weighed by how far it is from where it should be."""
    y_true, others = tf.reshape(tf.cast(y_true, "int32"), (-1, 1)), ref_embeddings
    labels = y_true if ref_labels is None else tf.reshape(tf.cast(ref_labels, "int32"), (-1, 1))
    apart = tf.maximum(1.0 - tf.matmul(y_pred, y_pred if others is None else others, transpose_b=True), 0.0)
    same = tf.equal(y_true, tf.transpose(labels))
    near, far = same, tf.logical_not(same)
    if remove_diagonal and others is None:
        near = near & tf.logical_not(tf.cast(tf.eye(y_true.shape[0]), "bool"))
    near, far = tf.cast(near, apart.dtype), tf.cast(far, apart.dtype)
    pull = -gamma * tf.maximum((margin + apart) * near, 0.0) * (margin - apart)
    push = gamma * tf.maximum((1.0 + margin - apart) * far, 0.0) * (1.0 - margin - apart)
    low = tf.cast(-1e30, apart.dtype)
    sums = [tf.reduce_logsumexp(tf.where(mask > 0, x, low), axis=1) for x, mask in ((pull, near), (push, far))]
    return tf.nn.softplus(sums[0] + sums[1])


class CTC(Loss):
    def __init__(self, reduction="sum_over_batch_size", name="ctc", dtype=None):
        super().__init__(name=name, reduction=reduction, dtype=dtype)

    def call(self, y_true, y_pred):
        return ctc(y_true, y_pred)


class Circle(Loss):
    def __init__(self, gamma=80.0, margin=0.4, remove_diagonal=True, reduction="sum_over_batch_size", name="circle", dtype=None):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.gamma, self.margin, self.remove_diagonal = gamma, margin, remove_diagonal

    def call(self, y_true, y_pred, ref_labels=None, ref_embeddings=None):
        return circle(y_true, y_pred, ref_labels, ref_embeddings, self.remove_diagonal, self.gamma, self.margin)

    def __call__(self, y_true, y_pred, sample_weight=None):
        """The mean is over rows that have both a near and a far one."""
        values = self.call(tf.convert_to_tensor(y_true), tf.convert_to_tensor(y_pred))
        return reduce_weighted(values, sample_weight, self.reduction, values > 0)

    def get_config(self):
        return {**super().get_config(), "gamma": self.gamma, "margin": self.margin, "remove_diagonal": self.remove_diagonal}

