"""keras.optimizers.schedules: learning rates by step, as host numbers."""
import math

from snug._lazy import tf
from snug.keras import _serial, _signatures


def _number(step):
    return float(step)


class LearningRateSchedule:
    _keras_module = "keras.optimizers.schedules"

    def __call__(self, step):
        raise NotImplementedError(f"Learning rate schedule '{type(self).__name__}' must override `__call__(self, step)`.")

    def get_config(self):
        raise NotImplementedError(f"Learning rate schedule '{type(self).__name__}' must override `get_config()`.")

    @classmethod
    def from_config(cls, config):
        return cls(**config)


class _Known(LearningRateSchedule):
    _signature = ""

    def __init__(self, *args, **kwargs):
        cls = next(c for c in type(self).__mro__ if "_signature" in c.__dict__)
        if isinstance(cls._signature, str):
            cls._signature = _serial.parse_signature(cls._signature)
        self.name = kwargs.pop("name", type(self).__name__)
        self.__dict__.update(_serial.bind_all(type(self).__name__, cls._signature, args, kwargs))

    def get_config(self):
        return {name: self.__dict__[name] for name, _ in type(self)._signature} | {"name": self.name}

    def __call__(self, step):
        if getattr(step, "ndim", 0):                    # a curve to look at
            import numpy as np
            steps = np.asarray(step)
            return tf.constant([self.rate(float(s)) for s in steps.ravel()], shape=steps.shape, dtype="float32")
        return tf.constant(self.rate(_number(step)), dtype="float32")


class ExponentialDecay(_Known):
    _signature = _signatures.SCHEDULES["ExponentialDecay"]

    def rate(self, step):
        p = step / self.decay_steps
        return self.initial_learning_rate * self.decay_rate ** (math.floor(p) if self.staircase else p)


class InverseTimeDecay(_Known):
    _signature = _signatures.SCHEDULES["InverseTimeDecay"]

    def rate(self, step):
        p = step / self.decay_steps
        return self.initial_learning_rate / (1 + self.decay_rate * (math.floor(p) if self.staircase else p))


class PiecewiseConstantDecay(_Known):
    _signature = _signatures.SCHEDULES["PiecewiseConstantDecay"]

    def rate(self, step):
        for boundary, value in zip(self.boundaries, self.values):
            if step <= boundary:
                return value
        return self.values[-1]


class PolynomialDecay(_Known):
    _signature = _signatures.SCHEDULES["PolynomialDecay"]

    def rate(self, step):
        steps = self.decay_steps
        if self.cycle:
            steps *= 1.0 if step == 0 else math.ceil(step / steps)
        else:
            step = min(step, steps)
        return (self.initial_learning_rate - self.end_learning_rate) * (1 - step / steps) ** self.power + self.end_learning_rate


class CosineDecay(_Known):
    _signature = _signatures.SCHEDULES["CosineDecay"]

    def rate(self, step):
        top = self.initial_learning_rate
        if self.warmup_target is not None:
            top = self.warmup_target
            if step < self.warmup_steps:
                return self.initial_learning_rate + (top - self.initial_learning_rate) * step / self.warmup_steps
            step -= self.warmup_steps
        p = min(step, self.decay_steps) / self.decay_steps
        return top * ((1 - self.alpha) * 0.5 * (1 + math.cos(math.pi * p)) + self.alpha)


class CosineDecayRestarts(_Known):
    _signature = _signatures.SCHEDULES["CosineDecayRestarts"]

    def rate(self, step):
        p, t, m = step / self.first_decay_steps, self.t_mul, self.m_mul
        if t == 1.0:
            i = math.floor(p)
            p -= i
        else:
            i = math.floor(math.log(1.0 - p * (1.0 - t)) / math.log(t))
            p = (p - (1.0 - t ** i) / (1.0 - t)) / t ** i
        return self.initial_learning_rate * ((1 - self.alpha) * 0.5 * m ** i * (1 + math.cos(math.pi * p)) + self.alpha)


def serialize(schedule):
    return _serial.serialize_keras_object(schedule)


def deserialize(config, custom_objects=None):
    return _serial.deserialize_keras_object(config, custom_objects)
