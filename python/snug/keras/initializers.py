"""keras.initializers: objects that give tensors; random ones are recipes until someone needs their numbers."""
import math

from snug import _C
from snug._lazy import tf
from snug._types import as_dtype
from snug.keras import _serial
from snug.keras._names import snake

_ALIASES = {"normal": "RandomNormal", "uniform": "RandomUniform", "zero": "Zeros", "one": "Ones", "random_normal": "RandomNormal",
            "random_uniform": "RandomUniform", "constant": "Constant", "orthogonal": "Orthogonal", "identity": "Identity",
            "IdentityInitializer": "Identity", "OrthogonalInitializer": "Orthogonal", "glorot_uniform": "GlorotUniform"}


class Initializer:
    _keras_module = "keras.initializers"

    def __call__(self, shape, dtype=None):
        raise NotImplementedError("Initializer subclasses must implement the `__call__()` method.")

    def get_config(self):
        return {}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def _fans(shape, input_axes=None, output_axes=None):
    if input_axes is not None and output_axes is not None:
        return math.prod(shape[axis] for axis in input_axes), math.prod(shape[axis] for axis in output_axes)
    if len(shape) < 1:
        return 1.0, 1.0
    if len(shape) == 1:
        return shape[0], shape[0]
    size = 1
    for d in shape[:-2]:
        size *= d
    return shape[-2] * size, shape[-1] * size


class _Known(Initializer):
    _signature = ""
    __signature__ = _serial.Shown(lambda cls: cls._signature)

    def __init__(self, *args, **kwargs):
        cls = next(c for c in type(self).__mro__ if "_signature" in c.__dict__)
        signature = _serial.parse_signature(cls._signature)
        self._values = _serial.bind_all(type(self).__name__, signature, args, kwargs)
        self.__dict__.update(self._values)

    def get_config(self):
        first = {"seed": self._values["seed"]} if "seed" in self._values else {}
        return {**first, **self._values}

    def own_seed(self):
        """Drawn once where none is given: one instance gives the same values each time, as in Keras."""
        if "_drawn" not in self.__dict__:
            from snug.keras import _seed
            self.__dict__["_drawn"] = int(_seed.generator().randint(1, 10 ** 9))
        return self._drawn

    def __call__(self, shape, dtype=None):
        shape = tuple(int(d) for d in shape)
        return self._tensor(shape, as_dtype(dtype or "float32"))

    def _draw(self, kind, shape, dtype, a, b):
        seed = self.own_seed() if self.seed is None else self.seed
        if isinstance(seed, int):
            draw = {"normal": tf.random.stateless_normal, "truncated": tf.random.stateless_truncated_normal,
                    "uniform": tf.random.stateless_uniform}[kind]
            return draw(shape, seed=(seed, 0), **({"minval": a, "maxval": b} if kind == "uniform" else {"mean": a, "stddev": b}),
                        dtype=dtype)
        draw = {"normal": tf.random.normal, "truncated": tf.random.truncated_normal, "uniform": tf.random.uniform}[kind]
        return draw(shape, a, b, dtype=dtype)


def is_of_engine(initializer):
    """Whether the engine makes the same values itself."""
    if not isinstance(initializer, _Known) or type(initializer).__call__ is not _Known.__call__:
        return False
    if getattr(initializer, "_values", {}).get("input_axes") is not None:
        return False
    return not isinstance(initializer, Constant) or isinstance(initializer.value, (int, float))


class Zeros(_Known):
    def _tensor(self, shape, dtype):
        return _C.full(shape, 0.0 if dtype.is_floating else 0, dtype)


class Ones(_Known):
    def _tensor(self, shape, dtype):
        return _C.full(shape, 1.0 if dtype.is_floating else 1, dtype)


class Constant(_Known):
    _signature = "value=0.0"

    def _tensor(self, shape, dtype):
        if hasattr(self.value, "__len__") or _C.is_tensor(self.value):
            return tf.broadcast_to(tf.cast(tf.convert_to_tensor(self.value), dtype), shape)
        return _C.full(shape, self.value, dtype)


class RandomNormal(_Known):
    _signature = "mean=0.0, stddev=0.05, seed=None"

    def _tensor(self, shape, dtype):
        return self._draw("normal", shape, dtype, self.mean, self.stddev)


class TruncatedNormal(_Known):
    _signature = "mean=0.0, stddev=0.05, seed=None"

    def _tensor(self, shape, dtype):
        return self._draw("truncated", shape, dtype, self.mean, self.stddev)


class RandomUniform(_Known):
    _signature = "minval=-0.05, maxval=0.05, seed=None"

    def _tensor(self, shape, dtype):
        return self._draw("uniform", shape, dtype, self.minval, self.maxval)


class VarianceScaling(_Known):
    _signature = "scale=1.0, mode='fan_in', distribution='truncated_normal', seed=None, input_axes=None, output_axes=None"

    def _tensor(self, shape, dtype):
        axes = [self._values.get(key) for key in ("input_axes", "output_axes")]
        fan_in, fan_out = _fans(shape, *axes)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        scale = self.scale / max(1.0, fan)
        if self.distribution == "truncated_normal":
            return self._draw("truncated", shape, dtype, 0.0, math.sqrt(scale) / 0.87962566103423978)
        if self.distribution == "untruncated_normal":
            return self._draw("normal", shape, dtype, 0.0, math.sqrt(scale))
        limit = math.sqrt(3.0 * scale)
        return self._draw("uniform", shape, dtype, -limit, limit)


def _scaled(name, scale, mode, distribution):
    def __init__(self, seed=None, input_axes=None, output_axes=None):
        VarianceScaling.__init__(self, scale, mode, distribution, seed)
        self._values = {"seed": seed, "input_axes": input_axes, "output_axes": output_axes}
    return type(name, (VarianceScaling,), {"__init__": __init__, "__module__": __name__})


GlorotUniform = _scaled("GlorotUniform", 1.0, "fan_avg", "uniform")
GlorotNormal = _scaled("GlorotNormal", 1.0, "fan_avg", "truncated_normal")
HeUniform = _scaled("HeUniform", 2.0, "fan_in", "uniform")
HeNormal = _scaled("HeNormal", 2.0, "fan_in", "truncated_normal")
LecunUniform = _scaled("LecunUniform", 1.0, "fan_in", "uniform")
LecunNormal = _scaled("LecunNormal", 1.0, "fan_in", "truncated_normal")


class Identity(_Known):
    _signature = "gain=1.0"

    def _tensor(self, shape, dtype):
        return tf.eye(shape[0], shape[1], dtype=dtype) * self.gain


class Orthogonal(_Known):
    _signature = "gain=1.0, seed=None"

    def _tensor(self, shape, dtype):
        import json
        from snug.keras import layers
        rows = 1
        for d in shape[:-1]:
            rows *= d
        maker = layers.Dense(shape[-1], use_bias=False, kernel_initializer=self, dtype=dtype)
        maker.build((None, rows))
        del json
        return tf.reshape(maker.weights[0].read_value(), shape)


def get(identifier):
    if identifier is None or isinstance(identifier, Initializer):
        return identifier
    if isinstance(identifier, dict):
        return _serial.deserialize_keras_object(identifier)
    if isinstance(identifier, str):
        name = _ALIASES.get(identifier, identifier)
        for key, value in list(globals().items()):
            if isinstance(value, type) and issubclass(value, Initializer) and name in (key, snake(key)):
                return value()
        raise ValueError(f"Could not interpret initializer identifier: {identifier}")
    if isinstance(identifier, type):
        return identifier()
    if callable(identifier) or _C.is_tensor(identifier) or hasattr(identifier, "shape"):
        return identifier
    raise ValueError(f"Could not interpret initializer identifier: {identifier}")


zeros, ones, constant, orthogonal, identity = Zeros, Ones, Constant, Orthogonal, Identity
random_normal, random_uniform, truncated_normal, variance_scaling = RandomNormal, RandomUniform, TruncatedNormal, VarianceScaling
glorot_uniform, glorot_normal, he_uniform, he_normal = GlorotUniform, GlorotNormal, HeUniform, HeNormal
lecun_uniform, lecun_normal = LecunUniform, LecunNormal


def serialize(initializer):
    return _serial.serialize_keras_object(initializer)


def deserialize(config, custom_objects=None):
    return _serial.deserialize_keras_object(config, custom_objects)
