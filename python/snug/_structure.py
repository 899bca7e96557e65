"""Structures of elements: tuples, named tuples, dicts (by sorted keys) and sparse tensors; lists are values. A template is
a structure with LEAF in the place of each part."""
from collections.abc import Mapping

LEAF = object()


def _is_tuple(value):
    return isinstance(value, tuple)


def template(value):
    """The template of a structure of values."""
    if isinstance(value, Mapping):
        made = {key: template(value[key]) for key in value}
        return made if type(value) is dict else _like(value, made)
    if _is_tuple(value):
        return _like(value, [template(v) for v in value])
    return None if value is None else LEAF


def _like(value, parts):
    if isinstance(value, Mapping):
        try:
            return type(value)(parts)
        except TypeError:
            return dict(parts)
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def flatten(value):
    """The parts of a structure, in order."""
    if isinstance(value, Mapping):
        return [part for key in sorted(value) for part in flatten(value[key])]
    if _is_tuple(value):
        return [part for v in value for part in flatten(v)]
    return [] if value is None else [value]


def flatten_to(shape, value, what="element"):
    """The parts of a value that has this template; what stands at a leaf is not looked into."""
    if shape is LEAF:
        return [value]
    if shape is None:
        return []
    if isinstance(shape, Mapping):
        if not isinstance(value, Mapping) or set(value) != set(shape):
            raise TypeError(f"`{what}` did not match the expected structure {describe(shape)}: {value!r}")
        return [part for key in sorted(shape) for part in flatten_to(shape[key], value[key], what)]
    if not isinstance(value, (tuple, list)) or len(value) != len(shape):
        raise TypeError(f"`{what}` did not match the expected structure {describe(shape)}: {value!r}")
    return [part for s, v in zip(shape, value) for part in flatten_to(s, v, what)]


def describe(shape):
    return repr(pack(shape, ["*"] * len(flatten(shape))))


def pack(shape, parts):
    """The structure of a template with these parts."""
    return _take(shape, iter(parts))


def _take(shape, parts):
    if shape is LEAF:
        return next(parts)
    if shape is None:
        return None
    if isinstance(shape, Mapping):
        made = {key: _take(shape[key], parts) for key in sorted(shape)}
        ordered = {key: made[key] for key in shape}
        return ordered if type(shape) is dict else _like(shape, ordered)
    return _like(shape, [_take(s, parts) for s in shape])


def kind(shape):
    """How the extension packs it: 0 one value, 1 a flat tuple, 2 by pack."""
    if shape is LEAF:
        return 0
    return 1 if type(shape) is tuple and shape and all(s is LEAF for s in shape) else 2
