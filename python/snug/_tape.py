"""tf.GradientTape, tf.custom_gradient, tf.gradients.

The extension's tape is always persistent; one that is not lets go in gradient(). A function with a gradient of its own
cuts the tape: its results are sources, and gradient() walks from them to its arguments with the user's function."""
import functools

from snug import _C, _nest
from snug._lazy import graph, tf
from snug._threads import WeakThreadList

ACTIVE = WeakThreadList()      # tapes that record, outermost first


class UnconnectedGradients:
    NONE, ZERO = "none", "zero"


def mode_of(unconnected_gradients):
    """What stands where a source is not reached: a member of UnconnectedGradients, or its word."""
    word = getattr(unconnected_gradients, "value", unconnected_gradients)
    if word not in (UnconnectedGradients.NONE, UnconnectedGradients.ZERO):
        raise ValueError(f"Unknown value for unconnected_gradients: '{unconnected_gradients}'")
    return word


class _Custom:
    """One call of a function with a gradient of its own."""
    __slots__ = ("inputs", "outputs", "variables", "gradient")

    def __init__(self, inputs, outputs, variables, gradient):
        self.inputs, self.outputs, self.variables, self.gradient = inputs, outputs, variables, gradient


class GradientTape(_C.Tape):
    """Records what happens within it, for derivatives."""

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._persistent = persistent
        self._accessed = watch_accessed_variables
        self._state = "new"
        self._customs = []
        self._seen = ()
        self._traced = False

    # --- recording --------------------------------------------------------------------------------
    def __enter__(self):
        if not ACTIVE and not _C.is_tracing():
            _C.boundary()
        fresh = self._state == "new" or self._state == "used"
        try:
            if fresh:
                self._start(True, self._accessed)
            else:
                self._resume()
            self._traced = _C.is_tracing()
            self._state = "recording"
            ACTIVE.append(self)
            return self
        except BaseException:       # a Ctrl-C: no __exit__ will come
            if fresh:
                self._release()
            else:
                self._stop()
            self._state = "new" if fresh else "stopped"
            ACTIVE.remove(self)
            raise

    def __exit__(self, *exception):
        try:
            if self._state == "recording":
                self._stop()
                self._state = "stopped"
        finally:
            ACTIVE.remove(self)

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__

    def watch(self, tensor):
        for t in _nest.flatten(tensor):
            if not _C.is_tensor(t) and not hasattr(t, "_snug_variable"):
                raise ValueError(f"Passed in object {t!r} of type {type(t).__name__!r}, not tf.Tensor or tf.Variable or"
                                 " ExtensionType.")
        self._open()
        for t in _nest.flatten(tensor):
            self._watch(getattr(t, "_snug_variable", t))

    def stop_recording(self):
        return _Stopped(self)

    def reset(self):
        self._open()
        self._reset()
        self._customs = []

    def watched_variables(self):
        return tuple(self._seen if self._state in ("used", "new") else self._watched())

    def _open(self):
        if self._state == "used":
            raise RuntimeError("A non-persistent GradientTape can only be used to compute one set of gradients (or"
                               " jacobians)")
        if self._state == "new":
            raise RuntimeError("The tape has not been entered yet.")

    def _use_up(self):
        if not self._persistent:
            self._seen = self._watched()
            self._release()
            self._customs = []
            self._state = "used"

    # --- derivatives ------------------------------------------------------------------------------
    def link(self, value):
        """The value anew, through a custom call that hands gradients on: one that gradient() can stop at."""
        after = tf.stop_gradient(value)
        self._watch(after)
        self._customs.append(_Custom([value], [after], [], lambda dy: ([dy], [])))
        return self._customs[-1]

    def _derive(self, targets, seeds, sources, stopped=()):
        """Flat lists; None where a source is not reached. Each custom call is passed once, the last first; none that is stopped at."""
        if not self._customs:
            return self._gradient(targets, seeds, sources)
        total = [None] * len(sources)
        cut = [t for custom in self._customs for t in custom.outputs]
        owed = [None] * len(cut)

        def spread(targets, seeds):
            for i, g in enumerate(self._gradient(targets, seeds, sources + cut)):
                if g is not None:
                    into, k = (total, i) if i < len(sources) else (owed, i - len(sources))
                    into[k] = g if into[k] is None else into[k] + g

        spread(targets, seeds)
        end = len(cut)
        for custom in reversed(self._customs):
            begin = end - len(custom.outputs)
            dy = owed[begin:end]
            end = begin
            if all(g is None for g in dy) or any(custom is s for s in stopped):
                continue
            dy = [tf.zeros_like(y) if g is None else g for g, y in zip(dy, custom.outputs)]
            dx, dv = custom.gradient(*dy)
            for variable, g in zip(custom.variables, dv):
                for i in [i for i, s in enumerate(sources) if s is variable and g is not None]:
                    total[i] = g if total[i] is None else total[i] + g
            pairs = [(x, g) for x, g in zip(custom.inputs, dx) if g is not None]
            if pairs:
                spread([x for x, _ in pairs], [g for _, g in pairs])
        return total

    def _derive_with_variables(self, targets, seeds, sources, stopped):
        """A variable that is a target itself has ones by itself."""
        pairs = list(zip(targets, seeds))
        own = [(t, s) for t, s in pairs if isinstance(t, _C.Variable)]
        rest = [(t, s) for t, s in pairs if not isinstance(t, _C.Variable)]
        grads = [None] * len(sources)
        if rest or not own:
            grads = self._derive([t for t, _ in rest], [s for _, s in rest], sources, stopped)
        for t, seed in own:
            for i in [i for i, source in enumerate(sources) if source is t]:
                g = tf.ones_like(t) if seed is None else tf.convert_to_tensor(seed)
                grads[i] = g if grads[i] is None else grads[i] + g
        return grads

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients=UnconnectedGradients.NONE, *, _stopped=()):
        self._open()
        zero = mode_of(unconnected_gradients) == UnconnectedGradients.ZERO
        was_recording = self._state == "recording"
        if was_recording and not self._persistent:
            self._stop()
            self._state = "stopped"
            ACTIVE.remove(self)
        flat_sources = [getattr(s, "_snug_variable", s) for s in _nest.flatten(sources)]
        targets, seeds = _targets(target, output_gradients)
        try:
            grads = self._derive_with_variables(targets, seeds, flat_sources, _stopped)
        finally:
            self._use_up()
        grads = [_as_slices(self, g) if isinstance(s, _C.Variable) else g for g, s in zip(grads, flat_sources)]
        if self._traced:
            from snug import _branches
            grads = _branches.connect(grads, flat_sources)
        if zero:
            grads = [tf.zeros_like(s) if g is None else g for g, s in zip(grads, flat_sources)]
        return _nest.pack_sequence_as(sources, grads) if _nest.is_nested(sources) else grads[0]

    def jacobian(self, target, sources, unconnected_gradients=UnconnectedGradients.NONE, parallel_iterations=None,
                 experimental_use_pfor=True):
        """One gradient per element of the target, stacked."""
        zero = mode_of(unconnected_gradients) == UnconnectedGradients.ZERO
        self._open()
        flat_sources = [getattr(s, "_snug_variable", s) for s in _nest.flatten(sources)]
        n = target.shape.num_elements()
        rows = [self._derive([target], [_one_of(target, i)], flat_sources) for i in range(n)]
        made = []
        for k, source in enumerate(flat_sources):
            parts = [row[k] for row in rows]
            if parts[0] is None:
                made.append(tf.zeros(tuple(target.shape) + tuple(source.shape), source.dtype) if zero else None)
            else:
                made.append(tf.reshape(tf.stack(parts), tuple(target.shape) + tuple(source.shape)))
        self._use_up()
        return _nest.pack_sequence_as(sources, made) if _nest.is_nested(sources) else made[0]

    def batch_jacobian(self, target, source, unconnected_gradients=UnconnectedGradients.NONE, parallel_iterations=None,
                       experimental_use_pfor=True):
        """Row i of the target by row i of the source: one gradient per element of a row."""
        zero = mode_of(unconnected_gradients) == UnconnectedGradients.ZERO
        self._open()
        batch, rest = target.shape[0], tuple(target.shape[1:])
        n = target.shape.num_elements() // max(batch, 1)
        flat = tf.reshape(tf.eye(n, dtype=target.dtype), (n,) + rest)
        parts = []
        for i in range(n):
            seed = tf.broadcast_to(flat[i], target.shape)
            parts.append(self._derive([target], [seed], [source])[0])
        self._use_up()
        if parts[0] is None:
            return tf.zeros((batch,) + rest + tuple(source.shape[1:]), source.dtype) if zero else None
        order = [1, 0] + list(range(2, 1 + len(source.shape)))
        return tf.reshape(tf.transpose(tf.stack(parts), order), (batch,) + rest + tuple(source.shape[1:]))


def _as_slices(tape, gradient):
    """What a variable gets from lookups alone stays rows, as in TensorFlow."""
    parts = tape._slices(gradient) if gradient is not None and len(gradient.shape) > 0 else None
    if not parts:
        return gradient
    from snug._variable import slices_of
    return slices_of(gradient, parts)


def _one_of(target, i):
    n = target.shape.num_elements()
    return tf.reshape(tf.one_hot(i, n, dtype=target.dtype), target.shape)


def _targets(target, output_gradients):
    """Flat lists; targets that are not floats have no gradient."""
    flat = _nest.flatten(target)
    seeds = _nest.flatten(output_gradients) if output_gradients is not None else [None] * len(flat)
    pairs = [(getattr(t, "_snug_variable", t), s) for t, s in zip(flat, seeds) if t is not None]
    for t, _ in pairs:
        if not _C.is_tensor(t):
            raise TypeError(f"the target must be a tensor, not {type(t)}")
    pairs = [(t, s) for t, s in pairs if t.dtype.is_floating]
    return [t for t, _ in pairs], [s for _, s in pairs]


class _Stopped:
    def __init__(self, tape):
        self.tape = tape

    def __enter__(self):
        if self.tape._state != "recording":
            raise ValueError("Tape is not recording.")
        self.tape._stop()
        ACTIVE.remove(self.tape)

    def __exit__(self, *exception):
        self.tape._resume()
        ACTIVE.append(self.tape)


# --- gradients of one's own ---------------------------------------------------------------------------
def custom_gradient(f=None):
    """f(*args) gives (result, function of the result's gradients that gives those of args)."""
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def decorated(*args, **kwargs):
        from snug import _function
        if _C.is_tracing() and not any(t._traced for t in ACTIVE):
            _function.has_own_gradient()
        if not ACTIVE:
            return f(*args, **kwargs)[0]
        return _with_own(f, args, kwargs)
    return decorated


def _with_own(f, args, kwargs):
    tensors = [x for x in _nest.flatten(list(args)) if isinstance(x, (_C.Tensor, _C.Variable))]
    inputs = [tf.identity(x) for x in tensors]      # what variables hold now
    given = iter(tensors)
    packed = _nest.map_structure(lambda x: next(given) if isinstance(x, (_C.Tensor, _C.Variable)) else x, list(args))
    tapes = list(ACTIVE)
    for tape in tapes:
        tape._stop()
    watching = GradientTape(persistent=True)
    watching._start(True, True)
    watching._state, watching._traced = "recording", _C.is_tracing()
    ACTIVE[:] = [watching]
    try:
        result, gradient = f(*packed, **kwargs)
        used = _variables_of(gradient, watching, tensors)
        outputs = [tf.stop_gradient(tf.convert_to_tensor(y)) for y in _nest.flatten(result)]   # also where it is an argument
    finally:
        watching._release()
        ACTIVE[:] = tapes
        for tape in tapes:
            tape._resume()
    custom = _Custom(inputs, outputs, used, _of_arguments_and_variables(gradient, used))
    for tape in tapes:
        for y in outputs:
            if y.dtype.is_floating:
                tape._watch(y)
        tape._customs.append(custom)
    return _nest.pack_sequence_as(result, outputs) if _nest.is_nested(result) else outputs[0]


def _variables_of(gradient, tape, given):
    """The variables that the function has read and was not given: its gradient has an argument for them."""
    import inspect
    parameters = inspect.signature(gradient).parameters
    asks = "variables" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    used = [v for v in tape._watched() if not any(v is x for x in given)]
    if used and not asks:
        raise TypeError("If using @custom_gradient with a function that uses variables, then grad_fn must accept a 'variables' keyword"
                        " argument.")
    return used


def _of_arguments_and_variables(gradient, variables):
    def call(*dy):
        if not variables:
            return _nest.flatten(gradient(*dy)), []
        dx, dv = gradient(*dy, variables=variables)
        return _nest.flatten(dx), list(dv)
    return call


def recompute_grad(f):
    """f itself: what is kept and what is computed again is the planner's business."""
    return f


def gradients(ys, xs, grad_ys=None, name="gradients", gate_gradients=False, aggregation_method=None, stop_gradients=None,
              unconnected_gradients=UnconnectedGradients.NONE):
    """tf.gradients within a tf.function: the trace is recorded on a tape of its own."""
    from snug import _function
    if stop_gradients is not None and graph() is None:
        raise NotImplementedError("tf.gradients(stop_gradients=...) is not in Snug; put tf.stop_gradient around those tensors where they are used")
    if graph() is not None:
        return graph().gradients(ys, xs, grad_ys, name, stop_gradients=stop_gradients, unconnected_gradients=unconnected_gradients)
    found = _function.gradients(ys, xs, grad_ys)
    if mode_of(unconnected_gradients) == UnconnectedGradients.ZERO:
        found = [tf.zeros_like(x) if g is None else g for g, x in zip(found, xs if isinstance(xs, (list, tuple)) else [xs])]
    return found


def no_gradient():
    return _Paused()


class _Paused:
    """All tapes stop within it."""

    def __enter__(self):
        self.tapes = list(ACTIVE)
        for tape in self.tapes:
            tape._stop()

    def __exit__(self, *exception):
        for tape in self.tapes:
            tape._resume()


class ForwardAccumulator:
    """Derivatives along directions, while the program goes forward: tangents are the gradient, by u, of the gradient that u pulls back."""

    def __init__(self, primals, tangents):
        from snug import _nest
        self._primals, self._tangents = _nest.flatten(primals), [_C.convert_to_tensor(t) for t in _nest.flatten(tangents)]
        self._tape = GradientTape(persistent=True)

    def __enter__(self):
        self._tape.__enter__()
        for p in self._primals:
            self._tape.watch(p)
        return self

    def __exit__(self, *exception):
        self._tape.__exit__(*exception)

    def _along(self, target, unconnected):
        from snug._lazy import tf
        u = tf.ones_like(target)
        with GradientTape() as outer:
            outer.watch(u)
            pulled = self._tape.gradient(target, self._primals, output_gradients=u)
        pairs = [(g, t) for g, t in zip(pulled, self._tangents) if g is not None]
        if not pairs:
            return tf.zeros_like(target) if mode_of(unconnected) == UnconnectedGradients.ZERO else None
        return outer.gradient([g for g, _ in pairs], u, output_gradients=[t for _, t in pairs])

    def jvp(self, primals, unconnected_gradients=None):
        from snug import _nest
        mode = UnconnectedGradients.NONE if unconnected_gradients is None else unconnected_gradients
        if _nest.is_nested(primals):
            return _nest.map_structure(lambda t: self._along(t, mode), primals)
        return self._along(primals, mode)
