"""Single names of tf that are neither functions of tensors nor belong to a larger file: devices, scopes, printing,
modules, asserts, versions."""
import contextlib
import functools
import re
import sys
import time

from snug import _C, _nest, _text, _train
from snug._function import note_print
from snug._given import default_only
from snug._lazy import graph, tf
from snug._threads import ThreadList
from snug._types import Peek

VERSION, GIT_VERSION, COMPILER_VERSION = "2.21.0", "snug", "gcc"
newaxis = None


# --- places and scopes ----------------------------------------------------------------------------------
class device(contextlib.ContextDecorator):
    """What is recorded inside runs on the CPU, where that is named; else on the GPU where there is one: soft placement. Inside
    functions and v1 graphs it says nothing: these run where they are called."""

    def __init__(self, device_name=None):
        self.name = device_name
        self._before = []

    def _check(self, name):
        """Without soft placement a device that is not there is an error."""
        from snug import _config
        kind, _, number = name.upper().rpartition("/")[2].removeprefix("DEVICE:").partition(":")
        there = [f"{d.device_type}:{d.name.rpartition(':')[2]}" for d in _config.list_logical_devices()]
        if kind and not any(d == f"{kind}:{number}" or (number in ("", "*") and d.startswith(kind + ":")) for d in there):
            raise tf.errors.InvalidArgumentError(None, None, f"Could not satisfy device specification '{name}'. "
                                                 f"enable_soft_placement=0. All available devices {there}")

    def __enter__(self):
        from snug import _C, _config
        name = str(getattr(self.name, "name", self.name or ""))
        if not _config.get_soft_device_placement():
            self._check(name)
        self._before.append(_C.place("CPU" in name.upper()))
        return self

    def __exit__(self, *exception):
        from snug import _C
        _C.place(self._before.pop())
        return False


class DeviceSpec:
    """The parts of a device's name: /job:worker/replica:0/task:1/device:GPU:0."""
    _PARTS = ("job", "replica", "task")

    def __init__(self, job=None, replica=None, task=None, device_type=None, device_index=None):
        self.job, self.replica, self.task, self.device_index = job, replica, task, device_index
        self.device_type = device_type and device_type.upper()

    @classmethod
    def from_string(cls, spec):
        found = {}
        for part in filter(None, spec.split("/")):
            kind, _, rest = part.partition(":")
            if kind.upper() in ("CPU", "GPU", "TPU"):
                kind, rest = "device", part
            if kind not in (*cls._PARTS, "device"):
                raise ValueError(f"Unknown attribute '{kind}' is encountered while parsing the device spec: '{spec}'.")
            if kind == "device":
                found["device_type"], _, at = rest.partition(":")
                found["device_index"] = int(at) if at not in ("", "*") else None
            else:
                found[kind] = rest if kind == "job" else int(rest)
        return cls(**found)

    def to_string(self):
        parts = [f"/{name}:{getattr(self, name)}" for name in self._PARTS if getattr(self, name) is not None]
        at = "*" if self.device_index is None else self.device_index
        return "".join(parts + [f"/device:{self.device_type}:{at}"] * (self.device_type is not None))

    def replace(self, **changes):
        return DeviceSpec(**{**vars(self), **changes})

    def make_merged_spec(self, dev):
        return self.replace(**{name: value for name, value in vars(dev).items() if value is not None})

    def __eq__(self, other):
        return isinstance(other, DeviceSpec) and vars(self) == vars(other)

    def __hash__(self):
        return hash(self.to_string())

    def __str__(self):
        return self.to_string()


SCOPES = ThreadList()           # the paths of open name scopes, outermost first


class name_scope(contextlib.ContextDecorator):
    """What variables made inside are called begins with it, in a v1 graph operations, too. A name that ends with a slash is a whole path."""

    def __init__(self, name=None, default_name=None, values=None):
        self._name = name or (default_name if isinstance(default_name, str) else None) or ""
        self._graphs = []

    @property
    def name(self):
        return self._name

    def __enter__(self):
        around = SCOPES[-1] if SCOPES else ""
        SCOPES.append(self._name if self._name.endswith("/") or not self._name else f"{around}{self._name}/")
        if graph() is None:
            self._graphs.append(None)
            return SCOPES[-1]
        within = graph().get_default_graph()
        self._graphs.append((within, within.scopes))
        return within.open_scope(self._name)

    def __exit__(self, *exception):
        SCOPES.pop()
        entered = self._graphs.pop()
        if entered is not None:
            entered[0].scopes = entered[1]
        return False


def scoped(name):
    """The name of a variable that is made now."""
    return (SCOPES[-1] if SCOPES else "") + (name or "Variable")


@contextlib.contextmanager
def init_scope():
    yield


@contextlib.contextmanager
def control_dependencies(control_inputs):
    if graph() is None:
        yield
        return
    with graph().control_dependencies(control_inputs):
        yield


def executing_eagerly():
    return graph() is None and not _C.is_tracing()


def inside_function():
    return _C.is_tracing()


class Operation:
    pass


# --- printing -------------------------------------------------------------------------------------------
def print(*inputs, output_stream=None, summarize=3, sep=" ", end="\n", name=None):
    """tf.print: to stderr where no stream is given; long tensors are shortened. In a trace: at each call of it."""
    if _C.is_capturing() and any(hasattr(x, "_slot") for x in _nest.flatten(list(inputs))):
        raise Peek
    if _C.is_tracing() and note_print(inputs, {"output_stream": output_stream, "summarize": summarize, "sep": sep, "end": end}):
        return
    text = sep.join(_written(x, summarize) for x in inputs) + end
    if isinstance(output_stream, str):
        if output_stream.startswith("file://"):
            with open(output_stream[7:], "a") as f:
                f.write(text)
            return
        output_stream = None if output_stream != "stdout" else sys.stdout
    stream = sys.stderr if output_stream is None else output_stream
    stream.write(text)
    stream.flush()


def _written(x, summarize):
    if _C.is_tensor(x):
        few = summarize not in (-1, None) and any(n > 2 * summarize + 1 for n in x.shape)
        return _of_array(_text.edges(x, summarize) if few else x.numpy(), summarize)
    if getattr(x, "dtype", None) == "string" and hasattr(x, "numpy"):
        a = x.numpy()
        if isinstance(a, bytes):
            return a.decode(errors="replace")
        return "[" + " ".join(f'"{v.decode(errors="replace")}"' for v in a.ravel()) + "]"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{_quoted(k, summarize)}: {_quoted(v, summarize)}" for k, v in x.items()) + "}"
    if isinstance(x, (list, tuple)):
        marks = "[]" if isinstance(x, list) else "()"
        return marks[0] + ", ".join(_quoted(v, summarize) for v in x) + marks[1]
    return _of_array(x, summarize) if hasattr(x, "__array_interface__") else str(x)


def _quoted(x, summarize):
    return f"'{x}'" if isinstance(x, str) else _written(x, summarize)


def _of_array(a, summarize):
    import numpy as np
    a = np.asarray(a)
    if a.ndim == 0:
        return _number(a[()])
    n = len(a)
    parts = [_of_array(v, summarize) for v in (a if summarize in (-1, None) or n <= 2 * summarize else a[:summarize])]
    if summarize not in (-1, None) and n > 2 * summarize:
        parts += ["..."] + [_of_array(v, summarize) for v in a[-summarize:]]
    return "[" + ("\n " if a.ndim > 1 else " ").join(p.replace("\n", "\n ") for p in parts) + "]"


def _number(v):
    kind = v.dtype.kind
    if kind == "b":
        return str(int(v))
    if kind == "f":
        text = repr(float(str(v))) if v == v and abs(v) != float("inf") else str(v)
        return text[:-2] if text.endswith(".0") else text
    return str(v)


# --- Python in the middle -------------------------------------------------------------------------------
def py_function(func, inp, Tout, name=None):
    """func on tensors; its results have no gradient through Python."""
    if _C.is_capturing():
        return _later(Tout)
    _at_each_call()
    out = func(*[tf.convert_to_tensor(x) for x in _nest.flatten(inp)])
    return _typed(out, Tout)


def _at_each_call():
    """Python that a trace cannot repeat: the function that has it runs its body at each call."""
    if _C.is_tracing():
        raise Peek


def _later(kinds):
    """Python is not repeated by C: the pipeline calls it for each element. What is known is the dtype."""
    from snug import _capture
    if isinstance(kinds, (list, tuple)):
        return [_later(k) for k in kinds]
    shape = getattr(kinds, "shape", None)
    return _capture.active().blank(tf.as_dtype(getattr(kinds, "dtype", kinds)),
                                   None if shape is None or shape.rank is None else tuple(shape.as_list()))


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    if func is None:                        # @tf.numpy_function(Tout=...)
        return lambda f: functools.wraps(f)(lambda *args: numpy_function(f, args, Tout))
    if _C.is_capturing():
        return _later(Tout)
    _at_each_call()
    return _typed(func(*[tf.convert_to_tensor(x).numpy() for x in _nest.flatten(inp)]), Tout)


def _typed(out, kinds):
    if isinstance(kinds, (list, tuple)):
        return [_typed(o, k) for o, k in zip(out if isinstance(out, (list, tuple)) else [out], kinds)]
    out = tf.convert_to_tensor(out)
    return out if tf.as_dtype(getattr(kinds, "dtype", kinds)) == out.dtype else tf.cast(out, getattr(kinds, "dtype", kinds))


def is_tensor(x):
    """Also of texts, and of parts of elements in a function that a pipeline repeats."""
    from snug._strings import StringTensor
    from snug._variable import IndexedSlices
    return _C.is_tensor(x) or isinstance(x, (StringTensor, IndexedSlices, tf.SparseTensor, tf.RaggedTensor)) or hasattr(x, "_slot")


def is_symbolic_tensor(tensor):
    return isinstance(tensor, _C.Tensor) and tensor._is_traced


@default_only("partial")
def get_static_value(tensor, partial=False):
    if hasattr(tensor, "_slot") or (isinstance(tensor, _C.Tensor) and tensor._is_traced):
        return None
    return tensor.numpy() if _C.is_tensor(tensor) else tensor


def identity_of(x, name=None):
    return tf.identity(x)


def identity_n(input, name=None):
    return [tf.identity(x) for x in input]


def ensure_shape(x, shape, name=None):
    x = tf.convert_to_tensor(x)
    if hasattr(x, "_slot"):
        x.set_shape(shape)
        return x
    if not x.shape.is_compatible_with(shape):
        raise tf.errors.InvalidArgumentError(
            None, None, f"Shape of tensor {list(x.shape)} is not compatible with expected shape {shape}.")
    return x


def grad_pass_through(f):
    """f with the gradient of the identity."""
    @tf.custom_gradient
    def through(*args, **kwargs):
        return f(*args, **kwargs), lambda *dy: dy if len(dy) > 1 else dy[0]
    return through


def timestamp(name=None):
    return tf.constant(time.time(), dtype=tf.float64)


def get_logger():
    import logging
    return logging.getLogger("tensorflow")


# --- tf.Module ------------------------------------------------------------------------------------------
class Module:
    """A holder of variables and of other modules."""

    def __init__(self, name=None):
        self._name = name or _snake(type(self).__name__)
        self._scope = (SCOPES[-1] if SCOPES else "") + self._name + "/"

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        if _train.PENDING:
            _train.settle()

    @property
    def name(self):
        return getattr(self, "_name", None) or _snake(type(self).__name__)

    @property
    def name_scope(self):
        return name_scope(getattr(self, "_scope", self.name + "/"))

    @classmethod
    def with_name_scope(cls, method):
        @functools.wraps(method)
        def within(self, *args, **kwargs):
            with self.name_scope:
                return method(self, *args, **kwargs)
        return within

    def _walk(self, wanted, seen=None):
        seen = {id(self)} if seen is None else seen
        later = []
        for key in sorted(vars(self)):
            for value in _leaves(vars(self)[key]):
                if id(value) in seen:
                    continue
                if wanted(value):
                    seen.add(id(value))
                    yield value
                if isinstance(value, Module) or hasattr(value, "_flatten_layers"):
                    seen.add(id(value))
                    later.append(value)
        for module in later:
            if isinstance(module, Module):
                yield from module._walk(wanted, seen)
            else:
                for v in module.variables:
                    if wanted(v) and id(v) not in seen:
                        seen.add(id(v))
                        yield v

    @property
    def variables(self):
        return tuple(self._walk(lambda v: isinstance(v, _C.Variable)))

    @property
    def trainable_variables(self):
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self):
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self):
        return tuple(self._walk(lambda v: isinstance(v, Module)))


def _leaves(value):
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key])
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _snake(name):
    """MyMLPBlock is my_mlp_block."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", name).lower()


# --- tf.debugging ---------------------------------------------------------------------------------------
def _fail(message, what):
    raise tf.errors.InvalidArgumentError(None, None, f"{message or ''} {what}".strip())


def _holds(condition):
    import numpy as np
    return bool(np.all(condition.numpy() if _C.is_tensor(condition) else condition))


def Assert(condition, data=(), summarize=None, name=None):
    if not _holds(condition):
        _fail("Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data:",
              " ".join(_written(d, 3 if summarize is None else summarize) for d in data))


def _pair(x, y, holds, words, message, summarize=None):
    x = tf.convert_to_tensor(x)
    y, shown = tf.convert_to_tensor(y, dtype_hint=x.dtype), 3 if summarize is None else summarize
    if not _holds(holds(x, y)):
        _fail(message, f"Condition x {words} y did not hold.\nx: {_written(x, shown)}\ny: {_written(y, shown)}")


def assert_equal(x, y, message=None, summarize=None, name=None):
    _pair(x, y, tf.equal, "==", message, summarize)


def assert_none_equal(x, y, summarize=None, message=None, name=None):
    _pair(x, y, tf.not_equal, "!=", message, summarize)


def assert_greater(x, y, message=None, summarize=None, name=None):
    _pair(x, y, tf.greater, ">", message, summarize)


def assert_greater_equal(x, y, message=None, summarize=None, name=None):
    _pair(x, y, tf.greater_equal, ">=", message, summarize)


def assert_less(x, y, message=None, summarize=None, name=None):
    _pair(x, y, tf.less, "<", message, summarize)


def assert_less_equal(x, y, message=None, summarize=None, name=None):
    _pair(x, y, tf.less_equal, "<=", message, summarize)


def assert_near(x, y, rtol=None, atol=None, message=None, summarize=None, name=None):
    x = tf.convert_to_tensor(x)
    y = tf.convert_to_tensor(y, dtype_hint=x.dtype)
    eps = {"float64": 2.3e-16, "float16": 1e-3, "bfloat16": 8e-3}.get(x.dtype.name, 1.2e-7) * 10
    rtol, atol = eps if rtol is None else rtol, eps if atol is None else atol
    _pair(x, y, lambda a, b: tf.less_equal(tf.abs(a - b), atol + rtol * tf.abs(b)), "and y not equal to tolerance", message, summarize)


def assert_positive(x, message=None, summarize=None, name=None):
    _pair(0, x, lambda a, b: tf.greater(x, 0), "> 0", message, summarize)


def assert_negative(x, message=None, summarize=None, name=None):
    _pair(0, x, lambda a, b: tf.less(x, 0), "< 0", message, summarize)


def assert_non_negative(x, message=None, summarize=None, name=None):
    _pair(0, x, lambda a, b: tf.greater_equal(x, 0), ">= 0", message, summarize)


def assert_non_positive(x, message=None, summarize=None, name=None):
    _pair(0, x, lambda a, b: tf.less_equal(x, 0), "<= 0", message, summarize)


def assert_rank(x, rank, message=None, name=None):
    n = tf.convert_to_tensor(x).ndim
    if n != int(rank):
        raise ValueError(f"{message or ''} Tensor must have rank {int(rank)}. Received rank {n}".strip())


def assert_rank_at_least(x, rank, message=None, name=None):
    n = tf.convert_to_tensor(x).ndim
    if n < int(rank):
        raise ValueError(f"{message or ''} Tensor must have rank at least {int(rank)}. Received rank {n}".strip())


def assert_scalar(tensor, message=None, name=None):
    assert_rank(tensor, 0, message)


def assert_type(tensor, tf_type, message=None, name=None):
    if tf.convert_to_tensor(tensor).dtype != tf_type:
        raise TypeError(f"{message or ''} tensor must be of type {tf_type!r}".strip())


def assert_integer(x, message=None, name=None):
    if not tf.convert_to_tensor(x).dtype.is_integer:
        raise TypeError(f"{message or ''} tensor must be of an integer type".strip())


def assert_proper_iterable(values):
    if _C.is_tensor(values) or not hasattr(values, "__iter__") or isinstance(values, str):
        raise TypeError("Expected argument 'values' to be a 'proper' iterable.")


@default_only("data")
def assert_shapes(shapes, data=None, summarize=None, message=None, name=None):
    sizes = {}
    for x, dims in (shapes.items() if isinstance(shapes, dict) else shapes):
        shape = tuple(tf.convert_to_tensor(x.deref() if hasattr(x, "deref") else x).shape)
        dims = tuple(dims) if isinstance(dims, (list, tuple, str)) else (dims,)
        if len(dims) != len(shape):
            raise ValueError(f"{message or ''} a tensor of shape {shape} where {dims} is wanted".strip())
        for n, d in zip(shape, dims):
            want = d if isinstance(d, int) else sizes.setdefault(d, n) if d is not None and d != "." else n
            if n != want:
                raise ValueError(f"{message or ''} a tensor of shape {shape} where {dims} is wanted".strip())


def check_numerics(tensor, message, name=None):
    tensor = tf.convert_to_tensor(tensor)
    if _C.is_tracing():
        return _C.function("tf.debugging.check_numerics", False, "check_numerics")(tensor, message)
    if not _holds(tf.math.is_finite(tensor)):
        _fail(message, ": Tensor had NaN or Inf values")
    return tensor


def assert_all_finite(x, message, name=None):
    return check_numerics(x, message)


def is_numeric_tensor(tensor):
    return _C.is_tensor(tensor) and tensor.dtype.is_numeric


def enable_check_numerics(stack_height_limit=30, path_length_limit=50):
    """From now on what functions give must be finite: the error says which line made it, when it is computed."""
    _C.check_results(True)


def disable_check_numerics():
    _C.check_results(False)


def set_log_device_placement(enabled):
    """Nothing is written: a process uses one device."""


_filtering = [True]


def enable_traceback_filtering():
    """Tracebacks of a script that ends with an error are without Snug's own files."""
    _filtering[0] = True


def disable_traceback_filtering():
    _filtering[0] = False


def is_traceback_filtering_enabled():
    return _filtering[0]


def get_log_device_placement():
    return False


# --- what is the same for everybody ---------------------------------------------------------------------
def set_verbosity(level, alsologtostdout=False):
    pass


def to_graph(entity, recursive=True, experimental_optional_features=None):
    return entity


def to_code(entity, recursive=True, experimental_optional_features=None):
    """The code that runs: Snug follows Python's own, and writes none."""
    import inspect
    import textwrap
    return textwrap.dedent(inspect.getsource(inspect.unwrap(getattr(entity, "python_function", entity))))


def do_not_convert(func=None):
    return func if func is not None else (lambda f: f)


@default_only("maximum_iterations")
def set_loop_options(parallel_iterations=None, swap_memory=None, maximum_iterations=None, shape_invariants=None):
    pass


def get_include():
    return ""


def get_lib():
    return ""


def get_build_info():
    return {"is_cuda_build": is_built_with_cuda(), "is_rocm_build": False}


@default_only("min_cuda_compute_capability")
def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None):
    from snug import _config
    return bool(_config.get_visible_devices("GPU"))


def gpu_device_name():
    return "/device:GPU:0" if is_gpu_available() else ""


def is_built_with_cuda():
    """Whether the plug-in is there, a card or not."""
    from snug import _C
    return bool(_C.device_count()[2])


def is_built_with_gpu_support():
    return is_built_with_cuda()


def _test_case():
    import unittest

    class TestCase(unittest.TestCase):
        """unittest's, with comparisons of tensors."""

        def assertAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
            import numpy as np
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol, atol, err_msg=msg or "")

        def assertAllEqual(self, a, b, msg=None):
            import numpy as np
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=msg or "")

        def evaluate(self, tensors):
            return _nest.map_structure(lambda t: t.numpy() if _C.is_tensor(t) else t, tensors)
    return TestCase


def __getattr__(name):
    if name == "TestCase":
        return _test_case()
    raise AttributeError(name)


def as_bytes(text, encoding="utf-8"):
    return text if isinstance(text, bytes) else text.encode(encoding)


def as_text(text, encoding="utf-8"):
    return text if isinstance(text, str) else text.decode(encoding)


as_str = as_text
