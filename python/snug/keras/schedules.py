"""keras.optimizers.schedules: learning rates by step, as host numbers."""
import math

from snug._lazy import tf
from snug.keras import _serial


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
    __signature__ = _serial.Shown(lambda cls: cls._signature, name=lambda cls: cls.__name__)

    def __init__(self, *args, **kwargs):
        cls = next(c for c in type(self).__mro__ if "_signature" in c.__dict__)
        signature = _serial.parse_signature(cls._signature)
        self.name = kwargs.pop("name", type(self).__name__)
        self.__dict__.update(_serial.bind_all(type(self).__name__, signature, args, kwargs))

    def get_config(self):
        return {name: self.__dict__[name] for name, _ in _serial.parse_signature(type(self)._signature)} | {"name": self.name}

    def __call__(self, step):
        if getattr(step, "ndim", 0):                    # a curve to look at
            import numpy as np
            steps = np.asarray(step)
            return tf.constant([self.rate(float(s)) for s in steps.ravel()], shape=steps.shape, dtype="float32")
        return tf.constant(self.rate(_number(step)), dtype="float32")


class ExponentialDecay(_Known):
    _signature = "initial_learning_rate, decay_steps, decay_rate, staircase=False"

    def rate(self, step):
        p = step / self.decay_steps
        return self.initial_learning_rate * self.decay_rate ** (math.floor(p) if self.staircase else p)


class InverseTimeDecay(_Known):
    _signature = "initial_learning_rate, decay_steps, decay_rate, staircase=False"

    def rate(self, step):
        p = step / self.decay_steps
        return self.initial_learning_rate / (1 + self.decay_rate * (math.floor(p) if self.staircase else p))


class PiecewiseConstantDecay(_Known):
    _signature = "boundaries, values"

    def rate(self, step):
        for boundary, value in zip(self.boundaries, self.values):
            if step <= boundary:
                return value
        return self.values[-1]


class PolynomialDecay(_Known):
    _signature = "initial_learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False"

    def rate(self, step):
        steps = self.decay_steps
        if self.cycle:
            steps *= 1.0 if step == 0 else math.ceil(step / steps)
        else:
            step = min(step, steps)
        return (self.initial_learning_rate - self.end_learning_rate) * (1 - step / steps) ** self.power + self.end_learning_rate


class CosineDecay(_Known):
    _signature = "initial_learning_rate, decay_steps, alpha=0.0, warmup_target=None, warmup_steps=0"

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
    _signature = "initial_learning_rate, first_decay_steps, t_mul=2.0, m_mul=1.0, alpha=0.0"

    def rate(self, step):
        p, t, m = step / self.first_decay_steps, self.t_mul, self.m_mul
        if t == 1.0:
            i = math.floor(p)
            p -= i
        else:
            i = math.floor(math.log(1.0 - p * (1.0 - t)) / math.log(t))
            p = (p - (1.0 - t ** i) / (1.0 - t)) / t ** i
        return self.initial_learning_rate * ((1 - self.alpha) * 0.5 * m ** i * (1 + math.cos(math.pi * p)) + self.alpha)


def serialize(learning_rate_schedule):
    return _serial.serialize_keras_object(learning_rate_schedule)


def deserialize(config, custom_objects=None):
    return _serial.deserialize_keras_object(config, custom_objects)
