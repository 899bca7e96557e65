"""FBetaScore and F1Score: what averages per class need; one number per class where none is asked for."""
from snug import _C
from snug._lazy import tf
from snug.keras.metrics import Metric


class FBetaScore(Metric):
    def __init__(self, average=None, beta=1.0, threshold=None, name="fbeta_score", dtype=None):
        super().__init__(name=name, dtype=dtype)
        if average not in (None, "micro", "macro", "weighted"):
            raise ValueError("Invalid `average` argument value. Expected one of: {None, 'micro', 'macro', 'weighted'}. Received:"
                             f" average={average}")
        if not isinstance(beta, float) or beta <= 0.0:
            raise ValueError(f"Invalid `beta` argument value. It should be a Python float > 0. Received: beta={beta}")
        if threshold is not None and (not isinstance(threshold, float) or not 0.0 < threshold <= 1.0):
            raise ValueError("Invalid `threshold` argument value. It should be a Python float that verifies 0 < threshold <= 1."
                             f" Received: threshold={threshold}")
        self.average, self.beta, self.threshold = average, beta, threshold
        self.true_positives = None

    def _build(self, y_true, y_pred):
        if len(y_pred.shape) != 2 or len(y_true.shape) != 2:
            raise ValueError("FBetaScore expects 2D inputs with shape (batch_size, output_dim). Received input shapes:"
                             f" y_pred.shape={tuple(y_pred.shape)} and y_true.shape={tuple(y_true.shape)}.")
        shape = () if self.average == "micro" else (y_pred.shape[-1],)
        made = [self.add_weight(name=n, shape=shape) for n in ("true_positives", "false_positives", "false_negatives", "intermediate_weights")]
        self.true_positives, self.false_positives, self.false_negatives, self.intermediate_weights = made

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true, y_pred = (tf.cast(_C.convert_to_tensor(y), self._dtype) for y in (y_true, y_pred))
        if self.true_positives is None:
            self._build(y_true, y_pred)
        if self.threshold is None:
            hit = tf.logical_and(y_pred >= tf.reduce_max(y_pred, -1, keepdims=True), tf.abs(y_pred) > 1e-9)
        else:
            hit = y_pred > self.threshold
        hit = tf.cast(hit, self._dtype)
        parts = (self.true_positives, hit * y_true), (self.false_positives, hit * (1.0 - y_true)), \
            (self.false_negatives, (1.0 - hit) * y_true), (self.intermediate_weights, y_true)
        for variable, values in parts:
            if sample_weight is not None:
                values = values * tf.expand_dims(tf.cast(_C.convert_to_tensor(sample_weight), self._dtype), 1)
            variable.assign_add(tf.reduce_sum(values, None if self.average == "micro" else 0))

    def result(self):
        if self.true_positives is None:
            return tf.zeros(())
        tiny, hits, square = 1e-7, self.true_positives.read_value(), self.beta ** 2
        precision = hits / (hits + self.false_positives + tiny)
        recall = hits / (hits + self.false_negatives + tiny)
        score = precision * recall / (square * precision + recall + tiny) * (1.0 + square)
        if self.average == "weighted":
            weights = self.intermediate_weights.read_value()
            return tf.reduce_sum(score * (weights / (tf.reduce_sum(weights) + tiny)))
        return score if self.average is None else tf.reduce_mean(score)

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype, "average": self.average, "beta": self.beta, "threshold": self.threshold}


class F1Score(FBetaScore):
    def __init__(self, average=None, threshold=None, name="f1_score", dtype=None):
        super().__init__(average=average, beta=1.0, threshold=threshold, name=name, dtype=dtype)

    def get_config(self):
        return {k: v for k, v in super().get_config().items() if k != "beta"}


for _class in (FBetaScore, F1Score):
    _class._keras_module = "keras.metrics"
