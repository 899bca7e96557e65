"""keras.losses: classes and functions over the engine's losses; custom ones are Python functions or subclasses."""
from snug import _C
from snug._given import takes
from snug._lazy import tf
from snug.keras import _serial, _signatures
from snug.keras._names import snake

_ALIASES = {"mse": "mean_squared_error", "mae": "mean_absolute_error", "mape": "mean_absolute_percentage_error",
            "msle": "mean_squared_logarithmic_error", "bce": "binary_crossentropy", "kld": "kl_divergence",
            "kullback_leibler_divergence": "kl_divergence", "logcosh": "log_cosh", "MSE": "mean_squared_error",
            "MAE": "mean_absolute_error", "MAPE": "mean_absolute_percentage_error", "MSLE": "mean_squared_logarithmic_error",
            "KLD": "kl_divergence", "cosine_similarity": "cosine_similarity", "huber_loss": "huber"}
_FUNCTIONS = {snake(name): name for name in _signatures.LOSSES if name not in ("Loss", "CTC", "Circle")}
_FUNCTIONS["kl_divergence"] = "KLDivergence"
_MORE = ("CTC", "Circle", "ctc", "circle")


def _text(name, settings):
    """The engine's text of a loss; settings equal to their defaults are left out."""
    words = []
    for key, value in settings.items():
        if value is None or key in ("reduction", "axis", "name"):
            continue
        words.append(f"{key}={str(value).lower() if isinstance(value, bool) else value}")
    return name + (":" + ",".join(words) if words else "")


def _as_tensors(y_true, y_pred, dtype=None):
    """dtype: of a loss, which real numbers are then cast to."""
    y_true, y_pred = _floatx(y_true), _floatx(y_pred)
    if dtype is None:
        return y_true, y_pred
    return tuple(tf.cast(y, dtype) if y.dtype.is_floating and y.dtype.name != dtype else y for y in (y_true, y_pred))


def _floatx(y):
    """Arrays become tensors of Keras' float type; integers stay."""
    if isinstance(y, _C.Tensor):
        return y
    from snug.keras import backend
    y = _C.convert_to_tensor(y)
    return tf.cast(y, backend.floatx()) if y.dtype.is_floating and y.dtype.name != backend.floatx() else y


def squeeze_or_expand_to_same_rank(x1, x2):
    a, b = len(x1.shape), len(x2.shape)
    if a == b + 1 and x1.shape[-1] == 1:
        return (x1, tf.expand_dims(x2, -1)) if b == 1 else (tf.squeeze(x1, -1), x2)
    if b == a + 1 and x2.shape[-1] == 1:
        return (tf.expand_dims(x1, -1), x2) if a == 1 else (x1, tf.squeeze(x2, -1))
    return x1, x2


class Reduction:
    """Names of older scripts for how a loss becomes one number."""
    AUTO, NONE, SUM, SUM_OVER_BATCH_SIZE = "auto", "none", "sum", "sum_over_batch_size"


class Loss:
    _keras_module = "keras.losses"

    def __init__(self, name=None, reduction="sum_over_batch_size", dtype=None):
        from snug.keras import backend, dtype_policies
        self.name = name or snake(type(self).__name__)
        self._dtype = dtype_policies.get(dtype or backend.floatx()).compute_dtype
        if reduction not in ("sum_over_batch_size", "sum", "none", None, "auto", "mean", "mean_with_sample_weight"):
            raise ValueError(f"Invalid value for argument `reduction`. Received: reduction={reduction}")
        self.reduction = "none" if reduction is None else "sum_over_batch_size" if reduction in ("auto", "mean") else reduction

    @property
    def dtype(self):
        return self._dtype

    def __call__(self, y_true, y_pred, sample_weight=None):
        mask = getattr(y_pred, "_keras_mask", None)
        y_true, y_pred = (tf.cast(y, self.dtype) for y in _as_tensors(y_true, y_pred))     # labels too, as in Keras
        return reduce_weighted(self.call(y_true, y_pred), sample_weight, self.reduction, mask)

    def call(self, y_true, y_pred):
        raise NotImplementedError("Subclasses of Loss must implement `call()`.")

    def get_config(self):
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config):
        return cls(**{k: v for k, v in config.items() if k != "dtype"})


def _masked(weight, mask, reduction, dtype):
    """Weights that leave out what a mask does; a mean is over what is left."""
    mask = tf.cast(mask, dtype)
    if reduction == "sum_over_batch_size":
        mask = mask * tf.math.divide_no_nan(tf.cast(tf.size(mask), dtype), tf.reduce_sum(mask))
    if weight is None:
        return mask
    weight = tf.cast(_C.convert_to_tensor(weight), dtype)
    return mask * tf.reshape(weight, list(weight.shape) + [1] * (len(mask.shape) - len(weight.shape)))


def reduce_weighted(values, sample_weight=None, reduction="sum_over_batch_size", mask=None):
    values = _C.convert_to_tensor(values)
    if mask is not None:
        sample_weight = _masked(sample_weight, mask, reduction, values.dtype)
    if sample_weight is not None:
        w = tf.cast(_C.convert_to_tensor(sample_weight), values.dtype)
        while len(w.shape) > len(values.shape) and w.shape[-1] == 1:
            w = tf.squeeze(w, -1)
        while len(w.shape) < len(values.shape):
            w = tf.expand_dims(w, -1)
        values = values * w
    if reduction == "none":
        return values
    total = tf.reduce_sum(values)
    if reduction == "sum":
        return total
    if reduction == "mean_with_sample_weight" and sample_weight is not None:
        return tf.math.divide_no_nan(total, tf.reduce_sum(w))
    count = 1
    for d in values.shape:
        count *= d
    return total / count


def _check_shapes(function, y_true, y_pred):
    """Cross-entropies broadcast nothing: labels of another shape are a mistake."""
    if function not in ("categorical_crossentropy", "binary_crossentropy"):
        return
    a, b = list(y_true.shape), list(y_pred.shape)
    a, b = (a[:-1] if len(a) == len(b) + 1 and a[-1:] == [1] else a), (b[:-1] if len(b) == len(a) + 1 and b[-1:] == [1] else b)
    if len(a) != len(b):
        raise ValueError("Arguments `target` and `output` must have the same rank (ndim). Received:"
                         f" target.shape={tuple(a)}, output.shape={tuple(b)}")
    if a != b:
        raise ValueError("Arguments `target` and `output` must have the same shape. Received:"
                         f" target.shape={tuple(a)}, output.shape={tuple(b)}")


def axis_last(axis, y_true, y_pred):
    """The engine's losses go along the last axis: another one is moved there. Sparse labels have none."""
    axis = axis + len(y_pred.shape) if axis < 0 else axis
    if axis == len(y_pred.shape) - 1:
        return y_true, y_pred
    order = [i for i in range(len(y_pred.shape)) if i != axis] + [axis]
    if len(y_true.shape) == len(y_pred.shape):
        y_true = tf.transpose(y_true, order)
    return y_true, tf.transpose(y_pred, order)


_OVERLAPS = ("dice", "tversky")     # the engine has them over everything; others go along one axis


def _overlap(function, settings, y_true, y_pred):
    """Dice and Tversky over some axes."""
    y_true, axis = tf.cast(y_true, y_pred.dtype), settings["axis"]
    both = tf.reduce_sum(y_true * y_pred, axis)
    if function == "dice":
        return 1 - 2.0 * both / (tf.reduce_sum(y_true, axis) + tf.reduce_sum(y_pred, axis) + 1e-7)
    only_true, only_pred = tf.reduce_sum((1 - y_pred) * y_true, axis), tf.reduce_sum(y_pred * (1 - y_true), axis)
    return 1 - both / (both + only_true * settings["alpha"] + only_pred * settings["beta"] + 1e-7)


class _Built(Loss):
    """One of the engine's losses."""
    _signature = ""
    __signature__ = _serial.Shown(lambda cls: cls._signature, ", dtype=None", lambda cls: cls._shown())

    @classmethod
    def _shown(cls):
        return {"huber": "huber_loss"}.get(cls._function, cls._function)

    def __init__(self, *args, **kwargs):
        cls = next(c for c in type(self).__mro__ if "_signature" in c.__dict__)
        signature = _serial.parse_signature(cls._signature)
        name, dtype = kwargs.pop("name", None), kwargs.pop("dtype", None)
        values = _serial.bind_all(type(self).__name__, signature, args, kwargs)
        _serial.refuse_none(type(self).__name__, signature, values)
        super().__init__(name=name or cls._shown(), reduction=values.pop("reduction", "sum_over_batch_size"), dtype=dtype)
        self._settings = values
        self._engine_text = _text(cls._function, values)
        for key, value in values.items():
            self.__dict__.setdefault(key, value)

    def _is_plain(self):
        """Whether the engine's loss is this one, with the axis that was asked for."""
        axis = self._settings.get("axis")
        return axis is None or axis == -1 and self._function not in _OVERLAPS

    def call(self, y_true, y_pred):
        _check_shapes(self._function, y_true, y_pred)
        if not self._is_plain() and self._function in _OVERLAPS:
            return _overlap(self._function, self._settings, y_true, y_pred)
        if not self._is_plain():
            y_true, y_pred = axis_last(self._settings["axis"], y_true, y_pred)
        return _C.loss(self._engine_text, y_true, y_pred, None, False)

    def __call__(self, y_true, y_pred, sample_weight=None):
        mask = getattr(y_pred, "_keras_mask", None)
        y_true, y_pred = _as_tensors(y_true, y_pred, self.dtype)
        _check_shapes(self._function, y_true, y_pred)
        plain = self._is_plain() and type(self).call is _Built.call
        if self.reduction == "sum_over_batch_size" and sample_weight is None and mask is None and plain:
            return _C.loss(self._engine_text, y_true, y_pred, None, True)
        return reduce_weighted(self.call(y_true, y_pred), sample_weight, self.reduction, self._without_ignored(y_true, y_pred, mask))

    def _without_ignored(self, y_true, y_pred, mask):
        """The mask, less the places of a class that is ignored."""
        ignored = self._settings.get("ignore_class")
        if ignored is None:
            return mask
        labels = tf.squeeze(y_true, -1) if len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] == 1 else y_true
        kept = tf.not_equal(tf.cast(labels, "int64"), ignored)
        return kept if mask is None else tf.logical_and(tf.cast(mask, "bool"), kept)

    def get_config(self):
        return {**super().get_config(), **self._settings}


class LossFunctionWrapper(Loss):
    """A function (y_true, y_pred) as a loss."""

    def __init__(self, fn, reduction="sum_over_batch_size", name=None, dtype=None, **kwargs):
        super().__init__(name=name or getattr(fn, "__name__", "loss"), reduction=reduction, dtype=dtype)
        self.fn, self._kwargs = fn, kwargs

    def call(self, y_true, y_pred):
        if not isinstance(y_pred, _C.Tensor) or not isinstance(y_true, _C.Tensor):
            return self.fn(y_true, y_pred, **self._kwargs)
        return self.fn(*squeeze_or_expand_to_same_rank(y_true, y_pred), **self._kwargs)


def _make_class(name):
    function = snake(name) if name != "KLDivergence" else "kl_divergence"
    return type(name, (_Built,), {"_signature": _signatures.LOSSES[name], "_function": function, "__module__": __name__})


def _make_function(name):
    cls = __getattr__(_FUNCTIONS[name])

    settings_of = {key: default for key, default in _serial.parse_signature(_signatures.LOSSES[_FUNCTIONS[name]]) if key != "reduction"}
    names = list(settings_of)

    def function(y_true, y_pred, *args, **settings):
        made = cls(reduction="none", **dict(zip(names, args)), **settings)
        y_true, y_pred = _as_tensors(y_true, y_pred)
        if y_true.dtype != y_pred.dtype and not name.startswith("sparse"):
            y_true = tf.cast(y_true, y_pred.dtype)
        return made.call(y_true, y_pred)
    function.__name__ = name
    function.__wrapped__ = takes(", ".join(["y_true", "y_pred"] + [f"{key}={default!r}" for key, default in settings_of.items()]))
    return function


def __getattr__(name):
    if name == "__all__":       # what a star gives
        return __dir__()
    real = _ALIASES.get(name, name)
    if real not in globals():
        if real in _signatures.LOSSES and real not in ("CTC", "Circle"):
            globals()[real] = _make_class(real)
        elif real in _FUNCTIONS:
            globals()[real] = _make_function(real)
        elif real in _MORE:
            from snug.keras import _losses_more
            globals()[real] = getattr(_losses_more, real)
        else:
            raise AttributeError(f"keras.losses.{name} is not in Snug")
    globals()[name] = globals()[real]
    return globals()[name]


def __dir__():
    return sorted(set(_signatures.LOSSES) | set(_FUNCTIONS) | set(_ALIASES) | set(_MORE) | {"get", "serialize", "deserialize"})


def get(identifier):
    """By name a function, as Keras gives it."""
    if isinstance(identifier, str):
        name = _ALIASES.get(identifier, identifier)
        if name in _FUNCTIONS:
            return getattr(_here, name)
    return as_loss(identifier)


def as_loss(identifier):
    if identifier is None or isinstance(identifier, Loss):
        return identifier
    if isinstance(identifier, str):
        name = _ALIASES.get(identifier, identifier)
        if name in _FUNCTIONS:
            return __getattr__(_FUNCTIONS[name])()
        if name in _signatures.LOSSES or name in ("CTC", "Circle"):
            return __getattr__(name)()
        if name in _MORE:
            return __getattr__({"ctc": "CTC", "circle": "Circle"}[name])()
        if _serial.in_scope(name) is not None:
            return as_loss(_serial.in_scope(name))
        raise ValueError(f"Could not interpret loss identifier: {identifier}")
    if isinstance(identifier, dict):
        return _serial.deserialize_keras_object(identifier)
    if isinstance(identifier, type):
        return identifier()
    if callable(identifier):
        name = getattr(identifier, "__name__", "")
        if globals().get(name) is identifier and name in _FUNCTIONS:
            return __getattr__(_FUNCTIONS[name])()
        return LossFunctionWrapper(identifier)
    raise ValueError(f"Could not interpret loss identifier: {identifier}")


def check(loss):
    """Names are looked up at once, so that a wrong one is refused by compile."""
    from snug import _nest
    for one in _nest.flatten(loss):
        if isinstance(one, str):
            as_loss(one)


import sys as _sys  # noqa: E402

_here = _sys.modules[__name__]


def serialize(loss):
    return _serial.serialize_keras_object(loss)


def deserialize(name, custom_objects=None):
    return _serial.deserialize_keras_object(name, custom_objects)
