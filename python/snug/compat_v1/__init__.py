"""tensorflow.compat.v1: graphs and sessions (snug/_graph.py) under TensorFlow 1's names. Functions of tf are the same ones;
while a graph is built, each call makes an operation."""
import functools
import types

from snug import _C, _graph, _names
from snug._given import refuse
from snug._graph import *  # noqa: F403
from snug._graph import (AUTO_REUSE, Graph, GraphKeys, InteractiveSession, Operation, Session, control_dependencies,  # noqa: F401
                         get_default_graph, get_default_session)
from snug._types import TensorShape  # noqa: F401

# How arguments were called before.
_OLD = {"keep_dims": "keepdims", "reduction_indices": "axis", "dimension": "axis", "squeeze_dims": "axis", "dim": "axis"}


def in_graph(function):
    """The function as scripts of TensorFlow 1 call it."""
    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def call(*args, **kwargs):
        for old in _OLD.keys() & kwargs.keys():
            kwargs[_OLD[old]] = kwargs.pop(old)
        return _graph.make(function, args, kwargs) if _graph.active() else function(*args, **kwargs)
    return call


def _dropout(x, keep_prob=None, noise_shape=None, seed=None, name=None, rate=None):
    from snug._lazy import tf
    keep = keep_prob if rate is None else 1.0 - rate
    if not isinstance(keep, _C.Tensor):
        return tf.nn.dropout(x, 1.0 - keep, noise_shape=noise_shape, seed=seed)
    drawn = tf.random.uniform(tf.shape(x) if noise_shape is None else noise_shape, dtype=x.dtype, seed=seed)
    return x / keep * tf.floor(keep + drawn)


def _cross_entropy(_sentinel=None, labels=None, logits=None, dim=-1, name=None, axis=None):
    from snug._lazy import tf
    if _sentinel is not None:
        raise ValueError("Only call `softmax_cross_entropy_with_logits` with named arguments (labels=..., logits=..., ...)")
    return tf.nn.softmax_cross_entropy_with_logits(labels, logits, dim if axis is None else axis)


def _xw_plus_b(x, weights, biases, name=None):
    from snug._lazy import tf
    return tf.nn.bias_add(tf.matmul(x, weights), biases)


_SPECIAL = {"nn.xw_plus_b": _xw_plus_b, "nn.dropout": _dropout, "nn.softmax_cross_entropy_with_logits": _cross_entropy,
            "nn.softmax_cross_entropy_with_logits_v2": _cross_entropy}
_RENAMED = {"py_func": "numpy_function", "random_normal": "random.normal", "random_uniform": "random.uniform",
            "truncated_normal": "random.truncated_normal", "random_shuffle": "random.shuffle", "multinomial": "random.categorical",
            "log": "math.log", "floordiv": "math.floordiv", "mod": "math.floormod", "rsqrt": "math.rsqrt", "ceil": "math.ceil",
            "erf": "math.erf", "is_nan": "math.is_nan", "is_finite": "math.is_finite", "log1p": "math.log1p",
            "lgamma": "math.lgamma", "cumprod": "math.cumprod", "reciprocal": "math.reciprocal", "diag": "linalg.tensor_diag",
            "matrix_diag": "linalg.diag", "matrix_inverse": "linalg.inv", "matrix_transpose": "linalg.matrix_transpose",
            "unsorted_segment_sum": "math.unsorted_segment_sum", "segment_sum": "math.segment_sum", "rint": "math.rint",
            "count_nonzero": "math.count_nonzero", "squared_difference": "math.squared_difference", "div": "divide",
            "confusion_matrix": "math.confusion_matrix", "trace": "linalg.trace", "sparse_softmax": "nn.softmax"}


class _Space(types.ModuleType):
    """tf.compat.v1.nn and its like."""

    def __init__(self, path):
        super().__init__("snug.compat_v1." + path)
        self.__path__ = []
        self.__dict__["_path"] = path

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = self.__dict__[name] = _find(self._path, name)
        return found


def _find(path, name):
    full = f"{path}.{name}" if path else name
    if full == "io.tf_record_iterator":
        return _python_io().tf_record_iterator
    if full in _SPECIAL:
        return in_graph(_SPECIAL[full])
    found = None
    try:
        found = _names.find("compat.v1" + ("." + path if path else ""), name)
    except AttributeError:
        pass
    if found is None:
        found = _names.find(path, name)
    if isinstance(found, _names.Space):
        return _Space(full)
    if isinstance(found, type) or isinstance(found, types.ModuleType) or not callable(found):
        return found
    return in_graph(found)


def __getattr__(name):
    import importlib
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("train", "losses", "layers", "logging", "summary", "data", "initializers"):
        return importlib.import_module("snug.compat_v1." + name) if name != "initializers" else _initializers()
    if name == "python_io":
        return _python_io()
    if name == "metrics":
        raise AttributeError("tf.compat.v1.metrics is not in Snug: metrics that are operations of a graph; tf.keras.metrics are objects"
                             " that are given the values which a session has run")
    if name in _initial:
        return getattr(importlib.import_module("snug.compat_v1.layers"), name)
    path, _, last = _RENAMED.get(name, name).rpartition(".")
    found = _find(path, last)
    globals()[name] = found
    return found


def _python_io():
    from snug import _io
    return types.SimpleNamespace(tf_record_iterator=_io.tf_record_iterator, TFRecordWriter=_io.TFRecordWriter,
                                 TFRecordOptions=_io.TFRecordOptions)


_initial = {"zeros_initializer", "ones_initializer", "constant_initializer", "random_normal_initializer",
            "truncated_normal_initializer", "random_uniform_initializer", "glorot_uniform_initializer",
            "glorot_normal_initializer"}


def _initializers():
    from snug.compat_v1 import layers
    return types.SimpleNamespace(**{n.removesuffix("_initializer"): getattr(layers, n) for n in _initial})


# --- names that are not functions of tensors ------------------------------------------------------------
def Variable(initial_value=None, trainable=None, collections=None, validate_shape=True, caching_device=None, name=None, variable_def=None,
             dtype=None, expected_shape=None, import_scope=None, constraint=None, use_resource=None, synchronization=None, aggregation=None,
             shape=None):
    """`collections` are those of a graph; a program that runs as it is read has none."""
    given = dict(name=name, variable_def=variable_def, dtype=dtype, import_scope=import_scope, constraint=constraint, shape=shape,
                 validate_shape=validate_shape)
    if _graph.active():
        return _graph.GraphVariable(initial_value, trainable, collections, use_resource=use_resource, **given)
    refuse("tf.compat.v1.Variable", "collections", collections, None)
    from snug._variable import Variable
    return Variable(initial_value, trainable, **given)


def assign(ref, value, validate_shape=None, use_locking=None, name=None):
    return ref.assign(value)


def assign_add(ref, value, use_locking=None, name=None):
    return ref.assign_add(value)


def assign_sub(ref, value, use_locking=None, name=None):
    return ref.assign_sub(value)


def disable_resource_variables():
    _graph._state["by_reference"] = True


def enable_resource_variables():
    _graph._state["by_reference"] = False


def disable_v2_behavior():
    _graph.disable_eager_execution()
    disable_resource_variables()


def enable_v2_behavior():
    _graph.enable_eager_execution()
    enable_resource_variables()


def disable_v2_tensorshape():
    pass


disable_tensor_equality = enable_v2_tensorshape = disable_v2_tensorshape
disable_control_flow_v2 = enable_control_flow_v2 = disable_v2_tensorshape
initialize_all_variables = _graph.global_variables_initializer


def set_random_seed(seed):
    _C.seed(int(seed))


def get_seed(op_seed):
    return None, op_seed


def is_variable_initialized(variable):
    """An operation: whether the session that runs it has a value of the variable."""
    if not _graph.active():
        return _C.convert_to_tensor(True)
    from snug._lazy import tf
    op = _graph.Operation("IsVariableInitialized", _Initialized(variable))
    return _graph.GraphTensor(op, 0, (), tf.bool)


class _Initialized:
    of_session = True

    def __init__(self, variable):
        self.variable = variable

    def __call__(self, session):
        return _C.convert_to_tensor(self.variable in session._values)


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None,
               maximum_iterations=None, return_same_structure=False):
    """A loop of one variable gives that alone."""
    from snug import _flow
    made = in_graph(_flow.while_loop)(cond, body, loop_vars, shape_invariants, back_prop=back_prop, maximum_iterations=maximum_iterations)
    if not isinstance(made, (list, tuple)):
        return made
    return made[0] if len(made) == 1 and not return_same_structure else type(loop_vars)(made)


def where(condition, x=None, y=None, name=None):
    from snug._lazy import tf
    return in_graph(tf.where)(condition, x, y) if x is not None else in_graph(tf.where)(condition)


class _Options:
    """A record of settings that may all be left out."""

    def __init__(self, **settings):
        self.__dict__.update(settings)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__[name] = _Options()
        return made


class GPUOptions(_Options):
    pass


class ConfigProto(_Options):
    def __init__(self, **settings):
        super().__init__(gpu_options=settings.pop("gpu_options", GPUOptions(allow_growth=False,
                                                                            per_process_gpu_memory_fraction=0.0)), **settings)


class RunOptions(_Options):
    FULL_TRACE = 3


class RunMetadata(_Options):
    pass


class app:
    @staticmethod
    def run(main=None, argv=None):
        import sys
        main = main or sys.modules["__main__"].main
        sys.exit(main(argv or sys.argv))
