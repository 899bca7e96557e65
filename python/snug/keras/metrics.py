"""keras.metrics: the engine's metrics, and Python's own: Mean, Sum, and subclasses with weights of their own."""
import contextlib
import functools
import operator

from snug import _C
from snug._lazy import tf
from snug._types import as_dtype
from snug.keras import _serial, _signatures
from snug._threads import ThreadList
from snug.keras._names import auto_name, snake
from snug.keras._variable import KerasVariable

_ALIASES = {"mse": "MeanSquaredError", "mae": "MeanAbsoluteError", "mape": "MeanAbsolutePercentageError",
            "msle": "MeanSquaredLogarithmicError", "MSE": "MeanSquaredError", "MAE": "MeanAbsoluteError",
            "MAPE": "MeanAbsolutePercentageError", "MSLE": "MeanSquaredLogarithmicError", "cosine_proximity": "CosineSimilarity",
            "log_cosh": "LogCoshError", "logcosh": "LogCoshError", "kl_divergence": "KLDivergence", "bce": "BinaryCrossentropy",
            "KLD": "KLDivergence", "rmse": "RootMeanSquaredError"}
_ENGINE = {"AUC": "auc", "KLDivergence": "kl_divergence", "LogCoshError": "logcosh",
           "MeanIoU": "mean_io_u", "BinaryIoU": "binary_io_u", "IoU": "io_u", "OneHotIoU": "one_hot_io_u",
           "OneHotMeanIoU": "one_hot_mean_io_u", "R2Score": "r2_score"}
_NUMBERED = ("AUC BinaryIoU FalseNegatives FalsePositives IoU MeanIoU OneHotIoU OneHotMeanIoU Precision PrecisionAtRecall Recall"
             " RecallAtPrecision SensitivityAtSpecificity SpecificityAtSensitivity TrueNegatives TruePositives").split()
_UP = ("AUC Accuracy BinaryAccuracy BinaryIoU CategoricalAccuracy ConcordanceCorrelation CosineSimilarity F1Score FBetaScore IoU MeanIoU"
       " OneHotIoU OneHotMeanIoU PearsonCorrelation Precision PrecisionAtRecall R2Score Recall RecallAtPrecision"
       " SensitivityAtSpecificity SparseCategoricalAccuracy SparseTopKCategoricalAccuracy SpecificityAtSensitivity"
       " TopKCategoricalAccuracy").split()
_DOWN = ("BinaryCrossentropy CategoricalCrossentropy CategoricalHinge Hinge KLDivergence LogCoshError MeanAbsoluteError"
         " MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError Poisson RootMeanSquaredError"
         " SparseCategoricalCrossentropy SquaredHinge").split()
_in_step = ThreadList([0, False])       # how many steps are open; whether their batches may be of any size


@contextlib.contextmanager
def in_step(any_size=False):
    """Within a step results are not read: they are promises that fit resolves when it shows them."""
    before = _in_step[1]
    _in_step[0], _in_step[1] = _in_step[0] + 1, any_size
    try:
        yield
    finally:
        _in_step[0], _in_step[1] = _in_step[0] - 1, before


def _is_promised():
    return _in_step[0] or _C.is_tracing()


class _Result:
    """The result of a metric, read when someone looks."""

    def __init__(self, metric):
        self.metric = metric

    def __call__(self):
        return self.metric._read()

    def __float__(self):
        return float(self.metric._read())

    def numpy(self):
        import numpy as np
        return np.float32(self.metric._read())

    def __format__(self, spec):
        return format(float(self), spec)

    def __repr__(self):
        return repr(float(self))

    def _tensor(self):
        return _C.convert_to_tensor(self.metric._read())

    __hash__ = object.__hash__


def _operators():
    """A metric made of others computes with their results: they are read then."""
    for word in "add sub mul truediv pow lt le gt ge".split():
        function = getattr(operator, word)
        setattr(_Result, f"__{word}__", lambda self, other, f=function: f(self._tensor(), _tensor_of(other)))
        if len(word) > 2:
            setattr(_Result, f"__r{word}__", lambda self, other, f=function: f(_tensor_of(other), self._tensor()))
    _Result.__neg__ = lambda self: -self._tensor()


def _tensor_of(value):
    return value._tensor() if isinstance(value, _Result) else value


_operators()


class Metric:
    """Subclasses add weights, update and give a result."""
    _is_keras_metric = True
    _keras_module = "keras.metrics"

    def __init__(self, dtype=None, name=None):
        self.__dict__.setdefault("_variables", [])
        if isinstance(dtype, str) and name is None and dtype not in ("float32", "float64", "float16", "int32", "int64"):
            dtype, name = None, dtype          # tf.keras: Metric(name)
        self._name = name or auto_name(snake(type(self).__name__))
        self._dtype = as_dtype(dtype or "float32")

    def __init_subclass__(cls, **kwargs):
        """A result made of results that are promises within a step is one too."""
        super().__init_subclass__(**kwargs)
        result = cls.__dict__.get("result")
        if result is None or cls.__module__ == __name__:
            return

        @functools.wraps(result)
        def later(self):
            return _Result(self) if _is_promised() and self._holds_built() else result(self)
        cls.result = later

    def _holds_built(self):
        return any(isinstance(v, _Built) or isinstance(v, Metric) and v._holds_built() for v in self.__dict__.values())

    def __setattr__(self, name, value):
        if isinstance(value, _C.Variable):
            known = self.__dict__.setdefault("_variables", [])
            if not any(value is v for v in known):
                known.append(value)
        object.__setattr__(self, name, value)

    @property
    def name(self):
        return self._name

    @property
    def _direction(self):
        """Which way is better, where that is known."""
        names = [c.__name__ for c in type(self).__mro__ if c.__module__.startswith("snug.")]
        return "up" if any(n in _UP for n in names) else "down" if any(n in _DOWN for n in names) else None

    @property
    def dtype(self):
        return self._dtype.name

    @property
    def variables(self):
        return list(self.__dict__.get("_variables", []))

    weights = non_trainable_variables = variables

    def add_weight(self, shape=(), initializer=None, dtype=None, name=None):
        from snug.keras import initializers
        if isinstance(shape, str):          # as Keras 2 had it: the name first
            name, shape = shape, ()
        initial = initializers.get(initializer or "zeros")
        v = KerasVariable(initial(tuple(shape), dtype=as_dtype(dtype) if dtype else self._dtype), trainable=False,
                          name=f"{self._name}/{name or 'variable'}")
        self.__dict__.setdefault("_variables", []).append(v)
        return v

    add_variable = add_weight

    def reset_state(self):
        for v in self.variables:
            v.assign(tf.zeros_like(v))

    def reset_states(self):
        self.reset_state()

    def update_state(self, *args, **kwargs):
        raise NotImplementedError

    def result(self):
        raise NotImplementedError

    def _read(self):
        value = self.result()
        return float(value) if _C.is_tensor(value) and not len(value.shape) else value

    def __call__(self, *args, **kwargs):
        self.update_state(*args, **kwargs)
        return self.result()

    def get_config(self):
        return {"name": self._name, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def __repr__(self):
        return f"<{type(self).__name__} name={self._name}>"


# --- sums and means of values ---------------------------------------------------------------------------
class _Reduction(Metric):
    def __init__(self, name=None, dtype=None):
        super().__init__(dtype=dtype, name=name or snake(type(self).__name__))
        self.total = self.add_weight(name="total")

    def _values(self, values, sample_weight):
        values = tf.cast(_C.convert_to_tensor(values), self._dtype)
        if sample_weight is None:
            return values, None
        w = tf.cast(_C.convert_to_tensor(sample_weight), self._dtype)
        while len(w.shape) < len(values.shape):
            w = tf.expand_dims(w, -1)
        return values * w, w


class Sum(_Reduction):
    def update_state(self, values, sample_weight=None):
        values, _ = self._values(values, sample_weight)
        self.total.assign_add(tf.reduce_sum(values))

    def result(self):
        return self.total.read_value()


class Mean(_Reduction):
    def __init__(self, name="mean", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.count = self.add_weight(name="count")

    def update_state(self, values, sample_weight=None):
        values, w = self._values(values, sample_weight)
        self.total.assign_add(tf.reduce_sum(values))
        n = 1
        for d in values.shape:
            n *= d
        if w is None:
            self.count.assign_add(float(n))
        elif tuple(w.shape) == tuple(values.shape):
            self.count.assign_add(tf.reduce_sum(w))
        else:
            self.count.assign_add(tf.reduce_sum(tf.broadcast_to(w, values.shape)) if len(values.shape) else tf.reduce_sum(w))

    def result(self):
        return tf.math.divide_no_nan(self.total.read_value(), self.count.read_value())


class MeanMetricWrapper(Mean):
    """The mean of a function (y_true, y_pred)."""

    def __init__(self, fn, name=None, dtype=None, **kwargs):
        super().__init__(name=name or getattr(fn, "__name__", "metric"), dtype=dtype)
        self._fn, self._kwargs = fn, kwargs

    def update_state(self, y_true, y_pred, sample_weight=None):
        values = self._fn(_C.convert_to_tensor(y_true), _C.convert_to_tensor(y_pred), **self._kwargs)
        super().update_state(values, sample_weight=sample_weight)


def _equal(y_true, y_pred):
    from snug.keras.losses import squeeze_or_expand_to_same_rank
    y_true, y_pred = squeeze_or_expand_to_same_rank(y_true, y_pred)
    return tf.cast(tf.equal(tf.cast(y_true, y_pred.dtype), y_pred), "float32")


class Accuracy(MeanMetricWrapper):
    def __init__(self, name="accuracy", dtype=None):
        super().__init__(_equal, name=name, dtype=dtype)


# --- the engine's ---------------------------------------------------------------------------------------
# Where name and dtype stand among the arguments of those that are called with a name alone.
_NAME_AT = {"TopKCategoricalAccuracy": 1, "SparseTopKCategoricalAccuracy": 1, "MeanIoU": 1, "OneHotMeanIoU": 1, **dict.fromkeys((
    "MeanSquaredError MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredLogarithmicError RootMeanSquaredError CosineSimilarity"
    " LogCoshError KLDivergence Poisson Hinge SquaredHinge CategoricalHinge BinaryAccuracy CategoricalAccuracy SparseCategoricalAccuracy"
    " BinaryCrossentropy CategoricalCrossentropy SparseCategoricalCrossentropy").split(), 0)}


_ALONG = ("cosine_similarity", "categorical_crossentropy", "sparse_categorical_crossentropy")   # along an axis that may be chosen


class _Built(Metric):
    _signature = ""
    __signature__ = _serial.Shown(lambda cls: cls._signature, ", dtype=None", lambda cls: None if cls.__name__ in _NUMBERED else snake(cls._shown))

    def __init__(self, *args, **kwargs):
        cls = next(c for c in type(self).__mro__ if "_signature" in c.__dict__)
        signature = _serial.parse_signature(cls._signature)
        at = _NAME_AT.get(cls.__name__, len(args))
        named, args = dict(zip(("name", "dtype"), args[at:at + 2])), args[:at] + args[at + 2:]
        name, dtype = kwargs.pop("name", named.get("name")), kwargs.pop("dtype", named.get("dtype"))
        values = _serial.bind_all(type(self).__name__, signature, args, kwargs)
        _serial.refuse_none(type(self).__name__, signature, values)
        shown = snake(cls._shown)
        super().__init__(dtype=dtype, name=name or (auto_name(shown) if cls.__name__ in _NUMBERED else shown))
        self._settings = values
        self._loss = None
        self.__dict__["_c"] = None

    def _engine_text(self, threshold):
        cls = next(c for c in type(self).__mro__ if "_signature" in c.__dict__)
        words = [] if threshold is None else [f"thresholds={threshold}"]
        for (key, default), value in zip(_serial.parse_signature(cls._signature), self._settings.values()):
            if value is None or value == default or key == "thresholds" or key == "axis" and cls._engine in _ALONG:
                continue
            if isinstance(value, (list, tuple)):
                value = "[" + ",".join(str(v) for v in value) + "]"
            words.append(f"{key}={str(value).lower() if isinstance(value, bool) else value}")
        return cls._engine + (":" + ",".join(words) if words else "")

    def _thresholds(self):
        """A list of several is a metric for each."""
        asked = self._settings.get("thresholds")
        return asked if isinstance(asked, (list, tuple)) else [asked]

    def _metrics(self):
        if self._c is None:
            self.__dict__["_c"] = [_C.Metric(self._engine_text(t), self._loss) for t in self._thresholds()]
        return self._c

    def update_state(self, y_true, y_pred, sample_weight=None):
        weight = None if sample_weight is None else _C.convert_to_tensor(sample_weight)
        y_true, y_pred = _C.convert_to_tensor(y_true), _C.convert_to_tensor(y_pred)
        if "hinge" in self._engine and "categorical" not in self._engine:
            y_true = tf.where(tf.equal(tf.cast(y_true, y_pred.dtype), 0.0), -tf.ones_like(y_pred), tf.cast(y_true, y_pred.dtype)) \
                if tuple(y_true.shape) == tuple(y_pred.shape) else y_true
        if self._engine in ("mean_io_u", "io_u") and self._settings["sparse_y_true"]:
            predicted = len(y_pred.shape) - (not self._settings["sparse_y_pred"])
            if len(y_true.shape) == predicted + 1 and y_true.shape[-1] == 1:    # masks keep their channel, as Keras lets them
                y_true = tf.squeeze(y_true, -1)
        if self._engine in _ALONG:
            from snug.keras.losses import axis_last
            y_true, y_pred = axis_last(self._settings["axis"], y_true, y_pred)
        for metric in self._metrics():
            metric.update(y_true, y_pred, weight)

    def _read(self):
        values = [m.result() for m in self._c] if self._c is not None else [0.0] * len(self._thresholds())
        return values if len(values) > 1 else values[0]

    def result(self):
        if _is_promised():
            return _Result(self)
        return _C.convert_to_tensor(self._read(), dtype=self._dtype)

    def reset_state(self):
        for metric in self._c or ():
            metric.reset()

    def get_config(self):
        return {**super().get_config(), **self._settings}


def _make(name):
    engine = _ENGINE.get(name, snake(name))
    return type(name, (_Built,), {"_signature": _signatures.METRICS[name], "_engine": engine, "_shown": {"AUC": "auc", "LogCoshError": "logcosh"}.get(name, name), "__module__": __name__})


def _make_function(name):
    from snug.keras import losses
    if name in losses._FUNCTIONS or name in losses._ALIASES:
        return getattr(losses, name)
    return _ACCURACIES[name]


def binary_accuracy(y_true, y_pred, threshold=0.5):
    y_true, y_pred = _C.convert_to_tensor(y_true), _C.convert_to_tensor(y_pred)
    return tf.cast(tf.equal(tf.cast(y_true, y_pred.dtype), tf.cast(y_pred > threshold, y_pred.dtype)), "float32")


def categorical_accuracy(y_true, y_pred):
    return tf.cast(tf.equal(tf.argmax(_C.convert_to_tensor(y_true), -1), tf.argmax(_C.convert_to_tensor(y_pred), -1)), "float32")


def sparse_categorical_accuracy(y_true, y_pred):
    y_true, y_pred = _C.convert_to_tensor(y_true), _C.convert_to_tensor(y_pred)
    if len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] == 1:
        y_true = tf.squeeze(y_true, -1)
    return tf.cast(tf.equal(tf.cast(y_true, "int64"), tf.argmax(y_pred, -1)), "float32")


_ACCURACIES = {f.__name__: f for f in (binary_accuracy, categorical_accuracy, sparse_categorical_accuracy)}


def sparse_top_k_categorical_accuracy(y_true, y_pred, k=5, from_sorted_ids=False):
    """Whether the label is among the k best."""
    y_pred = tf.convert_to_tensor(y_pred)
    if from_sorted_ids:
        y_true = tf.reshape(y_true, list(y_pred.shape[:-1]) + [1])
        hit = tf.equal(tf.cast(y_pred[..., :k], "int64"), tf.cast(y_true, "int64"))
        return tf.cast(tf.reduce_any(hit, -1), y_pred.dtype if y_pred.dtype.is_floating else "float32")
    labels, shape = tf.cast(tf.reshape(y_true, (-1,)), "int32"), list(y_pred.shape[:-1])
    hit = tf.math.in_top_k(labels, tf.reshape(y_pred, (-1, y_pred.shape[-1])), k)
    return tf.reshape(tf.cast(hit, y_pred.dtype), shape)


def top_k_categorical_accuracy(y_true, y_pred, k=5):
    return sparse_top_k_categorical_accuracy(tf.argmax(y_true, axis=-1), y_pred, k)


def _about_mean(x, axis):
    x = tf.cast(tf.convert_to_tensor(x), "float32")
    return x - tf.reduce_mean(x, axis, keepdims=True)


def pearson_correlation(y_true, y_pred, axis=-1):
    a, b = _about_mean(y_true, axis), _about_mean(y_pred, axis)
    return tf.reduce_sum(a * b, axis) / (tf.sqrt(tf.reduce_sum(a * a, axis)) * tf.sqrt(tf.reduce_sum(b * b, axis)) + 1e-7)


def concordance_correlation(y_true, y_pred, axis=-1):
    a, b = _about_mean(y_true, axis), _about_mean(y_pred, axis)
    apart = tf.reduce_mean(tf.cast(y_true, "float32"), axis) - tf.reduce_mean(tf.cast(y_pred, "float32"), axis)
    both = tf.reduce_mean(a * a, axis) + tf.reduce_mean(b * b, axis) + tf.square(apart)
    return 2.0 * tf.reduce_mean(a * b, axis) / (both + 1e-7)


def __getattr__(name):
    from snug.keras import losses
    real = _ALIASES.get(name, name)
    if name in ("mse", "mae", "mape", "msle", "MSE", "MAE", "MAPE", "MSLE", "kl_divergence", "log_cosh", "logcosh"):
        return getattr(losses, name)
    if name == "__all__":
        return [n for n in _signatures.METRICS if n[0] != "_"] + ["get", "serialize", "deserialize"]
    if real in ("F1Score", "FBetaScore") and real not in globals():
        from snug.keras import _metrics_more
        globals()[real] = getattr(_metrics_more, real)
    if real not in globals():
        if real in _signatures.METRICS and real not in ("Metric", "Mean", "Sum", "MeanMetricWrapper", "Accuracy"):
            globals()[real] = _make(real)
        elif real in _ACCURACIES or real in losses._FUNCTIONS:
            globals()[real] = _make_function(real)
        else:
            raise AttributeError(f"keras.metrics.{name} is not in Snug")
    return globals()[real]


def _class_of(text):
    if text in _ALIASES:
        return _ALIASES[text]
    for name in _signatures.METRICS:
        if name == text or snake(name) == text or _ENGINE.get(name) == text:
            return name
    return None


def get(identifier):
    if identifier is None or isinstance(identifier, Metric):
        return identifier
    if isinstance(identifier, str):
        name = _class_of(identifier)
        if name is None:
            raise ValueError(f"Could not interpret metric identifier: {identifier}")
        return __getattr__(name)()
    if isinstance(identifier, dict):
        return _serial.deserialize_keras_object(identifier)
    if isinstance(identifier, type):
        return identifier()
    if callable(identifier):
        return MeanMetricWrapper(identifier)
    raise ValueError(f"Could not interpret metric identifier: {identifier}")


def get_for(identifier, loss, y_pred, y_true):
    """A metric of compile: "accuracy" means what loss and shapes say."""
    if isinstance(identifier, str) and identifier in ("accuracy", "acc", "crossentropy", "ce"):
        kind = _kind(loss, y_pred, y_true)
        name = kind + ("Accuracy" if identifier in ("accuracy", "acc") else "Crossentropy")
        metric = __getattr__(name)(name="accuracy" if identifier == "accuracy" else identifier)
        if identifier == "acc":
            metric._name = "acc"
        return metric
    if isinstance(identifier, str):
        metric = get(identifier)
        metric._name = identifier
        return metric
    return get(identifier)


def _kind(loss, y_pred, y_true):
    classes = y_pred.shape[-1] if len(y_pred.shape) else 1
    name = type(loss).__name__ if loss is not None else ""
    if "Sparse" in name:
        return "SparseCategorical"
    if classes == 1 or "Binary" in name:
        return "Binary"
    if y_true is not None and (len(y_true.shape) < len(y_pred.shape) or y_true.shape[-1] == 1):
        return "SparseCategorical"
    return "Categorical"


def serialize(metric):
    return _serial.serialize_keras_object(metric)


def deserialize(config, custom_objects=None):
    return _serial.deserialize_keras_object(config, custom_objects)
