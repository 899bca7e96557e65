"""keras.optimizers: Keras' classes over the engine's optimizers."""
import struct
import types as _types

from snug import _C, _function, _train
from snug._given import as_array
from snug._lazy import tf
from snug._types import Peek
from snug.keras import _serial, _signatures, backend, schedules
from snug.keras._names import auto_name, snake
from snug.keras._optimizer_own import Muon, Optimizer, check_kwargs, check_settings, overwritten  # noqa: F401
from snug.keras._optimizer_scaled import LossScaleOptimizer  # noqa: F401
from snug.keras.schedules import LearningRateSchedule

_COMMON = ("name learning_rate weight_decay clipnorm global_clipnorm clipvalue use_ema ema_momentum ema_overwrite_frequency"
           " loss_scale_factor gradient_accumulation_steps").split()       # what all optimizers' configurations begin with


def _look():
    """Numbers of the host change from call to call of a trace: who reads one there cannot be replayed."""
    if _C.is_tracing():
        raise Peek


def _rounded(rate):
    """A rate is a variable of the float type, as Keras': what a file holds of it is what was computed with."""
    if backend.floatx() == "float64":
        return float(rate)
    try:
        return struct.unpack("<f", struct.pack("<f", float(rate)))[0]
    except OverflowError:
        return float("inf") if rate > 0 else float("-inf")


class _Rate:
    """optimizer.learning_rate: a number that can be read, compared and assigned."""

    def __init__(self, optimizer):
        self._optimizer, self.dtype = optimizer, "float64" if backend.floatx() == "float64" else "float32"

    def assign(self, value):
        self._optimizer._set_rate(float(value))
        return self

    def numpy(self):
        import numpy as np
        _look()
        return np.dtype(self.dtype).type(self._optimizer._rate())

    def __float__(self):
        return float(self.numpy())

    def __array__(self, dtype=None, copy=None):
        import numpy as np
        return as_array(np.asarray(self.numpy()), dtype or self.dtype, copy)

    def read_value(self):
        _look()
        return tf.constant(self._optimizer._rate(), self.dtype)

    value = read_value
    path = property(lambda self: f"{self._optimizer.name}/learning_rate")
    trainable = False
    name = "learning_rate"
    shape = ()

    def __repr__(self):
        return f"<Variable path={self._optimizer.name}/learning_rate, shape=(), dtype={self.dtype}, value={float(self)}>"

    def __format__(self, spec):
        return format(float(self), spec)


def _arithmetic():
    import operator
    for word in "add sub mul truediv floordiv mod pow lt le gt ge eq ne".split():
        function = getattr(operator, word)
        setattr(_Rate, f"__{word}__", lambda self, other, f=function: f(float(self), float(other)))
        setattr(_Rate, f"__r{word}__", lambda self, other, f=function: f(float(other), float(self)))
    _Rate.__neg__ = lambda self: -float(self)
    _Rate.__hash__ = object.__hash__


_arithmetic()


class _Steps:
    """optimizer.iterations: steps, or with `every` how often so many of them were made."""

    def __init__(self, optimizer, every=1):
        self._optimizer, self._every = optimizer, every

    def numpy(self):
        import numpy as np
        return np.int64(int(self))

    def assign(self, value):
        self._optimizer._engine().steps = int(value) * self._every
        return self

    def assign_add(self, n):
        return self.assign(int(self) + int(n))

    def __int__(self):
        _look()
        return int(self._optimizer._engine().steps) // self._every

    __index__ = __int__

    def __float__(self):
        return float(int(self))

    def __eq__(self, other):
        return int(self) == int(other)

    def __array__(self, dtype=None, copy=None):
        import numpy as np
        return as_array(np.asarray(int(self)), dtype or "int64", copy)

    __hash__ = object.__hash__
    read_value = lambda self: tf.constant(int(self), dtype="int64")
    value = property(read_value)
    path = property(lambda self: f"{self._optimizer.name}/iteration")
    trainable = False
    name = "iteration"
    dtype = "int64"
    shape = ()

    def __repr__(self):
        return f"<Variable path={self._optimizer.name}/iteration, shape=(), dtype=int64, value={int(self)}>"


class _Built(Optimizer):
    """One of the engine's."""
    _signature = ""
    __signature__ = _serial.Shown(lambda cls: cls._signature, ", **kwargs", lambda cls: snake(cls.__name__))
    _is_told = False        # whether who traces the next step has a trace for each kind of step

    def __init__(self, *args, **kwargs):
        cls = next(c for c in type(self).__mro__ if "_signature" in c.__dict__ and c is not _Built)
        signature = _serial.parse_signature(cls._signature)
        name = kwargs.pop("name", None)
        self._values = _serial.bind(cls.__name__, signature, args, kwargs)
        check_kwargs(kwargs)
        check_settings(self._values)
        self.name = name or auto_name(snake(type(self).__name__))
        self._kind = cls._engine_name
        self._schedule = self._values.get("learning_rate")
        self._number = None
        if callable(self._schedule) and not isinstance(self._schedule, LearningRateSchedule):
            self._schedule = self._schedule()
        if not isinstance(self._schedule, LearningRateSchedule):
            self._number, self._schedule = _rounded(self._schedule), None
        self._c = None
        self.built = False
        self._variables_seen = []
        for key, value in self._values.items():
            if key != "learning_rate":
                self.__dict__.setdefault(key, value)
        _C.expect(self._slots_to_come())

    def _slots_to_come(self):
        """Of each variable, with the first update; memory for them is kept free before."""
        return self._n_slots + sum(bool(self._values.get(key)) for key in ("momentum", "centered", "amsgrad", "use_ema", "gradient_accumulation_steps"))

    def _engine(self):
        if self._c is None:
            words = []
            defaults = dict(_serial.parse_signature(next(c for c in type(self).__mro__ if "_signature" in c.__dict__ and c is not _Built)._signature))
            for key, value in self._values.items():
                if key == "weight_decay" and self._spares():
                    value = 0               # done by name, before the engine's step
                if key in ("learning_rate", "loss_scale_factor") or value is None or value == defaults.get(key):
                    continue
                words.append(f"{key}={str(value).lower() if isinstance(value, bool) else value}")
            words.insert(0, f"learning_rate={self._rate_at(0)!r}")
            self._c = _C.Optimizer(self._kind + ":" + ",".join(words))
        return self._c

    def exclude_from_weight_decay(self, var_list=None, var_names=None):
        if self._c is not None:
            raise ValueError("`exclude_from_weight_decay()` can only be configured before the optimizer is built.")
        if self._values.get("gradient_accumulation_steps"):
            raise NotImplementedError("exclude_from_weight_decay() beside gradient_accumulation_steps is not in Snug")
        super().exclude_from_weight_decay(var_list, var_names)

    def _spares(self):
        return any(getattr(self, "_spared", ()))

    def _decay_others(self, grads, variables):
        """The decay of those that are not excluded, where some are."""
        if not self._spares() or not self.weight_decay:
            return
        _look()
        share = self.weight_decay * self._rate()
        for g, v in zip(grads, variables):
            if g is not None and self._use_weight_decay(v):
                v.assign(v - v * share)

    def _rate_at(self, step):
        if self._schedule is None:
            return self._number
        known = type(self._schedule).__call__ is schedules._Known.__call__       # then it need not become a tensor first
        return self._schedule.rate(float(step)) if known else float(self._schedule(step))

    def _rate(self):
        return self._rate_at(self._c.steps if self._c is not None else 0)

    def _set_rate(self, value):
        if self._schedule is not None:
            raise TypeError("This optimizer was created with a `LearningRateSchedule` object as its `learning_rate` constructor argument,"
                            " hence its learning rate is not settable. If you need the learning rate to be settable, you should"
                            " instantiate the optimizer with a float `learning_rate` argument.")
        self._number = _rounded(value)
        if self._c is not None:
            self._c.rate = self._number

    def _before_step(self):
        """The rate of this step, where Python knows it; a trace asks at each call."""
        if self._schedule is not None and _C.is_tracing():
            _function.note_step(self)
        elif self._schedule is not None:
            self._engine().rate = self._rate_at(self._engine().steps)

    def _updates_next(self):
        """Whether the next step changes variables; one that only adds gradients up is another trace."""
        n = self._values.get("gradient_accumulation_steps") or 1
        return (int(self._engine().steps) + 1) % n == 0

    @property
    def learning_rate(self):
        if self._schedule is not None:
            import numpy as np
            return tf.constant(np.float32(self._rate()))
        return _Rate(self)

    @learning_rate.setter
    def learning_rate(self, value):
        if isinstance(value, LearningRateSchedule):
            self._schedule = value
            return
        self._set_rate(value)

    lr = learning_rate

    @property
    def iterations(self):
        return _Steps(self, self._values.get("gradient_accumulation_steps") or 1)

    @property
    def variables(self):
        return [_Steps(self)] + [_Rate(self)] * (self._schedule is None) + self._slots()

    def _slots(self):
        """What the engine keeps of each variable, under the variable's whole path; averages and sums of gradients first, as files have it."""
        slots = self._c.slots() if self._c is not None else []
        stems = {}
        for v in self._variables_seen:
            above = getattr(v, "_above", "")
            stems[v.path[len(above):].replace("/", "_") if hasattr(v, "path") else v.name] = above.replace("/", "_")
        for slot in slots:
            if getattr(slot, "_path", "") is None:
                name = slot.path.rpartition("/")[2]
                cut = name.rfind("_")                # the longest of the stems
                while cut > 0 and name[:cut] not in stems:
                    cut = name.rfind("_", 0, cut)
                stem = name[:max(cut, 0)]
                slot._path = f"{self.name}/{stems.get(stem, '')}{name}"
        first = ["_average"] * bool(self._values.get("use_ema")) + ["_gradient_accumulator"]
        return sorted(slots, key=lambda slot: next((i for i, end in enumerate(first) if getattr(slot, "path", slot.name).endswith(end)), len(first)))

    def build(self, variables):
        self._variables_seen = list(variables)
        _C.expect(0)
        self._engine().build(self._variables_seen)
        self.built = True

    def apply(self, grads, trainable_variables=None):
        variables = list(trainable_variables if trainable_variables is not None else self._variables_seen)
        self._variables_seen = variables
        grads = [tf.convert_to_tensor(g) if g is not None else None for g in self._unscaled(grads)]
        if not any(g is not None for g in grads):
            raise ValueError("No gradients provided for any variable.")
        if not self.built and _train.PENDING:       # a checkpoint was read before there were slots
            self.build(variables)
            _train.settle()
        if not self.built:
            _C.expect(0)
        self._before_step()
        if self._values.get("gradient_accumulation_steps") and not self._is_told:
            _look()         # a trace of this step is none of the next
        self._is_told = False
        grads, variables = overwritten(grads, variables)
        self._decay_others(grads, variables)
        if variables:
            self._engine().apply(grads, variables)
        self.built = True
        for v in variables:
            if getattr(v, "constraint", None) is not None:
                v.assign(v.constraint(v))
        if not _C.is_tracing():
            from snug import _tape
            if not _tape.ACTIVE:
                _C.boundary()
        return self.iterations

    def _averages(self):
        if not self._values.get("use_ema") or not self.built:
            return None
        slots = {slot.path.rpartition("/")[2]: slot for slot in self._slots()}
        return [(v, slots[v.path.replace("/", "_") + "_average"]) for v in self._variables_seen]

    def get_config(self):
        rate = _serial.serialize_keras_object(self._schedule) if self._schedule is not None else _rounded(self._number)
        values = {"name": self.name, **self._values, "learning_rate": rate}
        return {k: values[k] for k in [k for k in _COMMON if k in values] + [k for k in values if k not in _COMMON]}


def _make(name):
    return type(name, (_Built,), {"_signature": _signatures.OPTIMIZERS[name], "_n_slots": _signatures.SLOTS[name],
                                  "_engine_name": snake(name) if name != "RMSprop" else "rmsprop", "__module__": __name__})


def __getattr__(name):
    if name == "__all__":       # what a star gives
        return [*_signatures.OPTIMIZERS, "Optimizer", "LossScaleOptimizer", "Muon", "get", "schedules", "legacy"]
    if name in ("MultiOptimizer", "ScheduleFreeAdamW"):
        raise AttributeError(f"keras.optimizers.{name} is not in Snug; AdamW is the nearest")
    if name in _signatures.OPTIMIZERS:
        globals()[name] = _make(name)
        return globals()[name]
    raise AttributeError(f"keras.optimizers.{name} is not in Snug")


def get(identifier):
    if identifier is None or isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, str):
        for name in (*_signatures.OPTIMIZERS, "Muon"):
            if name.lower() == identifier.lower():
                return getattr(_here, name)()
        raise ValueError(f"Could not interpret optimizer identifier: {identifier}")
    if isinstance(identifier, dict):
        return _serial.deserialize_keras_object(identifier)
    raise ValueError(f"Could not interpret optimizer identifier: {identifier}")


def serialize(optimizer):
    return _serial.serialize_keras_object(optimizer)


def deserialize(config, custom_objects=None):
    return _serial.deserialize_keras_object(config, custom_objects)


import sys as _sys  # noqa: E402

_here = _sys.modules[__name__]
legacy = _types.ModuleType("snug.keras.optimizers.legacy")
for _name in ("Adam", "SGD", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl"):
    setattr(legacy, _name, getattr(_here, _name))
