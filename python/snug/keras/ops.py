"""keras.ops: functions of the table under Keras' names; on symbolic tensors a call is a node of the graph."""
import functools
import sys

from snug._given import default_only
from snug import _C
from snug.keras import _symbolic


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("numpy", "nn", "linalg"):            # keras.ops.numpy.sum is keras.ops.sum
        return sys.modules[__name__]
    if name == "image":
        return _image()
    function = _find(name)
    if function is None:
        raise AttributeError(f"keras.ops.{name} is not in Snug")
    globals()[name] = _either(function, name)
    return globals()[name]


def _either(function, name):
    """On tensors at once, on symbolic ones a node."""
    def call(*args, **kwargs):
        if _symbolic.is_symbolic(list(args), kwargs):
            return _symbolic.call(function, *args, word=name, **kwargs)
        return function(*args, **kwargs)
    call.__name__, call.__doc__, call.__wrapped__ = name, function.__doc__, function
    return call


def _image():
    import types

    from snug.keras import _ops_image
    made = types.ModuleType("snug.keras.ops.image")
    for name in _ops_image.NAMES:
        setattr(made, name, _either(getattr(_ops_image, name), name))
    globals()["image"] = sys.modules[made.__name__] = made
    return made


_TF = {"scatter": "scatter_nd", "scatter_update": "tensor_scatter_nd_update", "top_k": "math.top_k", "split": "split", "meshgrid": "meshgrid",
       "unstack": "unstack", "custom_gradient": "custom_gradient", "moments": "nn.moments"}


def _in_keras_words(tf):
    """TensorFlow's functions whose arguments have other names in Keras."""
    def cond(pred, true_fn, false_fn):
        return tf.cond(pred, true_fn, false_fn)

    def map(f, xs):
        return tf.map_fn(f, xs)

    def switch(index, branches, *operands):
        return tf.switch_case(index, [functools.partial(branch, *operands) for branch in branches])

    def vectorized_map(function, elements):
        return tf.vectorized_map(function, elements)

    def while_loop(cond, body, loop_vars, maximum_iterations=None):
        return tf.while_loop(cond, body, loop_vars, maximum_iterations=maximum_iterations)
    return {function.__name__: function for function in (cond, map, switch, vectorized_map, while_loop)}


def _find(name):
    from snug._lazy import tf
    from snug.keras import _ops_more
    found = None if name in _ops_more.OVER else _C.function("keras.ops." + name)
    if found is None:
        found = getattr(_ops_more, name, None) if name in _ops_more.NAMES else None
    found = found or _in_keras_words(tf).get(name)
    if found is None and name in _TF:
        found = tf
        for part in _TF[name].split("."):
            found = getattr(found, part)
    return found


_OWN = ("convert_to_numpy", "convert_to_tensor", "array", "shape", "fori_loop", "scan", "is_tensor", "stop_gradient")


def named(name, image=False):
    """The function that a configuration names, of these or of ops.image; None: there is none. It is no other attribute of the module."""
    from snug.keras import _ops_image
    if image:
        return getattr(_image(), name) if name in _ops_image.NAMES else None
    known = name.isidentifier() and not name.startswith("_") and (name in _OWN or _find(name) is not None)
    return getattr(sys.modules[__name__], name) if known else None


def convert_to_numpy(x):
    import numpy as np
    return np.asarray(x)


@default_only("sparse ragged", "keras.ops.convert_to_tensor")
def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    from snug._lazy import tf
    t = _C.convert_to_tensor(x) if dtype is None else None
    return t if t is not None else tf.cast(_C.convert_to_tensor(x), dtype) if _C.is_tensor(x) else _C.convert_to_tensor(x, dtype=dtype)


def array(x, dtype=None):
    return convert_to_tensor(x, dtype)


def shape(x):
    return tuple(x.shape)


def fori_loop(lower, upper, body_fun, init_val):
    for i in range(int(lower), int(upper)):
        init_val = body_fun(i, init_val)
    return init_val


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    """(carry, x) -> (carry, y) over the first axis; the last carry and the ys, stacked."""
    from snug import _nest
    from snug._lazy import tf
    parts = _nest.flatten(xs) if xs is not None else []
    n = int(parts[0].shape[0]) if parts else int(length)
    made = []
    for i in (range(n - 1, -1, -1) if reverse else range(n)):
        x = None if xs is None else _symbolic._map(lambda t: t[i], xs)
        init, y = f(init, x)
        made.append(y)
    made = made[::-1] if reverse else made
    if not made or made[0] is None:
        return init, None
    flat = [tf.stack(rows) for rows in zip(*[_nest.flatten(y) for y in made])]
    return init, _nest.pack_sequence_as(made[0], flat) if _nest.is_nested(made[0]) else flat[0]


def is_tensor(x):
    return _C.is_tensor(x)


def stop_gradient(variable):
    from snug._lazy import tf
    return _symbolic.call(tf.stop_gradient, variable) if _symbolic.is_symbolic(variable) else tf.stop_gradient(variable)
