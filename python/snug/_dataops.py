"""Functions of the data table (files, texts, pictures) as Python functions: on values they work at once, on Slots they are
written down."""
from snug import _C, _capture
from snug._given import takes
from snug._types import Peek, as_dtype

_made = {}


def _rows():
    if "rows" not in _made:
        _made["rows"] = {word: (names.split()[0], signature, about)
                         for names, signature, about in _C.data_functions() for word in names.split()}
    return _made["rows"]


def names():
    return _rows().keys()


def function(name):
    """The function of this name; None where there is none."""
    if name not in _made:
        row = _rows().get(name)
        _made[name] = None if row is None else _make(name, *row)
    return _made[name]


def _parameters(signature):
    """[(name, kind, required)]"""
    found = []
    for word in signature.split():
        name, rest = word.split(":", 1)
        found.append((name, rest[0], len(rest) == 1))
    return found


def _arguments(signature):
    """The same as Python writes it."""
    words = []
    for word in signature.split():
        name, rest = word.split(":", 1)
        default = rest[2:]
        plain = default in ("None", "True", "False") or default[:1].isdigit() or default[:1] in ("-", "[", "(")
        words.append(name if len(rest) == 1 else f"{name}={default if plain else repr(default)}")
    return ", ".join(words)


def _ints(value):
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0):
        return "[" + ",".join(str(int(v)) for v in value) + "]"
    return str(int(value))


def _attribute(kind, value):
    """The value as the table reads it."""
    if isinstance(value, _capture.Slot):
        raise Peek
    if kind == "I":
        return _ints(value).encode()
    if kind == "N":
        return repr(float(value)).encode()
    if kind == "B":
        return b"True" if value else b"False"
    if kind == "D":
        return as_dtype(value).name.encode()
    value = value.numpy() if hasattr(value, "numpy") else value
    return value if isinstance(value, bytes) else str(value).encode()


def run(name, attributes, inputs):
    """[results] of a row: written down where a Slot is among the inputs."""
    slot = next((x for x in inputs if isinstance(x, _capture.Slot)), None)
    if slot is not None:
        return slot._capture.data(name, attributes, inputs)
    rows = next((x for x in inputs if hasattr(x, "with_flat_values")), None)
    if rows is not None:
        made = _C.data_call(name, attributes, [x.flat_values if hasattr(x, "with_flat_values") else x for x in inputs])
        return [rows.with_flat_values(t) for t in made]
    return _C.data_call(name, attributes, list(inputs))


def _make(word, name, signature, about):
    parameters = _parameters(signature)
    order = [p[0] for p in parameters]
    known = {p[0]: p[1] for p in parameters}
    called = word.rsplit(".", 1)[-1]

    def call(*args, **kwargs):
        if len(args) > len(order):
            raise TypeError(f"{called}() takes {len(order)} arguments but {len(args)} were given")
        given = dict(zip(order, args))
        for key, value in kwargs.items():
            if key not in known or key in given:
                raise TypeError(f"{called}() got an unexpected keyword argument '{key}'" if key not in known else
                                f"{called}() got multiple values for argument '{key}'")
            given[key] = value
        inputs, attributes = [], {}
        for key, kind, required in parameters:
            value = given.get(key)
            if required and value is None:
                raise TypeError(f"{called}() missing required argument: '{key}'")
            if kind == "X":
                inputs.append(value)
            elif kind == "V":
                inputs.extend(value)
            elif value is not None and key != "name":
                attributes[key] = _attribute(kind, value)
        made = run(name, attributes, inputs)
        return made[0] if len(made) == 1 else made or None
    call.__name__ = call.__qualname__ = called
    call.__doc__, call.__wrapped__ = about + ".", takes(_arguments(signature))
    return call
