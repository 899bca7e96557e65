"""What compile() was given: one loss per output, and all metrics as one. Both are made when the first batch shows the outputs."""
from snug import _nest
from snug.keras import losses, metrics


def with_mask(weight, y_pred):
    mask = getattr(y_pred, "_keras_mask", None)
    if mask is None:
        return weight
    from snug._lazy import tf
    mask = tf.cast(mask, "float32")
    if weight is None:
        return mask
    return mask * tf.cast(tf.reshape(weight, list(weight.shape) + [1] * (len(mask.shape) - len(weight.shape))), "float32")


def count(x):
    first = next((t for t in _nest.flatten(x) if hasattr(t, "shape") and len(t.shape)), None)
    return None if first is None else first.shape[0]


class _PerOutput:
    """Knows which part of labels and weights belongs to an output."""

    def _names(self, y_pred):
        """Of outputs, in the order in which they are flattened; None where the model has no names for them."""
        if isinstance(y_pred, dict):
            return sorted(y_pred)
        return self.output_names or [None] * len(_nest.flatten(y_pred))

    def _pick(self, y, y_pred, k):
        if y is None or not _nest.is_nested(y):
            return y
        name = self._names(y_pred)[k]
        if isinstance(y, dict) and name in y:
            return y[name]
        if isinstance(y, dict) and isinstance(y_pred, dict):
            return None
        flat = _nest.flatten(y)
        return flat[k] if k < len(flat) else None


class CompileLoss(_PerOutput):
    def __init__(self, loss, weights, output_names):
        self.given, self.weights, self.output_names = loss, weights, output_names
        self._rows = self._trackers = None      # (loss, weight) per output

    @property
    def metrics(self):
        return [t for t in self._trackers or [] if t is not None]

    def _build(self, y_pred):
        """Nothing is set before all is made: making variables may start the step again."""
        n, names = len(_nest.flatten(y_pred)), self._names(y_pred)
        given = _spread(self.given, names, n, "loss")
        found = [losses.as_loss(one) for one in given]
        trackers = self._trackers
        if trackers is None and sum(one is not None for one in found) > 1:
            shown = [name or (one if isinstance(one, str) else getattr(made, "name", None)) for name, one, made in zip(names, given, found)]
            trackers = [metrics.Mean(name=f"{name}_loss") if one is not None else None for name, one in zip(shown, found)]
        self._trackers = trackers
        self._rows = list(zip(found, _spread(self.weights, names, n, "loss_weights")))

    def __call__(self, y, y_pred, sample_weight=None):
        if self._rows is None:
            self._build(y_pred)
        total = None
        for k, ((loss, weight), output) in enumerate(zip(self._rows, _nest.flatten(y_pred))):
            if loss is None:
                continue
            value = loss(self._pick(y, y_pred, k), output, sample_weight=self._pick(sample_weight, y_pred, k))
            if self._trackers is not None:
                rows = None if metrics._in_step[1] else count(output)        # of batches of any size Keras knows none
                self._trackers[k].update_state(value, sample_weight=rows)
            value = value * weight if weight is not None else value
            total = value if total is None else total + value
        return total


class CompileMetrics(_PerOutput, metrics.Metric):
    """One metric for the model's list; its result has the names that logs show."""

    def __init__(self, given, weighted, loss):
        super().__init__(name="compile_metrics")
        self.given, self.weighted, self.output_names, self._loss = given, weighted, loss.output_names, loss
        self._rows = None                       # (output, metric, whether weights count, name of the output)

    @property
    def metrics(self):
        return [m for _, m, _, _ in self._rows or []]

    @property
    def variables(self):
        return [v for m in self.metrics for v in m.variables]

    def _build(self, y, y_pred):
        flat, names = _nest.flatten(y_pred), self._names(y_pred)
        kinds = [losses.as_loss(one) for one in _spread(self._loss.given, names, len(flat), "loss")]
        self._rows = [(k, metrics.get_for(m, kinds[k], flat[k], self._pick(y, y_pred, k)), weighted, names[k] if len(flat) > 1 else None)
                      for given, weighted in ((self.given, False), (self.weighted, True))
                      for k, group in enumerate(_spread_metrics(given, names, len(flat))) for m in group]

    def update_state(self, y, y_pred, sample_weight=None):
        if self._rows is None:
            self._build(y, y_pred)
        flat = _nest.flatten(y_pred)
        for k, metric, weighted, _ in self._rows:
            weight = self._pick(sample_weight, y_pred, k) if weighted else None
            metric.update_state(self._pick(y, y_pred, k), flat[k], sample_weight=with_mask(weight, flat[k]))

    def reset_state(self):
        for m in self.metrics:
            m.reset_state()

    def by_name(self):
        """The metrics under the names of logs; a name that is taken gets a number, a weighted one its word first."""
        found, taken = {}, {}
        for _, metric, weighted, output in self._rows or []:
            words = [output, metric.name] if output else [metric.name]
            name = "_".join(words)
            if weighted and name in taken:
                name = "_".join([*words[:-1], "weighted", metric.name])
            taken[name] = taken.get(name, 0) + 1
            found[name if taken[name] == 1 else f"{name}_{taken[name] - 1}"] = metric
        return found

    def result(self):
        if self._rows is None:
            raise ValueError("Cannot get result() since the metric has not yet been built.")
        return {name: m.result() for name, m in self.by_name().items()}


def _spread(value, names, n, what):
    if value is None:
        return [None] * n
    if isinstance(value, dict):
        unknown = [k for k in value if k not in names]
        if unknown:
            raise ValueError(f"In the dict argument `{what}`, key '{unknown[0]}' does not correspond to any model output. Received:"
                             f" {what}={value}; outputs are {names}")
        return [value.get(name) for name in names]
    if isinstance(value, (list, tuple)):
        if len(value) != n:
            raise ValueError(f"For a model with multiple outputs, when providing the `{what}` argument as a list, it should have as many"
                             f" entries as the model has outputs. Received: {len(value)} for {n} outputs")
        return list(value)
    return [value] * n


def _spread_metrics(given, names, n):
    if not given:
        return [[] for _ in range(n)]
    as_list = lambda v: [] if v is None else list(v) if isinstance(v, (list, tuple)) else [v]
    if n == 1:
        return [_nest.flatten(given)]
    if isinstance(given, dict):
        return [as_list(given.get(name)) for name in names]
    if isinstance(given, (list, tuple)) and len(given) == n:
        return [as_list(g) for g in given]
    raise ValueError("For a model with multiple outputs, `metrics` must be a list with one entry per output, or a dict by output name.")
