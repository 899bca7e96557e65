"""Functions of the user's that pipelines repeat without Python: called once with Slots, which stand for parts of an element.
Functions of the tables that get a Slot are written down in a Program; whatever looks at a value raises Peek, and the pipeline
calls Python for each element instead."""
from snug import _C, _nest
from snug._lazy import tf
from snug._symbolic import Symbolic
from snug._types import BY_NAME, Peek, TensorShape

_STRING = BY_NAME["string"]
_open = []                                  # captures that are being made, the innermost last


def active():
    return _open[-1] if _open else None


class Slot(Symbolic):
    """One part of an element, or what a function gave."""
    device, op, graph = "", None, None

    def __init__(self, capture, number):
        self._capture, self._slot = capture, number

    def _spec(self):
        return self._capture.program.slot(self._slot)[0]

    dtype = property(lambda self: self._spec()[0])
    shape = property(lambda self: TensorShape(self._spec()[1]))
    name = property(lambda self: f"args_{self._slot}:0")

    def __snug_function__(self, function, args, kwargs):
        return self._capture.call(function, args, kwargs)

    def set_shape(self, shape):
        self._capture.refine(self, shape)

    def ref(self):
        from snug._text import Reference
        return Reference(self)

    # --- operators that the base has not ---------------------------------------------------------
    def __add__(self, other):
        return _text_function("join")([self, other]) if self.dtype == _STRING else tf.add(self, other)

    def __radd__(self, other):
        return _text_function("join")([other, self]) if self.dtype == _STRING else tf.add(other, self)

    def __eq__(self, other):
        if other is None:
            return False
        return _text_function("equal")(self, other) if self.dtype == _STRING else tf.equal(self, other)

    def __ne__(self, other):
        if other is None:
            return True
        return tf.logical_not(self == other) if self.dtype == _STRING else tf.not_equal(self, other)

    __hash__ = object.__hash__

    def __xor__(self, other):
        return tf.math.logical_xor(self, other)

    def __rand__(self, other):
        return tf.logical_and(other, self)

    def __ror__(self, other):
        return tf.logical_or(other, self)

    def __getitem__(self, key):
        if self.dtype == _STRING:
            return _text_function("item")(self, _written(key))
        return _index(self, key)

    def __len__(self):
        shape = self.shape
        if shape.rank is None or shape.rank == 0 or shape[0] is None:
            raise Peek
        return shape[0]

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    # --- what looks at the value ------------------------------------------------------------------
    def _peek(self, *args, **kwargs):
        raise Peek

    __bool__ = __int__ = __float__ = __index__ = __array__ = numpy = __format__ = _peek
    __copy__ = lambda self: self
    __deepcopy__ = lambda self, memo: self

    def __repr__(self):
        return f'<tf.Tensor \'{self.name}\' shape={self.shape} dtype={self.dtype.name}>'

    def __str__(self):
        return f'Tensor("{self.name}", shape={self.shape}, dtype={self.dtype.name})'


_C.use_slots(Slot)


def _text_function(name):
    """A function on texts that only Slots need: snug._strings and index of StringTensors do it for values."""
    from snug import _dataops
    found = _dataops.function("snug.text_" + name) if name != "join" else tf.strings.join
    if found is None:
        raise Peek
    return found


def _written(key):
    """An index into texts as the table reads it."""
    def one(k):
        if isinstance(k, slice):
            return ":".join("" if v is None else str(int(v)) for v in (k.start, k.stop, 1 if k.step is None else k.step))
        if k is None or k is Ellipsis:
            raise Peek
        return str(int(k))
    return ",".join(one(k) for k in (key if isinstance(key, tuple) else (key,)))


def _index(x, key):
    """x[key] as tf.strided_slice."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, Slot) and k.dtype.is_bool for k in keys):
        return tf.boolean_mask(x, key)
    begin, end, strides = [], [], []
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    for i, k in enumerate(keys):
        first, last, step, bit = 0, 0, 1, 1 << i
        if k is None:
            masks["new_axis_mask"] |= bit
        elif k is Ellipsis:
            masks["ellipsis_mask"] |= bit
        elif isinstance(k, slice):
            step = 1 if k.step is None else k.step
            first, last = 0 if k.start is None else k.start, 0 if k.stop is None else k.stop
            masks["begin_mask"] |= bit if k.start is None else 0
            masks["end_mask"] |= bit if k.stop is None else 0
        else:
            first, last = k, k + 1
            masks["shrink_axis_mask"] |= bit
        begin.append(first), end.append(last), strides.append(step)
    return tf.strided_slice(x, begin, end, strides, **masks)


def _expanded(x, axis):
    """A text with one axis more: Python does that for each element."""
    dims = list(x.shape) if x.shape.rank is not None else None
    if dims is not None:
        dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, 1)
    return x._capture.blank(_STRING, None if dims is None else tuple(dims))


_OF_TEXT = {"expand_dims": lambda x, axis: _expanded(x, int(axis)),
            "equal": lambda x, y: _text_function("equal")(x, y),
            "not_equal": lambda x, y: tf.logical_not(_text_function("equal")(x, y))}


class Capture:
    """A program in the making."""

    def __init__(self, spec, seed):
        self.program = _C.Program(spec, seed)
        self.inputs = [Slot(self, i) for i in range(len(spec))]
        self.needs_python = False
        self.layers = {}                    # how often a layer was called, by its id

    def __snug_function__(self, function, args, kwargs):
        return self.call(function, args, kwargs)

    def call(self, function, args, kwargs):
        if not isinstance(function, type(_C.sync)):     # a function of Python's: it runs on Slots
            raise Peek
        text = _OF_TEXT.get(function.__name__)
        if text and any(getattr(x, "dtype", None) == _STRING for x in args):
            return text(*args[:2], **{k: v for k, v in kwargs.items() if k == "axis"})
        slots, several = self.program.call(function, tuple(args), dict(kwargs))
        made = [Slot(self, n) for n in slots]
        return made if several else made[0]

    def data(self, name, attributes, inputs):
        return [Slot(self, n) for n in self.program.data(name, attributes, [self.number(x) for x in inputs])]

    def layer(self, name, config, training, times, x):
        return Slot(self, self.program.layer(name, config, int(training), times, self.number(x)))

    def blank(self, dtype, dims=None):
        """What Python will give for each element: the program tells types only."""
        self.needs_python = True
        return Slot(self, self.program.blank([(dtype, dims)]))

    def number(self, value):
        """The slot of a value; what is no Slot becomes a constant."""
        if isinstance(value, Slot):
            if value._capture is not self:
                raise Peek
            return value._slot
        return self.program.constant(value)

    def refine(self, slot, shape):
        shape = TensorShape(shape)
        self.program.refine(slot._slot, [(slot.dtype, None if shape.rank is None else tuple(shape.as_list()))])

    def __enter__(self):
        _open.append(self)
        _C.capture(self)
        return self

    def __exit__(self, *exception):
        _open.pop()
        _C.capture(_open[-1] if _open else None)


def is_slot(*values):
    """Whether one of the values is a Slot, or holds one."""
    return any(isinstance(v, Slot) or (_nest.is_nested(v) and is_slot(*_nest.flatten(v))) for v in values)
