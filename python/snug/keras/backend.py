"""keras.backend."""
import gc

from snug import _C
from snug.keras import _names

_state = {"floatx": "float32", "epsilon": 1e-7, "format": "channels_last"}


def floatx():
    return _state["floatx"]


def set_floatx(value):
    if value not in ("float16", "bfloat16", "float32", "float64"):
        raise ValueError(f"Unknown `floatx` value: {value}")
    _state["floatx"] = value


def epsilon():
    return _state["epsilon"]


def set_epsilon(value):
    _state["epsilon"] = value


def image_data_format():
    return _state["format"]


def set_image_data_format(data_format):
    _state["format"] = data_format


def backend():
    return "tensorflow"


def clear_session(free_memory=True):
    """Names begin anew; what nobody holds is collected; plans and the arena go back."""
    from snug.keras import dtype_policies
    _names.forget()
    dtype_policies._global.clear()
    _session[0] = None
    gc.collect()
    _C.trim()


def get_value(x):
    return x.numpy() if hasattr(x, "numpy") else x


def set_value(x, value):
    x.assign(value)


def learning_phase():
    return 0


def set_learning_phase(value):
    pass


def is_keras_tensor(x):
    from snug.keras._symbolic import KerasTensor
    return isinstance(x, KerasTensor)


def get_uid(prefix=""):
    return _names._counts.get(prefix, 0) + 1


# Of these TensorFlow's function has the same arguments; `name`, or `name=TensorFlow's`.
_TF = dict(pair.partition("=")[::2] for pair in (
    "abs all=reduce_all any=reduce_any argmax=argmax argmin=argmin cast concatenate=concat cos cumprod=math.cumprod"
    " cumsum equal exp foldl foldr gather gradients greater greater_equal less less_equal log=math.log map_fn"
    " maximum max=reduce_max min=reduce_min minimum not_equal one_hot ones_like permute_dimensions=transpose pow prod=reduce_prod"
    " random_normal=random.normal random_uniform=random.uniform reshape round shape sigmoid sign sin softmax=nn.softmax"
    " softplus=nn.softplus softsign=nn.softsign sqrt square squeeze stack std=math.reduce_std stop_gradient tanh tile transpose"
    " truncated_normal=random.truncated_normal var=math.reduce_variance zeros_like l2_normalize=math.l2_normalize elu=nn.elu"
    " name_scope").split())


def int_shape(x):
    return tuple(x.shape)


def ndim(x):
    return len(x.shape)


def expand_dims(x, axis=-1):
    from snug._lazy import tf
    return tf.expand_dims(x, axis)


def flatten(x):
    from snug._lazy import tf
    return tf.reshape(x, [-1])


_session = [None]


def set_session(session):
    """TensorFlow 1's way to give Keras a session's settings; models here run without one."""
    _session[0] = session


def get_session():
    """The one that was set, or a new one."""
    if _session[0] is None:
        from snug.compat_v1 import Session
        _session[0] = Session()
    return _session[0]


def mean(x, axis=None, keepdims=False):
    from snug._lazy import tf
    return tf.reduce_mean(x, axis=axis, keepdims=keepdims)


def sum(x, axis=None, keepdims=False):
    from snug._lazy import tf
    return tf.reduce_sum(x, axis=axis, keepdims=keepdims)


def binary_crossentropy(target, output, from_logits=False):
    """Of each element; a loss would take the mean of the last axis."""
    from snug._lazy import tf
    from snug.keras import losses
    return losses.binary_crossentropy(tf.expand_dims(target, -1), tf.expand_dims(output, -1), from_logits=from_logits)


def __getattr__(name):
    from snug._lazy import tf
    if name.startswith("__"):
        raise AttributeError(name)
    from snug.keras import _backend_old
    if not name.startswith("_") and hasattr(_backend_old, name):
        return getattr(_backend_old, name)
    found = _C.function("keras.backend." + name)
    if found is not None:
        return found
    if name not in _TF:
        raise AttributeError(f"module 'keras.backend' has no attribute '{name}'")
    found = tf
    for part in (_TF[name] or name).split("."):
        found = getattr(found, part)
    return found


def count_params(x):
    n = 1
    for d in x.shape:
        n *= int(d)
    return n
