"""Graphs and sessions of TensorFlow 1. A graph is a list of operations: a function and its arguments, in the order in
which they were made. Session.run evaluates those that its fetches need, in that order, by eager calls, which are recorded:
one run is one plan. Variables live in the session; closing it gives their bytes back.

Shapes are found by applying the function to stand-ins within a trace, once with each of two sizes for what is unknown."""
import collections
import contextlib
import functools
import itertools

from snug import _C, _nest, _tape
from snug._given import default_only, refuse
from snug._lazy import tf
from snug._symbolic import Symbolic
from snug._types import MakesVariable, Peek, TensorShape, as_dtype

_state = {"eager": True, "graphs": [], "sessions": [], "default": None, "running": 0,
          "by_reference": False}        # whether variables are those of TensorFlow 1, which a run fetches as it leaves them
_serials = itertools.count(1)           # of sessions: what draws in one counts for itself


def active():
    """Whether calls make operations of a graph now."""
    return not _state["running"] and (bool(_state["graphs"]) or not _state["eager"])


def disable_eager_execution():
    _state["eager"] = False


def enable_eager_execution(config=None, device_policy=None, execution_mode=None):
    _state["eager"] = True
    _share_of_card(config)


def _share_of_card(config):
    """What a configuration says of a card's memory becomes its budget."""
    fraction = getattr(getattr(config, "gpu_options", None), "per_process_gpu_memory_fraction", 0)
    if isinstance(fraction, (int, float)) and 0 < fraction <= 1:
        _C.card_budget(f"{100 * fraction}%")
    return fraction


def executing_eagerly():
    return not active() and not _C.is_tracing()


def get_default_graph():
    if _state["graphs"]:
        return _state["graphs"][-1]
    if _state["default"] is None:
        _state["default"] = Graph()
    return _state["default"]


def reset_default_graph():
    _state["default"] = None


def get_default_session():
    return _state["sessions"][-1] if _state["sessions"] else None


class GraphKeys:
    GLOBAL_VARIABLES, TRAINABLE_VARIABLES, LOCAL_VARIABLES = "variables", "trainable_variables", "local_variables"
    GLOBAL_STEP, LOSSES, REGULARIZATION_LOSSES = "global_step", "losses", "regularization_losses"
    UPDATE_OPS, SUMMARIES, TRAIN_OP = "update_ops", "summaries", "train_op"


class Graph:
    def __init__(self):
        self.operations, self.names, self.collections, self.scopes, self.controls = [], {}, {}, [], []
        self.by_name, self.variables_by_name, self.seed = {}, {}, None
        self.finalized = False

    @contextlib.contextmanager
    def as_default(self):
        _state["graphs"].append(self)
        try:
            yield self
        finally:
            _state["graphs"].remove(self)

    @contextlib.contextmanager
    def device(self, name):
        yield

    @contextlib.contextmanager
    def control_dependencies(self, inputs):
        self.controls.append([_operation(x) for x in inputs])
        try:
            yield
        finally:
            self.controls.pop()

    def unique(self, name):
        full = "/".join([s for s in self.scopes if s] + [name])
        n = self.names.get(full, 0)
        self.names[full] = n + 1
        return full if n == 0 else f"{full}_{n}"

    def open_scope(self, name):
        """Names begin with a path of its own from now on, or with the one that a last slash says is meant; gives the path."""
        path = name.rstrip("/") if name.endswith("/") or not name else self.unique(name)
        self.scopes = [path]
        return path and path + "/"

    def get_operations(self):
        return list(self.operations)

    def get_tensor_by_name(self, name):
        if name not in self.by_name:
            raise KeyError(f"The name '{name}' refers to a Tensor which does not exist.")
        return self.by_name[name]

    def get_operation_by_name(self, name):
        return self.get_tensor_by_name(name + ":0").op

    def as_graph_element(self, obj, allow_tensor=True, allow_operation=True):
        found = (self.get_tensor_by_name if ":" in obj else self.get_operation_by_name)(obj) if isinstance(obj, str) else obj
        if not (allow_operation if isinstance(found, Operation) else allow_tensor):
            raise TypeError(f"Can not convert a {type(found).__name__} into a {'Tensor' if allow_tensor else 'Operation'}.")
        return found

    def add_to_collection(self, name, value):
        self.collections.setdefault(name, []).append(value)

    def get_collection(self, name, scope=None):
        found = list(self.collections.get(name, []))
        return [v for v in found if v.name.startswith(scope)] if scope else found

    def finalize(self):
        """From now on the graph takes no operation: how scripts find out what makes it grow."""
        self.finalized = True

    version = property(lambda self: len(self.operations))
    building_function = False

    def unique_name(self, name, mark_as_used=True):
        known = dict(self.names)
        made = self.unique(name)
        self.names = self.names if mark_as_used else known
        return made

    def name_scope(self, name):
        return tf.name_scope(name)

    def get_all_collection_keys(self):
        return list(self.collections)

    @default_only("from_version add_shapes")
    def as_graph_def(self, from_version=None, add_shapes=False):
        """Names, kinds and inputs of the operations, to count and to look at; no protocol buffer."""
        return GraphDef([NodeDef(o.name, o.type, [x.op.name for x in o.inputs]) for o in self.operations])


class FuncGraph(Graph):
    """The operations of a function's body, made of placeholders."""
    building_function = True

    def __init__(self, name, function, signature):
        super().__init__()
        self.name, self.inputs = name, []
        with self.as_default():
            args, kwargs = (_nest.map_structure(self._placeholder, x) if x else x for x in signature)
            result = function(*args, **kwargs)
        self.structured_input_signature, self.structured_outputs = signature, result
        self.outputs = [x for x in _nest.flatten(result) if isinstance(x, Symbolic)]

    def _placeholder(self, spec):
        if not isinstance(spec, tf.TensorSpec):
            return spec
        self.inputs.append(placeholder(spec.dtype, spec.shape, spec.name))
        return self.inputs[-1]


NodeDef = collections.namedtuple("NodeDef", "name op input")


class GraphDef:
    def __init__(self, nodes=()):
        self.node = list(nodes)

    def ByteSize(self):  # noqa: N802
        """About what the description takes."""
        return sum(len(n.name) + len(n.op) + sum(map(len, n.input)) + 8 for n in self.node)


def _operation(x):
    return getattr(x, "op", x)


class Operation:
    """A function with its arguments; evaluated at most once per run."""

    def __init__(self, kind, function, args=(), kwargs=None, name=None, needs_tape=False):
        graph = get_default_graph()
        if graph.finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        self.graph, self.type, self.function, self.args, self.kwargs = graph, kind, function, args, kwargs or {}
        self.name = graph.unique(name or kind)
        self.id = len(graph.operations)
        self.needs_tape = needs_tape
        self.inputs = [x for x in _nest.flatten([list(args), self.kwargs]) if isinstance(x, Symbolic)]
        for x in self.inputs:
            if x.graph is not graph:
                raise ValueError(f"Tensor {x.name} must be from the same graph as operation {self.name}.")
        self.control_inputs = [c for cs in graph.controls for c in cs]
        self.outputs = []
        graph.operations.append(self)

    def run(self, feed_dict=None, session=None):
        (session or _session()).run(self, feed_dict)

    def __repr__(self):
        return f"<tf.Operation '{self.name}' type={self.type}>"


class GraphTensor(Symbolic):
    """One result of an operation."""

    def __init__(self, op, index, shape, dtype):
        self.op, self.index, self.shape, self.dtype = op, index, TensorShape(shape), dtype
        self.name = f"{op.name}:{index}"
        self.graph = op.graph
        op.graph.by_name[self.name] = self
        op.outputs.append(self)

    def __snug_function__(self, function, args, kwargs):
        return make(function, args, kwargs)

    def set_shape(self, shape):
        self.shape = self.shape.merge_with(shape)

    def eval(self, feed_dict=None, session=None):
        return (session or _session()).run(self, feed_dict)

    @property
    def value_index(self):
        return self.index

    device = ""

    def consumers(self):
        return [o for o in self.graph.operations if self in o.inputs]

    def __len__(self):
        raise TypeError(f"len is not well defined for a symbolic Tensor ({self.name}).")

    def __iter__(self):
        if self.shape.rank is None or self.shape[0] is None:
            raise TypeError("Cannot iterate over a tensor with unknown first dimension.")
        return iter([self[i] for i in range(self.shape[0])])

    def __bool__(self):
        raise TypeError("Using a symbolic `tf.Tensor` as a Python `bool` is not allowed. Use tf.cond.")

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)

    def __repr__(self):
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __str__(self):
        return f'Tensor("{self.name}", shape={self.shape}, dtype={self.dtype.name})'


# --- making operations ----------------------------------------------------------------------------------
_KINDS = {"matmul": "MatMul", "constant": "Const", "add": "add", "multiply": "mul", "subtract": "sub", "truediv": "truediv",
          "reduce_sum": "Sum", "reduce_mean": "Mean", "reduce_max": "Max", "reduce_min": "Min", "reshape": "Reshape",
          "neg": "Neg", "cast": "Cast", "argmax": "ArgMax", "identity": "Identity", "transpose": "transpose",
          "reduce_prod": "Prod", "tile": "Tile", "_item": "strided_slice", "softmax": "Softmax", "relu": "Relu"}


def _kind_of(function):
    word = getattr(function, "__name__", "op")
    return _KINDS.get(word, "".join(w.capitalize() for w in word.split("_")) or "Op")


def make(function, args, kwargs, kind=None, name=None, **how):
    """The results of a new operation: a GraphTensor, or a structure of them."""
    kwargs = dict(kwargs)
    name = kwargs.pop("name", None) or name
    op = Operation(kind or _kind_of(function), function, args, kwargs, name, **how)
    result = _infer(op)
    if _nest.is_nested(result):
        flat = [GraphTensor(op, i, shape, dtype) for i, (shape, dtype) in enumerate(_pairs(result))]
        return _nest.pack_sequence_as(result, flat)
    return GraphTensor(op, 0, *(result.pair if isinstance(result, _Known) else (None, tf.float32)))


class _Known:
    """What is known of a result: shape and dtype."""
    __slots__ = ("pair",)

    def __init__(self, shape, dtype):
        self.pair = (shape, dtype)


def _pairs(result):
    return [r.pair if isinstance(r, _Known) else (None, tf.float32) for r in _nest.flatten(result)]


def _infer(op):
    """A structure of _Known: sizes that differ between two tries are unknown."""
    tries = []
    symbols = _unique([x for x in op.inputs])
    sizes = (3, 5) if any(not x.shape.is_fully_defined() for x in symbols) else (3,)
    for size in sizes:
        got = _try(op, symbols, size)
        if got is None:
            return _Known(None, symbols[0].dtype if symbols else tf.float32)
        tries.append(got)
    merged = [_Known(_merge([_nest.flatten(t)[i] for t in tries]), d)
              for i, (_, d) in enumerate([r.pair for r in _nest.flatten(tries[0])])]
    return _nest.pack_sequence_as(tries[0], merged) if _nest.is_nested(tries[0]) else merged[0]


def _merge(known):
    shapes = [k.pair[0] for k in known]
    if len({len(s) for s in shapes}) != 1:
        return None
    return [d[0] if len(set(d)) == 1 else None for d in zip(*shapes)]


def _unique(items):
    return list({id(x): x for x in items}.values())


def _try(op, symbols, size):
    if any(x.shape.rank is None for x in symbols) or op.needs_tape:
        return None
    trace = _C.Trace()
    examples = [_C.full([size if d is None else d for d in x.shape], 0.0, x.dtype) for x in symbols]
    _state["running"] += 1
    try:
        values = {id(x): t for x, t in zip(symbols, trace.begin(examples))}
        result = op.function(*_fill(op.args, values), **_fill(op.kwargs, values))
        return _nest.map_structure(_known_of, result) if _nest.is_nested(result) else _known_of(result)
    except (Peek, MakesVariable):
        return None
    except tf.errors.InvalidArgumentError as error:
        if size == 3 and any(not x.shape.is_fully_defined() for x in symbols):
            return None
        raise ValueError(str(error)) from None
    finally:
        _state["running"] -= 1
        trace.drop()


def _known_of(value):
    t = value if isinstance(value, _C.Tensor) else _C.convert_to_tensor(value)
    return _Known(tuple(t.shape), t.dtype)


def _fill(structure, values):
    """Arguments with values in the place of symbols."""
    if isinstance(structure, Symbolic):
        return values[id(structure)]
    if isinstance(structure, dict):
        return {k: _fill(v, values) for k, v in structure.items()}
    if isinstance(structure, (list, tuple)):
        parts = [_fill(v, values) for v in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)
    return structure


def placeholder(dtype, shape=None, name=None):
    op = Operation("Placeholder", None, name=name)
    return GraphTensor(op, 0, shape, as_dtype(dtype))


def placeholder_with_default(input, shape, name=None):
    t = make(lambda x: _C.convert_to_tensor(x), (input,), {}, "PlaceholderWithDefault", name)
    t.shape = TensorShape(shape)
    return t


# --- variables ------------------------------------------------------------------------------------------
def refuse_other_resource(use_resource):
    """What reads of a variable see is one setting of the program: enable_resource_variables, disable_resource_variables."""
    if use_resource is not None and bool(use_resource) == _state["by_reference"]:
        refuse("tf.Variable", "use_resource", use_resource, None)


class GraphVariable(Symbolic):
    """A variable of a graph; what it holds is the session's."""

    @default_only("variable_def import_scope shape", "tf.Variable")
    def __init__(self, initial_value=None, trainable=None, collections=None, validate_shape=True, caching_device=None,
                 name=None, variable_def=None, dtype=None, expected_shape=None, import_scope=None, constraint=None, use_resource=None,
                 synchronization=None, aggregation=None, shape=None):
        trainable = trainable is not False
        if isinstance(collections, str):
            raise ValueError(f"collections argument to Variable constructor must be a list, tuple, or set. Got {collections} of type <class 'str'>")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        refuse_other_resource(use_resource)
        self.graph, self.constraint = get_default_graph(), constraint
        initial_value = initial_value() if callable(initial_value) else initial_value
        if not isinstance(initial_value, Symbolic):
            wish = as_dtype(dtype) if dtype is not None else None
            value = initial_value
            initial_value = make(lambda: _C.convert_to_tensor(value, dtype=wish), (), {}, "initial_value")
        elif dtype is not None and initial_value.dtype != dtype:
            initial_value = tf.cast(initial_value, dtype)
        self.initial_value = initial_value
        self.op = Operation("VariableV2", None, name=name or "Variable")
        self.shape, self.dtype, self.trainable = initial_value.shape, initial_value.dtype, trainable
        self.name = self.op.name + ":0"
        self.op.outputs.append(self)
        self.graph.by_name[self.name] = self
        self.initializer = _assignment(self, initial_value, "assign", "Assign").op
        for key in [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections:
            self.graph.add_to_collection(key, self)
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in (collections or ()):
            self.graph.add_to_collection(GraphKeys.TRAINABLE_VARIABLES, self)

    __snug_function__ = GraphTensor.__snug_function__
    eval = GraphTensor.eval
    device = ""

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)

    def __repr__(self):
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def value(self):
        return tf.identity(self)

    read_value = initialized_value = value

    def assign(self, value, use_locking=None, name=None, read_value=True):
        return _assignment(self, value, "assign", "Assign")

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        return _assignment(self, delta, "assign_add", "AssignAdd")

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        return _assignment(self, delta, "assign_sub", "AssignSub")

    def load(self, value, session=None):
        (session or _session())._write(self, value)


def _assignment(variable, value, how, kind):
    op = Operation(kind, _Assign(variable, how), (value,))
    return GraphTensor(op, 0, variable.shape, variable.dtype)


class _Assign:
    """What an assignment does in a run; the run calls the session."""

    def __init__(self, variable, how):
        self.variable, self.how, self.of_session = variable, how, True

    def __call__(self, session, value):
        if self.how == "assign":
            session._write(self.variable, value)
        else:
            getattr(session._variable(self.variable), self.how)(_C.convert_to_tensor(value, dtype=self.variable.dtype))
        return session._variable(self.variable).read_value()


def global_variables(scope=None):
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def trainable_variables(scope=None):
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def global_variables_initializer():
    return variables_initializer(global_variables(), "init")


def local_variables(scope=None):
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def local_variables_initializer():
    return variables_initializer(local_variables(), "init")


def variables_initializer(var_list, name="init"):
    op = Operation("NoOp", lambda: None, name=name)
    op.control_inputs = op.control_inputs + [v.initializer for v in var_list]
    return op


def get_collection(key, scope=None):
    return get_default_graph().get_collection(key, scope)


def add_to_collection(name, value):
    get_default_graph().add_to_collection(name, value)


@contextlib.contextmanager
@default_only("partitioner", "tf.compat.v1.variable_scope")
def variable_scope(name_or_scope=None, default_name=None, values=None, initializer=None, regularizer=None, caching_device=None,
                   partitioner=None, custom_getter=None, reuse=None, dtype=None, use_resource=None, constraint=None, auxiliary_name_scope=True):
    graph = get_default_graph()
    refuse_other_resource(use_resource)
    name = name_or_scope if isinstance(name_or_scope, str) else getattr(name_or_scope, "name", None) or default_name
    scope = _Scope(name, reuse, initializer, regularizer, dtype, constraint, custom_getter)
    if auxiliary_name_scope:
        graph.scopes.append(name)
    graph.var_scopes = getattr(graph, "var_scopes", []) + [scope]
    try:
        yield scope
    finally:
        for key in [k for k in graph.names if k.startswith(layers_in(graph))]:
            del graph.names[key]             # the scope, entered again, names its layers from the start
        if auxiliary_name_scope:
            graph.scopes.pop()
        graph.var_scopes = graph.var_scopes[:-1]


def layers_in(graph):
    """Where the names of the open variable scope's layers are counted."""
    return "/".join(["layers"] + [s.name for s in getattr(graph, "var_scopes", [])]) + "/"


class _Scope:
    def __init__(self, name, reuse=None, initializer=None, regularizer=None, dtype=None, constraint=None, custom_getter=None):
        self.name, self.reuse, self.initializer, self.regularizer = name, reuse, initializer, regularizer
        self.dtype, self.constraint, self.custom_getter = dtype, constraint, custom_getter

    def reuse_variables(self):
        self.reuse = True


AUTO_REUSE = "auto"


def get_variable_scope():
    scopes = getattr(get_default_graph(), "var_scopes", [])
    return scopes[-1] if scopes else _Scope("")


def _of_scopes(scopes, setting, given):
    """What is given, or what the innermost scope says that says something."""
    return given if given is not None else next((found for s in reversed(scopes) if (found := getattr(s, setting)) is not None), None)


@default_only("partitioner", "tf.compat.v1.get_variable")
def get_variable(name, shape=None, dtype=None, initializer=None, regularizer=None, trainable=None, collections=None, caching_device=None,
                 partitioner=None, validate_shape=True, use_resource=None, custom_getter=None, constraint=None, synchronization=None,
                 aggregation=None):
    scopes = getattr(get_default_graph(), "var_scopes", [])
    dtype, initializer = _of_scopes(scopes, "dtype", dtype), _of_scopes(scopes, "initializer", initializer)
    given = dict(shape=shape, dtype=dtype, initializer=initializer, regularizer=_of_scopes(scopes, "regularizer", regularizer),
                 reuse=_of_scopes(scopes, "reuse", None), trainable=trainable, collections=collections, caching_device=caching_device,
                 partitioner=partitioner, validate_shape=validate_shape, use_resource=use_resource,
                 constraint=_of_scopes(scopes, "constraint", constraint), synchronization=synchronization, aggregation=aggregation)
    getters = [custom_getter] if custom_getter is not None else [s.custom_getter for s in scopes if s.custom_getter is not None]
    getter = functools.partial(_get_variable, scopes)
    for own in getters:
        getter = functools.partial(own, getter)
    return getter(name="/".join([s.name for s in scopes] + [name]), **given)


def _get_variable(scopes, name, shape=None, dtype=None, initializer=None, regularizer=None, reuse=None, trainable=None, collections=None,
                  caching_device=None, partitioner=None, validate_shape=True, use_resource=None, constraint=None, synchronization=None,
                  aggregation=None):
    """The variable of a full name: what a custom getter is given to call."""
    graph = get_default_graph()
    refuse("tf.compat.v1.get_variable", "partitioner", partitioner, None)
    kind = as_dtype(dtype) if dtype is not None else tf.float32
    if name in graph.variables_by_name:
        return _shared(graph.variables_by_name[name], name, reuse, shape, dtype)
    if reuse is True:
        raise ValueError(f"Variable {name} does not exist, or was not created with tf.get_variable().")
    if isinstance(initializer, type):
        initializer = initializer()
    if initializer is None:
        initializer = _glorot
    if callable(initializer) and not isinstance(initializer, Symbolic):
        init, dims = initializer, list(TensorShape(shape))
        value = make(lambda: _from_initializer(init, dims, kind), (), {}, "initial_value")
    else:
        value = initializer
    inside, last = [s.name for s in scopes], name
    if scopes and name.startswith("/".join(inside) + "/"):
        last = name[len("/".join(inside)) + 1:]
    else:                                    # a custom getter has chosen another name
        inside = []
    around, graph.scopes = graph.scopes, inside                        # of variable scopes alone
    try:
        variable = GraphVariable(value, trainable, collections, name=last, dtype=None if dtype is None else kind, constraint=constraint,
                                 use_resource=use_resource)
    finally:
        graph.scopes = around
    graph.variables_by_name[name] = variable
    if regularizer is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, make(regularizer, (variable,), {}, last + "/Regularizer"))
    return variable


def _shared(variable, name, reuse, shape, dtype):
    """The variable that is there, where a scope says that it is to be shared."""
    if not reuse:
        raise ValueError(f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in VarScope?")
    if shape is not None and not TensorShape(shape).is_compatible_with(variable.shape):
        raise ValueError(f"Trying to share variable {name}, but specified shape {TensorShape(shape)} and found shape {variable.shape}.")
    if dtype is not None and as_dtype(dtype) != variable.dtype:
        raise ValueError(f"Trying to share variable {name}, but specified dtype {as_dtype(dtype).name} and found dtype {variable.dtype.name}.")
    return variable


def _from_initializer(initializer, shape, dtype):
    try:
        return initializer(shape, dtype=dtype)
    except TypeError:
        return initializer(shape)


def _fans(shape):
    receptive = 1
    for d in shape[:-2]:
        receptive *= d
    return (shape[-2] * receptive if len(shape) > 1 else shape[0] if shape else 1), (shape[-1] * receptive if shape else 1)


def _glorot(shape, dtype=None, seed=None):
    limit = (6.0 / sum(_fans(shape))) ** 0.5
    return tf.random.uniform(shape, -limit, limit, dtype or tf.float32, seed)


def report_uninitialized_variables(var_list=None, name=None):
    op = Operation("ReportUninitialized", _Uninitialized(var_list), name=name)
    return GraphTensor(op, 0, [None], tf.string)


class _Uninitialized:
    of_session = True

    def __init__(self, variables):
        self.variables = global_variables() + local_variables() if variables is None else list(variables)

    def __call__(self, session):
        import numpy as np
        return np.array([v.op.name.encode() for v in self.variables if v not in session._values], dtype=object)


# --- gradients and branches -----------------------------------------------------------------------------
_NO_GRADIENT = {"StopGradient", "ArgMax", "Argmin", "Shape", "Size", "Rank", "Assign", "AssignAdd", "AssignSub", "ZerosLike", "OnesLike", "Floor",
                "Ceil", "Rint", "Round"}


def _reaches(ys, xs, stops):
    """The xs that a derivative of ys could come to: along operations that have one, of numbers with a fraction, not through stops."""
    seen, stack = set(), [y for y in ys if isinstance(y, Symbolic)]
    while stack:
        t = stack.pop()
        if id(t) in seen or not t.dtype.is_floating:
            continue
        seen.add(id(t))
        if id(t) in stops or t.op.type in _NO_GRADIENT:
            continue
        branches = _nest.flatten(list(getattr(t.op.function, "branches", ())))
        stack += [x for x in t.op.inputs + branches if isinstance(x, Symbolic)]
    return [id(x) in seen for x in xs]


def gradients(ys, xs, grad_ys=None, name="gradients", colocate_gradients_with_ops=False, gate_gradients=False, aggregation_method=None,
              stop_gradients=None, unconnected_gradients=_tape.UnconnectedGradients.NONE):
    listed = lambda v: list(v) if isinstance(v, (list, tuple)) else [v]
    targets, sources, stops = listed(ys), listed(xs), listed(stop_gradients) if stop_gradients is not None else []
    grad_ys = None if grad_ys is None else listed(grad_ys)
    if grad_ys is not None and len(grad_ys) != len(targets):
        raise ValueError(f"Passed {len(grad_ys)} grad_ys for {len(targets)} ys")
    unconnected = _tape.mode_of(unconnected_gradients)
    reached = _reaches(targets, sources, {id(x) for x in stops})
    found = [x for x, yes in zip(sources, reached) if yes]
    op = Operation("gradients", _Gradient(found, stops), (targets, found, grad_ys), name=name, needs_tape=True)
    made = iter([GraphTensor(op, i, x.shape, x.dtype) for i, x in enumerate(found)])
    zero = (lambda x: tf.zeros_like(x)) if unconnected == _tape.UnconnectedGradients.ZERO else lambda x: None
    return [next(made) if yes else zero(x) for x, yes in zip(sources, reached)]


class _Gradient:
    of_run = True

    def __init__(self, sources, stops):
        self.sources, self.stops = sources, stops

    def __call__(self, run, targets, values, seeds):
        links = {id(x): run.links.get(id(x), []) for x in self.stops}
        flat, places = [], []                # a variable that is stopped at has been read so many times
        for x, v in zip(self.sources, values):
            reads = [link.outputs[0] for link in links.get(id(x), ())]
            places.append(range(len(flat), len(flat) + max(1, len(reads))))
            flat += reads or [run.session._variable(x) if isinstance(x, GraphVariable) else v]
        stopped = [link for reads in links.values() for link in reads]
        found = run.tape.gradient(targets, flat, output_gradients=seeds, _stopped=stopped)
        parts = [[found[i] for i in place if found[i] is not None] for place in places]
        return [functools.reduce(lambda a, b: a + b, part) if part else tf.zeros_like(v) for part, v in zip(parts, values)]


@default_only("strict", "tf.compat.v1.cond")
def cond(pred, true_fn=None, false_fn=None, strict=False, name=None, fn1=None, fn2=None):
    """Both branches are built; a run evaluates one of them."""
    yes, no = (true_fn or fn1)(), (false_fn or fn2)()
    op = Operation("cond", _Branch(yes, no), (pred,), name=name)
    if yes is None or isinstance(yes, Operation):
        return op
    flat = [GraphTensor(op, i, getattr(x, "shape", ()), getattr(x, "dtype", tf.float32))
            for i, x in enumerate(_nest.flatten(yes))]
    return _nest.pack_sequence_as(yes, flat) if _nest.is_nested(yes) else flat[0]


class _Branch:
    of_run = True

    def __init__(self, yes, no):
        self.branches = (no, yes)

    def __call__(self, run, pred):
        chosen = self.branches[1 if bool(pred) else 0]
        run.evaluate([x for x in _nest.flatten(chosen) if isinstance(x, (Symbolic, Operation))])
        out = [run.value(x) if isinstance(x, Symbolic) else None if isinstance(x, Operation) else x
               for x in _nest.flatten(chosen)]
        return out if len(out) != 1 else out[0]


def group(*inputs, name=None):
    op = Operation("group_deps", lambda: None, name=name or "group_deps")
    op.control_inputs = op.control_inputs + [_operation(x) for x in _nest.flatten(list(inputs)) if x is not None]
    return op


def no_op(name=None):
    return Operation("NoOp", lambda: None, name=name)


def control_dependencies(control_inputs):
    if active():
        return get_default_graph().control_dependencies([x for x in control_inputs if isinstance(x, (Symbolic, Operation))])
    return contextlib.nullcontext()


# --- sessions -------------------------------------------------------------------------------------------
def _session():
    found = get_default_session()
    if found is None:
        raise ValueError("Cannot evaluate tensor using `eval()`: No default session is registered.")
    return found


class _Run:
    """One evaluation: what has a value, and the tape where gradients are wanted."""

    def __init__(self, session, feeds):
        self.session, self.feeds = session, feeds
        self.done, self.values, self.tape, self.watched = set(), {}, None, set()
        self.linked, self.links = set(), {}     # what some gradients stop at: each has its way back taken apart, to be cut there

    def needed(self, wanted):
        """Operations that these need and that are not done, in the order in which they were made."""
        found, stack = {}, [x if isinstance(x, Operation) else x.op for x in wanted
                            if isinstance(x, Operation) or id(x) not in self.feeds]
        while stack:
            op = stack.pop()
            if op in found or op in self.done:
                continue
            found[op] = True
            stack.extend(x.op for x in op.inputs if id(x) not in self.feeds)
            stack.extend(op.control_inputs)
        return sorted(found, key=lambda o: o.id)

    def evaluate(self, wanted):
        for op in self.reads_first(self.ordered(self.needed(wanted))):
            self.one(op)

    def reads_first(self, ops):
        """What does not wait for an optimizer's update sees variables as they were before it; variables by reference are seen as they are."""
        late = set()
        if not _state["by_reference"]:
            for op in ops:
                if getattr(op.function, "updates", False) or any(c in late for c in op.control_inputs + [x.op for x in op.inputs]):
                    late.add(op)
        return [op for op in ops if op not in late] + [op for op in ops if op in late]

    def ordered(self, ops):
        """Made-first, except that what an operation must wait for by a control input comes before it."""
        placed, out, inside = set(), [], set(ops)

        def place(op):
            stack = [op]
            while stack:
                at = stack[-1]
                waits = [c for c in at.control_inputs + [x.op for x in at.inputs] if c in inside and c not in placed]
                if waits and at not in placed:
                    stack.extend(waits[:1])
                else:
                    stack.pop()
                    if at not in placed:
                        placed.add(at)
                        out.append(at)
        for op in ops:
            place(op)
        return out

    def value(self, x):
        if id(x) in self.feeds:
            return self.feeds[id(x)]
        if id(x) in self.linked and isinstance(x, GraphVariable):
            return self.link(x, self.session._variable(x).read_value())
        if isinstance(x, GraphVariable):
            return self.session._variable(x).read_value()
        return self.values[id(x)]

    def link(self, x, value):
        """The value, for all that follows: gradients come to it, and go on from there where they are not stopped."""
        if self.tape is None or not value.dtype.is_floating:
            return value
        self.links.setdefault(id(x), []).append(self.tape.link(value))
        return self.links[id(x)][-1].outputs[0]

    def one(self, op):
        self.done.add(op)
        if op.function is None:
            if op.type == "Placeholder":
                raise tf.errors.InvalidArgumentError(
                    None, op, f"You must feed a value for placeholder tensor '{op.name}' with dtype {op.outputs[0].dtype.name}")
            return
        values = {id(x): self.value(x) for x in op.inputs}
        first = ()
        if getattr(op.function, "of_session", False):
            first = (self.session,)
        elif getattr(op.function, "of_run", False):
            first = (self,)
        _C.set_place(self.session._serial << 32 | op.id + 1)
        try:
            result = op.function(*first, *_fill(op.args, values), **_fill(op.kwargs, values))
        finally:
            _C.set_place(0)
        flat = _nest.flatten(result) if _nest.is_nested(result) else [result]
        for t, v in zip(op.outputs, flat):
            v = v if t.dtype == tf.string else _C.convert_to_tensor(v)
            v = self.link(t, v) if id(t) in self.linked else v
            self.values[id(t)] = v
            self.watch(t, v)

    def watch(self, t, value):
        if self.tape is not None and id(t) in self.watched and not isinstance(t, GraphVariable):
            self.tape.watch(value)


class Session:
    @default_only("target", "tf.compat.v1.Session")
    def __init__(self, target="", graph=None, config=None):
        self.graph = graph or get_default_graph()
        self.config = config
        self._values, self._slots, self._closed = {}, {}, False
        self.memory_fraction, self._serial = _share_of_card(config), next(_serials)

    sess_str = ""

    @property
    def graph_def(self):
        return self.graph

    # --- what the graph's variables hold ----------------------------------------------------------
    def _variable(self, v):
        if v not in self._values:
            raise tf.errors.FailedPreconditionError(None, v.op, f"Attempting to use uninitialized value {v.op.name}")
        return self._values[v]

    def _write(self, v, value):
        value = _C.convert_to_tensor(value, dtype=None if isinstance(value, _C.Tensor) else v.dtype)
        if v in self._values:
            self._values[v].assign(value)
        else:
            self._values[v] = tf.Variable(value, trainable=v.trainable, name=v.op.name)

    def slot(self, owner, v, name, start):
        """A variable of an optimizer's own."""
        key = (owner, v, name)
        if key not in self._slots:
            self._slots[key] = tf.Variable(_C.full(v.shape, start, v.dtype), trainable=False, name=f"{v.op.name}/{name}")
        return self._slots[key]

    # --- running ----------------------------------------------------------------------------------
    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        wanted = [self._fetch(f) for f in _leaves(fetches)]
        feeds = {}
        for key, value in (feed_dict or {}).items():
            key = self.graph.get_tensor_by_name(key) if isinstance(key, str) else key
            feeds[id(key)] = self._feed(key, value)
        run = _Run(self, feeds)
        _state["running"] += 1
        try:
            before = self._before_updates(run, wanted)
            self._evaluate(run, wanted, feed_dict or {})
            results = [None if isinstance(x, Operation) else _as_array(before[id(x)] if id(x) in before else run.value(x)) for x in wanted]
            _C.boundary()
        finally:
            if run.tape is not None:
                run.tape.__exit__()
            _state["running"] -= 1
        given = iter(results)
        return _rebuild(fetches, given)

    def _before_updates(self, run, wanted):
        """What variables that are fetched beside an optimizer's update hold before it."""
        if _state["by_reference"] or not any(getattr(op.function, "updates", False) for op in run.needed(wanted)):
            return {}
        return {id(x): run.value(x) for x in wanted if isinstance(x, GraphVariable) and x in self._values}

    def _evaluate(self, run, wanted, feed_dict):
        ops = run.needed(wanted)
        if any(op.needs_tape for op in ops):
            run.tape = _tape.GradientTape(persistent=True)
            run.tape.__enter__()
            for op in ops:
                if op.needs_tape:
                    run.watched |= {id(x) for x in op.function.sources}
                    run.linked |= {id(x) for x in op.function.stops}
            for key in feed_dict:
                key = self.graph.get_tensor_by_name(key) if isinstance(key, str) else key
                run.feeds[id(key)] = run.link(key, run.feeds[id(key)]) if id(key) in run.linked else run.feeds[id(key)]
                run.watch(key, run.feeds[id(key)])
        run.evaluate(wanted)

    def _fetch(self, f):
        if isinstance(f, str):
            f = self.graph.by_name[f] if f in self.graph.by_name else self.graph.get_operation_by_name(f)
        if isinstance(f, (_C.Tensor, _C.Variable)):
            return _Constant(f)
        if not isinstance(f, (Symbolic, Operation)):
            raise TypeError(f"Fetch argument {f!r} has invalid type {type(f)!r}, must be a string or Tensor.")
        if f.graph is not self.graph:
            raise ValueError(f"Fetch argument {f!r} cannot be interpreted as a Tensor. It is not an element of this graph.")
        return f

    def _feed(self, key, value):
        if isinstance(value, Symbolic):
            raise TypeError("The value of a feed cannot be a tf.Tensor object.")
        import numpy as np
        value = np.asarray(value, dtype=key.dtype.as_numpy_dtype)
        if not key.shape.is_compatible_with(value.shape):
            raise ValueError(f"Cannot feed value of shape {value.shape} for Tensor {key.name}, which has shape {key.shape}")
        return _C.convert_to_tensor(value, dtype=key.dtype)

    def list_devices(self):
        return tf.config.list_logical_devices()

    def as_default(self):
        return _default(self)

    def close(self):
        """Every byte of its variables goes back, and on a GPU what its runs took."""
        self._values, self._slots, self._closed = {}, {}, True
        if _C.is_started() and _C.device():
            _C.trim()

    def __enter__(self):
        self._context = contextlib.ExitStack()
        self._context.enter_context(self.graph.as_default())
        _state["sessions"].append(self)
        return self

    def __exit__(self, *exception):
        if self in _state["sessions"]:
            _state["sessions"].remove(self)
        self._context.close()
        self.close()


@contextlib.contextmanager
def _default(session):
    _state["sessions"].append(session)
    try:
        yield session
    finally:
        _state["sessions"].remove(session)


class InteractiveSession(Session):
    def __init__(self, target="", graph=None, config=None):
        super().__init__(target, graph, config)
        _state["sessions"].append(self)

    def close(self):
        if self in _state["sessions"]:
            _state["sessions"].remove(self)
        super().close()


class _Constant(Symbolic):
    """An eager tensor that is fetched."""

    def __init__(self, value):
        self.op = Operation("Const", lambda: value)
        self.graph, self.dtype, self.shape = self.op.graph, value.dtype, value.shape
        self.op.outputs.append(self)


def _as_array(value):
    return value.numpy() if _C.is_tensor(value) else value


def _leaves(fetches):
    if isinstance(fetches, dict):
        return [leaf for key in fetches for leaf in _leaves(fetches[key])]
    if isinstance(fetches, (list, tuple)):
        return [leaf for part in fetches for leaf in _leaves(part)]
    return [fetches]


def _rebuild(fetches, given):
    if isinstance(fetches, dict):
        return {key: _rebuild(fetches[key], given) for key in fetches}
    if isinstance(fetches, (list, tuple)):
        parts = [_rebuild(part, given) for part in fetches]
        return type(fetches)(*parts) if hasattr(fetches, "_fields") else type(fetches)(parts)
    return next(given)
