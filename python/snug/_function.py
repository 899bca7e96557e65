"""tf.function: a body is recorded once per signature (a trace) and each call appends the trace to the caller's recording.

A body that asks for a number while it is traced (`if tensor:`, tf.cond, int()) is traced once per answer where the number is
cheap to find out beforehand: what was recorded up to the question is a trace of its own, which writes nothing and draws
nothing, and a call asks it first (a fork). Elsewhere, and where a body looks at whole tensors, it cannot be replayed: the
function becomes dynamic, its body runs at every call, and one note says so. What tf.print shows is further results of the
trace, written when it was called. Variables may be made in the first call only: that call runs eagerly, then the body is
traced."""
import functools
import inspect
import sys
import types
import weakref
from collections import namedtuple

from snug import _C, _nest, _tape
from snug._lazy import tf
from snug._threads import ThreadList
from snug._types import MakesVariable, Peek, TensorSpec

MAX_TRACES = 256
MAX_QUESTIONS = 4             # of one trace
MAX_ANSWERS = 8               # to one question
_open = ThreadList()          # traces being recorded, outermost first
_eager = [False]              # tf.config.run_functions_eagerly


class NeedsTape(BaseException):
    """Raised by tf.gradients in a trace without a tape; the body is then traced with one."""


def run_functions_eagerly(run_eagerly):
    _eager[0] = bool(run_eagerly)


def functions_run_eagerly():
    return _eager[0]


def has_own_gradient():
    """custom_gradient calls it: traces that are open cannot be differentiated from outside."""
    for trace in _open:
        trace.own_gradient = True


def gradients(ys, xs, grad_ys=None):
    tape = next((t.tape for t in reversed(_open) if t.tape is not None), None)
    if tape is None:
        if not _open:
            raise RuntimeError("tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.")
        raise NeedsTape
    found = tape.gradient(ys, _nest.flatten(xs), output_gradients=grad_ys)
    return found


# --- signatures -----------------------------------------------------------------------------------------
_PLAIN = (int, float, bool, str, bytes, type(None), complex)
_SAME = {}


def _is_array(value):
    return hasattr(value, "__array_interface__") or type(value).__module__ == "numpy"


class _Call:
    """The arguments of one call, taken apart: the key that finds a trace, and the tensors it is called with."""
    __slots__ = ("key", "tensors", "held", "named")

    def __init__(self, args, kwargs, parameters=None):
        self.tensors = []
        self.held = []
        self.key = (self.part(args), self.part(kwargs) if kwargs else None)
        self.named = args, kwargs, parameters

    @property
    def names(self):
        """What each tensor is called in a trace: by its parameter, `x`, `x_1` where there are several."""
        args, kwargs, parameters = self.named
        words = [name for name, _ in parameters or ()]
        given = [(words[i] if i < len(words) else f"args_{i - len(words)}", a) for i, a in enumerate(args)]
        found = []
        for word, value in given + [(k, kwargs[k]) for k in sorted(kwargs)]:
            n = len(_Call((value,), {}).tensors)
            found += [word if i == 0 else f"{word}_{i}" for i in range(n)]
        return found

    def part(self, value):
        if isinstance(value, _C.Tensor):
            self.tensors.append(value)
            return ("T", value.dtype._code, tuple(value.shape))
        if isinstance(value, _PLAIN):
            return (type(value), value)
        if isinstance(value, (list, tuple)):
            return (type(value), tuple([self.part(v) for v in value]))
        if isinstance(value, dict):
            return (dict, tuple([(k, self.part(value[k])) for k in sorted(value)]))
        if isinstance(value, _C.Variable):
            return ("V", id(value))
        if _is_array(value):
            return self.part(_C.convert_to_tensor(value))
        self.held.append(value)
        return ("O", type(value), id(value))


def _replace(value, tensors):
    """The same structure with other tensors, in the order in which _Call met them."""
    if isinstance(value, _C.Tensor):
        return next(tensors)
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, (list, tuple)):
        return _nest._rebuild(value, [_replace(v, tensors) for v in value])
    if isinstance(value, dict):
        made = {k: _replace(value[k], tensors) for k in sorted(value)}
        return {k: made[k] for k in value}
    if isinstance(value, _C.Variable) or not _is_array(value):
        return value
    return next(tensors)


class Asked(BaseException):
    """The trace ended at a question; it gives the number that was asked for."""


def answer(tensor):
    """The number that an open trace asks for, where it was found out before."""
    trace = _open[-1] if _open else None
    if trace is None and not _C.is_tracing():
        tensor.numpy()              # says why there is none
    if trace is None:
        raise Peek(tensor)
    choices = trace.choices or ((0, 1) if tensor.dtype.name == "bool" else None)
    if len(trace.asked) >= len(trace.answers):
        if trace.wanted is None or choices is None or len(trace.answers) >= MAX_QUESTIONS:
            trace.choices = choices
            raise Peek(tensor)
        trace.answers += (choices[0],)
    trace.asked.append(choices)
    return trace.answers[len(trace.asked) - 1]


class answers_among:
    """Within it a question of the open trace has these answers alone."""

    def __init__(self, choices):
        self.trace, self.choices = _open[-1] if _open else None, choices

    def __enter__(self):
        if self.trace is not None:
            self.trace.choices = self.choices

    def __exit__(self, *exception):
        if self.trace is not None and exception[0] is None:
            self.trace.choices = None


class _Fork:
    """A question, and what the body is for each answer: a trace, or a further question."""
    __slots__ = ("question", "ways", "dead", "connected")

    def __init__(self, question):
        self.question = question
        self.ways = {}
        self.dead = False
        self.connected = {}     # of the first one: see _branches.py

    def ask(self, tensors):
        number = self.question.trace.call(tensors)[0]
        with answers_among(self.question.choices):
            return float(number) if number.dtype.is_floating else int(number)


class _Trace:
    """A body, recorded for one signature."""
    __slots__ = ("trace", "shape", "kinds", "others", "own_gradient", "tape", "held", "dead", "arguments", "answers",
                 "asked", "choices", "gradients", "connected", "wanted", "prints", "steps")

    def __init__(self, answers=(), connected=None):
        self.trace = _C.Trace()
        self.own_gradient = False
        self.tape = None
        self.dead = False
        self.answers = answers
        self.asked = []         # of each question so far: all answers there are, or None
        self.choices = None     # of the next one
        self.gradients, self.connected, self.wanted = {}, connected or {}, None     # see _branches.py
        self.prints = []        # (what tf.print is given with None for tensors, keywords, tensors)
        self.steps = []         # optimizers that have a schedule: they get the rate of each call's step

    def record(self, function, args, kwargs, call, with_tape, axes=None):
        around, depth, stopped = list(_tape.ACTIVE), len(_open), None
        try:
            stand_ins = self.trace.begin(call.tensors, axes)
            self.arguments = list(zip(stand_ins, call.names))
            if with_tape:
                self.tape = _tape.GradientTape(persistent=True)
                self.tape.__enter__()
                for t in stand_ins:
                    self.tape._watch(t)
            _open.append(self)
            _tape.ACTIVE[:] = [self.tape] if with_tape else []
            given = iter(stand_ins)
            result = function(*_replace(args, given), **_replace(kwargs, given))
            outputs = self.take_apart(result)
            outputs += [t for _, _, tensors in self.prints for t in tensors]
        except Peek as peek:
            if not peek.args or len(_open) != depth + 1 or len(self.answers) >= MAX_QUESTIONS or self.prints:
                self.trace.drop()
                raise
            outputs, stopped = list(peek.args), peek
        except BaseException:
            self.trace.drop()
            raise
        finally:
            while len(_open) > depth:
                _open.pop()
            self.arguments = None
            _tape.ACTIVE[:] = around
            self.tape = None
        self.trace.end(outputs)
        self.watch(call.held)
        if stopped is not None:
            try:
                if self.trace.is_light:
                    raise Asked from stopped
                self.trace.drop()
                raise stopped
            finally:
                stopped = None      # its traceback holds this frame, and so the arguments

    def take_apart(self, result):
        """Tensors of the result; what is none stays as it is."""
        result = _nest.map_structure(_rows_apart, result) if _nest.is_nested(result) else _rows_apart(result)
        flat = _nest.flatten(result)
        outputs, self.others = [], []
        for value in flat:
            as_is = value is None or not _converts(value)
            self.others.append((as_is, value if as_is else None))
            if not as_is:
                outputs.append(_C.convert_to_tensor(value))
        self.shape = _nest.map_structure(lambda _: None, result) if _nest.is_nested(result) else None
        self.kinds = _nest.is_nested(result)
        return outputs

    def watch(self, held):
        """The trace is of no use once one of these objects is gone."""
        self.held = []
        for value in held:
            try:
                self.held.append(weakref.ref(value, lambda _: setattr(self, "dead", True)))
            except TypeError:
                self.held.append(value)

    def call(self, tensors):
        for optimizer in self.steps:
            optimizer._before_step()
        made = iter(self.trace.call(tensors))
        flat = [value if as_is else next(made) for as_is, value in self.others]
        for inputs, kwargs, shown in self.prints:
            _print(inputs, kwargs, [next(made) for _ in shown])
        return _rows_together(_nest.pack_sequence_as(self.shape, flat)) if self.kinds else flat[0]


class _Rows(namedtuple("_Rows", "values indices dense_shape")):
    """tf.IndexedSlices, taken apart."""


def _rows_apart(value):
    from snug._variable import IndexedSlices
    return _Rows(value.values, value.indices, value.dense_shape) if isinstance(value, IndexedSlices) else value


def _rows_together(result):
    from snug._variable import IndexedSlices
    if isinstance(result, _Rows):
        return IndexedSlices(*result)
    return _nest._rebuild(result, [_rows_together(part) for part in _nest._parts(result)]) if _nest.is_nested(result) else result


def name_of(tensor):
    """What a tensor of an open trace is called where it is printed."""
    for trace in reversed(_open):
        for argument, name in trace.arguments or ():
            if argument is tensor:
                return name
    return "Tensor"


def note_print(inputs, kwargs):
    """What tf.print is given in an open trace is shown whenever the trace is called; False: none is open."""
    if not _open:
        return False
    flat = _nest.flatten(list(inputs))
    tensors = [_C.convert_to_tensor(v) for v in flat if _C.is_tensor(v)]
    rest = _nest.pack_sequence_as(list(inputs), [None if _C.is_tensor(v) else v for v in flat])
    _open[-1].prints.append(((rest, [_C.is_tensor(v) for v in flat]), kwargs, tensors))
    return True


def note_step(optimizer):
    """Called by an optimizer whose rate is Python's to know: a trace that is open asks it at each call, for one step."""
    if _open and any(o is optimizer for o in _open[-1].steps):
        raise Peek
    if _open:
        _open[-1].steps.append(optimizer)


def _print(inputs, kwargs, tensors):
    from snug import _misc
    rest, shown = inputs
    tensors = iter(tensors)
    flat = [next(tensors) if is_shown else v for v, is_shown in zip(_nest.flatten(rest), shown)]
    _misc.print(*_nest.pack_sequence_as(rest, flat), **kwargs)


def _converts(value):
    return _C.is_tensor(value) or isinstance(value, (bool, int, float)) or _is_array(value)


def _as_results(result):
    """What a dynamic body gives, as a traced one would: numbers and arrays are tensors."""
    def convert(value):
        return _C.convert_to_tensor(value) if value is not None and _converts(value) else value
    return _nest.map_structure(convert, result) if _nest.is_nested(result) else convert(result)


# --- the function ---------------------------------------------------------------------------------------
def _capture_has(args, kwargs):
    """Whether a function that a pipeline repeats is being written down, and this is a part of it."""
    from snug import _capture
    return _capture.is_slot(*args, *kwargs.values())


class Function:
    """What tf.function gives."""

    def __init__(self, python_function, input_signature=None, reduce_retracing=False, name=None):
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self._signature = None if input_signature is None else tuple(input_signature)
        self._open_specs = _open_specs(self._signature)
        self._shapes = {} if reduce_retracing and input_signature is None else None      # that calls had, by dtypes and ranks
        self._name = name or getattr(python_function, "__name__", "function")
        self._traces = {}
        self._count = 0
        self._dynamic = False
        self._made_variables = False
        self._with_tape = False
        self._bound = weakref.WeakKeyDictionary()
        self._parameters = _parameters(python_function)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        try:
            found = self._bound.get(instance)
        except TypeError:
            return types.MethodType(self, instance)
        if found is None:
            me = weakref.ref(instance)
            body = self.python_function

            def method(*args, **kwargs):
                return body(me(), *args, **kwargs)
            method.__name__ = self._name
            method.__wrapped__ = body
            found = Function(method, self._signature, reduce_retracing=self._shapes is not None, name=self._name)
            found._parameters = self._parameters[1:] if self._parameters else None
            self._bound[instance] = found
        return found

    # --- calling ----------------------------------------------------------------------------------
    def _arrange(self, args, kwargs):
        """Keywords and defaults in their places, so that f(1, b=2), f(1, 2) and f(1) share a trace where b is 2."""
        args, kwargs = list(args), dict(kwargs)
        for name, default in self._parameters[len(args):]:
            if name in kwargs:
                args.append(kwargs.pop(name))
            elif default is not inspect.Parameter.empty:
                args.append(default)
            else:
                break
        return tuple(args), kwargs

    def __call__(self, *args, **kwargs):
        if _C.is_capturing() and _capture_has(args, kwargs):
            return self.python_function(*args, **kwargs)
        if self._parameters is not None and (kwargs or len(args) < len(self._parameters)):
            args, kwargs = self._arrange(args, kwargs)
        if self._signature is not None:
            args = self._fit(args)
        if self._dynamic or _eager[0]:
            return _as_results(self.python_function(*args, **kwargs))
        call = _Call(args, kwargs, self._parameters)
        specs = self._open_specs or self._shapes is not None and self._relaxed(call)
        if specs and not _open and not kwargs:
            done, result = self._call_open(call, args, specs)
            if done:
                return result
        try:
            trace, answers = self._choose(call)
        except TypeError:
            return self._become_dynamic("an argument that cannot be hashed", args, kwargs)
        if trace is None or trace.dead:
            trace, result = self._record(call, args, kwargs, answers=answers)
            if trace is None:
                return result
            if result is not _SAME:
                return result
        if trace.own_gradient and _tape.ACTIVE:
            return _as_results(self.python_function(*args, **kwargs))
        result = trace.call(call.tensors)
        self._settle(trace)
        return result

    def _relaxed(self, call):
        """With reduce_retracing: specs that are open where shapes of calls so far differ; None where none do."""
        (_, parts), named = call.key
        if named is not None or any(part[0] != "T" for part in parts):
            return None
        kind = tuple((code, len(shape)) for _, code, shape in parts)
        shapes = [shape for _, _, shape in parts]
        seen = self._shapes.setdefault(kind, shapes)
        self._shapes[kind] = [tuple(a if a == b else None for a, b in zip(*pair)) for pair in zip(seen, shapes)]
        specs = [TensorSpec(shape, t.dtype) for shape, t in zip(self._shapes[kind], call.tensors)]
        return specs if any(None in shape for shape in self._shapes[kind]) else None

    def _call_open(self, call, args, specs):
        """(True, the result) by a trace for any size where a spec says None; (False, None): that cannot be."""
        sizes = {}
        if len(specs) != len(call.tensors):
            return False, None
        open_sizes = {n for t, spec in zip(call.tensors, specs) for n, wanted in zip(t.shape, spec.shape.as_list())
                      if wanted is None}
        least = 0 if open_sizes == {1} else 1       # beside other sizes a 1 is spread
        axes = [tuple(sizes.setdefault(n, len(sizes) + 1) if wanted is None and n > least else 0
                      for n, wanted in zip(t.shape, spec.shape.as_list())) for t, spec in zip(call.tensors, specs)]
        if not sizes or len(sizes) > 4:
            return False, None
        call.key = ("open", tuple((t.dtype._code, tuple(-k if k else n for n, k in zip(t.shape, of)))
                                  for t, of in zip(call.tensors, axes)))
        trace, answers = self._choose(call)
        try:
            if trace is None or trace.dead:
                trace, result = self._record(call, args, {}, axes, answers)
                if trace is None or result is not _SAME:
                    return True, result
            if trace.own_gradient and _tape.ACTIVE:
                return False, None
            result = trace.call(call.tensors)
        except Exception:           # something follows from the size that a trace cannot tell: one trace per size
            if self._dynamic:
                raise
            self._traces.pop(call.key, None)
            self._open_specs = self._shapes = None
            call.__init__(args, {}, self._parameters)
            return False, None
        self._settle(trace)
        return True, result

    def _settle(self, trace):
        if trace.trace.has_effects and not _tape.ACTIVE and not _open:
            _C.boundary()

    def _choose(self, call):
        """The trace for these arguments, or None; and the answers to the questions on the way to it."""
        trace, answers = self._traces.get(call.key), ()
        while type(trace) is _Fork:
            number = trace.ask(call.tensors)
            answers += (number,)
            trace = trace.ways.get(number)
        return trace, answers

    def _keep(self, call, answers, trace):
        """Puts a trace or fork where these answers lead; False: there are too many."""
        if not answers:
            if len(self._traces) >= MAX_TRACES:
                self._traces.pop(next(iter(self._traces)))
            self._traces[call.key] = trace
            return True
        fork = self._traces[call.key]
        for number in answers[:-1]:
            fork = fork.ways[number]
        fork.ways[answers[-1]] = trace
        return len(fork.ways) <= MAX_ANSWERS

    def _record(self, call, args, kwargs, axes=None, answers=()):
        """(trace, _SAME), or (None or trace, the result) where the body already ran."""
        connected = self._traces[call.key].connected if answers else {}
        trace = _Trace(answers, connected)

        def record(into):
            into.record(self.python_function, args, kwargs, call, self._with_tape, axes)

        try:
            record(trace)
            if trace.gradients and _finds_more(trace, record, connected):
                trace = _Trace(answers, connected)
                record(trace)
        except Asked as asked:
            fork = _Fork(trace)
            if not self._keep(call, answers, fork):
                return None, self._become_dynamic(_line_of(asked.__cause__), args, kwargs)
            self._count += not answers
            return self._record(call, args, kwargs, axes, answers + (fork.ask(call.tensors),))
        except Peek as peek:
            return None, self._become_dynamic(_line_of(peek), args, kwargs)
        except NeedsTape:
            self._with_tape = True
            return self._record(call, args, kwargs, axes, answers)
        except MakesVariable:
            if _open:
                raise
            if self._made_variables:
                raise ValueError("tf.function only supports singleton tf.Variables created on the first call. Make sure the"
                                 " tf.Variable is only created once or created outside tf.function.") from None
            self._made_variables = True
            result = _as_results(self.python_function(*args, **kwargs))
            trace, again = self._record(call, args, kwargs, axes, answers)
            return (trace, result) if again is _SAME else (None, again)
        self._made_variables = True
        self._count += not answers
        if not self._keep(call, answers, trace):
            return None, self._become_dynamic("a number that takes many values", args, kwargs)
        return trace, _SAME

    def _become_dynamic(self, where, args, kwargs):
        if not self._dynamic:
            self._dynamic = True
            self._count += 1
            if not _open:
                print(f"snug: {self._name} looks at a value while it is traced ({where}); its body runs at every call",
                      file=sys.stderr)
        return _as_results(self.python_function(*args, **kwargs))

    def _fit(self, args):
        """Arguments as the input signature wants them."""
        if len(args) != len(self._signature):
            raise TypeError(f"{self._name} takes {len(self._signature)} arguments by its input_signature, {len(args)} given")
        return tuple(_nest.pack_sequence_as(a, [_fit(v, s) for v, s in zip(_nest.flatten(a), _nest.flatten(spec))])
                     if _nest.is_nested(spec) else _fit(a, spec) for a, spec in zip(args, self._signature))

    # --- what is asked of it ----------------------------------------------------------------------
    def get_concrete_function(self, *args, **kwargs):
        return ConcreteFunction(self, args or self._signature or (), kwargs)

    def experimental_get_tracing_count(self):
        return self._count

    def pretty_printed_concrete_signatures(self, verbose=True):
        return "\n".join(f"{self._name}{key}" for key in self._traces)

    @property
    def input_signature(self):
        return self._signature

    @property
    def function_spec(self):
        return self

    def __repr__(self):
        return f"<tf.function {self._name}>"


def _finds_more(trace, record, connected):
    """Whether branches that the trace does not take make some of its gradients zeros."""
    from snug import _branches
    return _branches.finds_more(trace, record, connected)


def _open_specs(signature):
    """The specs of a signature of tensors alone in which some extent is None; else None."""
    specs = _nest.flatten(list(signature or ()))
    if not all(isinstance(s, TensorSpec) and s.shape.rank is not None for s in specs):
        return None
    return specs if any(n is None for s in specs for n in s.shape.as_list()) else None


def _fit(value, spec):
    if not isinstance(spec, TensorSpec):
        return value
    try:
        if isinstance(value, _C.Variable):
            value = value.read_value()
        t = _C.convert_to_tensor(value, dtype=None if isinstance(value, _C.Tensor) else spec.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"cannot convert {value!r} to {spec}") from error
    if t.dtype != spec.dtype or not spec.shape.is_compatible_with(t.shape):
        raise TypeError(f"Binding inputs to tf.function failed due to `Can not cast TensorSpec(shape={t.shape}, "
                        f"dtype={t.dtype!r}, name=None) to {spec}`.")
    return t


def _parameters(function):
    """(name, default) of each parameter that can stand in order; None where that cannot be known."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in found):
        return None
    return [(p.name, p.default) for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]


def _line_of(peek):
    """The user's line that looked at the value."""
    trace, where = peek.__traceback__, "a value"
    while trace is not None:
        code = trace.tb_frame.f_code
        if "/snug/" not in code.co_filename:
            where = f"{code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return where


def _spec_of(value):
    return TensorSpec(value.shape, value.dtype) if _C.is_tensor(value) else None


def _as_spec(value):
    """A tensor stands for its shape and dtype; text is the host's."""
    is_text = getattr(value, "dtype", None) == tf.string and not isinstance(value, TensorSpec)
    return TensorSpec(value.shape, value.dtype) if is_text or isinstance(value, _C.Tensor) else value


def _called(spec, name):
    return TensorSpec(spec.shape, spec.dtype, spec.name or name) if isinstance(spec, TensorSpec) else spec


class ConcreteFunction:
    """One signature of a function; calling it is calling the function."""
    _graph = None

    def __init__(self, function, args, kwargs):
        self._function = function
        self._specs = tuple(_nest.map_structure(_as_spec, a) if _nest.is_nested(a) else _as_spec(a) for a in args)
        self.name = function._name
        self._words = words = [word for word, _ in function._parameters or ()]
        self.structured_input_signature = (tuple(_called(a, words[i]) if i < len(words) else a for i, a in enumerate(args)), dict(kwargs))
        specs = [s for s in _nest.flatten(list(args)) if isinstance(s, TensorSpec)]
        if function._count == 0 and all(s.shape.is_fully_defined() for s in specs):
            self._trace(args, kwargs)

    def _trace(self, args, kwargs):
        def example(value):
            if not isinstance(value, TensorSpec):
                return value
            return _C.full(value.shape, 0.0, value.dtype)
        example_args = tuple(_nest.map_structure(example, a) if _nest.is_nested(a) else example(a) for a in args)
        call = _Call(example_args, kwargs, self._function._parameters)
        if call.key not in self._function._traces:
            self._function._record(call, example_args, kwargs)

    @property
    def inputs(self):
        return [s for s in _nest.flatten(list(self._specs)) if isinstance(s, TensorSpec)]

    @property
    def outputs(self):
        return [s for s in _nest.flatten(self.structured_outputs) if s is not None]

    @property
    def function_def(self):
        return None

    @property
    def graph(self):
        """The body's operations, to look at: it is run once on placeholders. What a call records is the engine's."""
        if self._graph is None:
            from snug import _graph
            try:
                self._graph = _graph.FuncGraph(self.name, self._function.python_function, self.structured_input_signature)
            except (TypeError, ValueError, NotImplementedError) as why:        # layers, and numbers that are looked at
                raise AttributeError(f"the graph of {self.name} cannot be shown, for its body takes no symbols ({why}); what a call records is the"
                                     " engine's, and `snug.memory()` counts it") from why
        return self._graph

    @property
    def structured_outputs(self):
        """What a call gives, as specs: the body is run on two sets of stand-ins; extents that differ are open."""
        result, other = self._results(7), self._results(11)
        pairs = [(_spec_of(x), _spec_of(y)) for x, y in zip(_nest.flatten(result), _nest.flatten(other))]
        specs = [x and TensorSpec([a if a == b else None for a, b in zip(x.shape, y.shape)], x.dtype) for x, y in pairs]
        return _nest.pack_sequence_as(result, specs) if _nest.is_nested(result) else specs[0]

    def _results(self, fill):
        def stand_in(value):
            if not isinstance(value, TensorSpec):
                return value
            return _C.full([fill if d is None else d for d in value.shape], 0.0, value.dtype)
        args, kwargs = (_nest.map_structure(stand_in, x) if x else x for x in self.structured_input_signature)
        trace = _C.Trace()
        trace.begin([])
        try:
            return _as_results(self._function.python_function(*args, **kwargs))
        finally:
            trace.drop()

    def __call__(self, *args, **kwargs):
        bound = []
        for i, spec in enumerate(self._specs):
            word = self._words[i] if i < len(self._words) else None
            if i < len(args):
                value = args[i]
            elif word in kwargs:
                value = kwargs.pop(word)
            elif any(isinstance(s, TensorSpec) for s in _nest.flatten([spec])):
                break
            else:
                value = spec            # what is no tensor is the signature's
            bound.append(self._checked(i, spec, value))
        return self._function(*bound, *args[len(self._specs):], **kwargs)

    def _checked(self, i, spec, value):
        if isinstance(spec, (bool, int, float, str)) and value != spec:
            raise TypeError(f"Binding inputs to tf.function failed due to `Can not cast {value!r} to Literal[{spec!r}]`.")
        if not isinstance(spec, TensorSpec):
            return value
        if not _C.is_tensor(value) and getattr(value, "dtype", None) != tf.string:
            return tf.constant(value) if spec.dtype == tf.string else _fit(value, spec)
        if value.dtype != spec.dtype:
            raise tf.errors.InvalidArgumentError(None, None, f"cannot compute {self.name} as input #{i}(zero-based) was expected to be"
                                                 f" a {spec.dtype.name} tensor but is a {value.dtype.name} tensor")
        return value


def function(func=None, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False,
             experimental_implements=None, experimental_autograph_options=None, experimental_attributes=None,
             experimental_relax_shapes=None, experimental_compile=None, experimental_follow_type_hints=None):
    """Records func once per signature and replays it."""
    def decorate(f):
        return Function(f, input_signature, reduce_retracing or bool(experimental_relax_shapes))
    return decorate if func is None else decorate(func)
