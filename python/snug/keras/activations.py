"""keras.activations: names to functions of tf."""
import functools

from snug._lazy import tf

_NAMES = {"relu": "nn.relu", "sigmoid": "sigmoid", "tanh": "tanh", "softmax": "nn.softmax", "softplus": "nn.softplus",
          "softsign": "nn.softsign", "selu": "nn.selu", "elu": "nn.elu", "exponential": "exp", "swish": "nn.silu", "silu": "nn.silu",
          "log_softmax": "nn.log_softmax", "relu6": "nn.relu6", "leaky_relu": "nn.leaky_relu"}


def linear(x):
    return x


def relu(x, negative_slope=0.0, max_value=None, threshold=0.0):
    if not negative_slope and max_value is None and not threshold:
        return tf.nn.relu(x)
    y = tf.where(x > threshold, x, negative_slope * (x - threshold)) if (negative_slope or threshold) else tf.nn.relu(x)
    return y if max_value is None else tf.minimum(y, max_value)


def gelu(x, approximate=False):
    return tf.nn.gelu(x, approximate=approximate)


def softmax(x, axis=-1):
    return tf.nn.softmax(x, axis=axis)


def log_softmax(x, axis=-1):
    return tf.nn.log_softmax(x, axis=axis)


def elu(x, alpha=1.0):
    return tf.nn.elu(x) if alpha == 1.0 else tf.where(x > 0, x, alpha * tf.math.expm1(tf.minimum(x, 0.0)))


def leaky_relu(x, negative_slope=0.2):
    return tf.nn.leaky_relu(x, alpha=negative_slope)


def hard_sigmoid(x):
    return tf.nn.relu6(x + 3.0) / 6.0


def hard_silu(x):
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def mish(x):
    return x * tf.tanh(tf.nn.softplus(x))


def log_sigmoid(x):
    return -tf.nn.softplus(-x)


def _wrap(name):
    def function(x, **kwargs):
        found = tf
        for part in _NAMES[name].split("."):
            found = getattr(found, part)
        return found(x, **kwargs)
    function.__name__ = name
    return function


def __getattr__(name):
    if name == "__all__":       # what a star gives
        return sorted({*_NAMES, "linear", "gelu", "hard_sigmoid", "hard_silu", "mish", "log_sigmoid", "get", "serialize", "deserialize"})
    if name in _NAMES:
        globals()[name] = _wrap(name)
        return globals()[name]
    if not name.startswith("_"):
        from snug.keras import ops
        function = getattr(ops, name, None)
        if function is not None:
            globals()[name] = function
            return function
    raise AttributeError(f"keras.activations.{name} is not in Snug")


@functools.lru_cache(256)
def is_of_engine(function):
    """Whether the engine has the function, so that layers may take it in."""
    import json

    from snug import _C, _types, errors
    from snug.keras import _serial
    if hasattr(function, "get_config"):         # a layer
        return False
    name = _serial.to_config(function)
    if not isinstance(name, str):
        return False
    try:
        _C.Layer("Activation", json.dumps({"name": "a", "activation": name})).infer([(_types.as_dtype("float32"), (2, 2))])
    except errors.OpError:
        return False
    return True


_OWN = ("linear", "relu", "gelu", "softmax", "hard_sigmoid", "hard_silu", "hard_swish", "mish", "log_sigmoid")


def _of_keras(name):
    """A function of this module or of keras.ops by its name; None: it is neither's."""
    from snug.keras import ops
    if name in _OWN or name in _NAMES:
        return globals().get(name) or __getattr__(name)
    return ops.named(name)


def _of_user(name):
    from snug.keras import _serial
    try:
        return _serial.find_function(name)
    except TypeError:
        raise ValueError(f"Could not interpret activation function identifier: {name}") from None


def get(identifier):
    if identifier is None:
        return linear
    if isinstance(identifier, str):
        return _of_keras(identifier) or _of_user(identifier)
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if callable(identifier):
        return identifier
    raise ValueError(f"Could not interpret activation function identifier: {identifier}")


def serialize(activation):
    from snug.keras import _serial
    return _serial.to_config(activation)


def deserialize(config, custom_objects=None):
    from snug.keras import _serial
    if isinstance(config, dict):
        return _serial.deserialize_keras_object(config, custom_objects)
    return (custom_objects or {}).get(config) or get(config)
