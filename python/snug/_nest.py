"""tf.nest: structures of lists, tuples, dicts and named tuples, taken apart and put together. Dicts go by sorted keys."""
from collections.abc import Mapping

from snug import _C
from snug._given import refuse


# Whether values of exactly this type are; asking an abstract class takes longer.
KNOWN = {list: True, tuple: True, dict: True, **dict.fromkeys((_C.Tensor, type(None), bool, int, float, str), False)}


def is_nested(structure):
    known = KNOWN.get(type(structure))
    return isinstance(structure, (list, tuple, Mapping)) if known is None else known


def _parts(structure):
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted(structure)]
    return structure


_DEEPEST = 64       # lists in lists; tensors have 8 axes


def leading(value):
    """The lists that begin with one another, from the outermost, and the first value in them, which may be an empty list."""
    lists = []
    while isinstance(value, (list, tuple)) and value:
        if len(lists) == _DEEPEST:
            raise ValueError(f"Can't convert a list to Tensor: it is nested more than {_DEEPEST} deep, or holds itself.")
        lists.append(value)
        value = value[0]
    return lists, value


def flatten(structure, expand_composites=False):
    if expand_composites:
        refuse("tf.nest.flatten", "expand_composites", expand_composites, False)
    if not is_nested(structure):
        return [structure]
    flat = []
    for part in _parts(structure):
        if is_nested(part):
            flat.extend(flatten(part))
        else:
            flat.append(part)
    return flat


def _rebuild(structure, parts):
    if isinstance(structure, Mapping):
        made = dict(zip(sorted(structure), parts))
        ordered = {key: made[key] for key in structure}
        kind = type(structure)
        if kind is dict:
            return ordered
        try:
            return kind(ordered)
        except TypeError:
            return ordered
    if hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return type(structure)(parts)


def _take(structure, flat):
    if not is_nested(structure):
        return next(flat)
    return _rebuild(structure, [_take(part, flat) for part in _parts(structure)])


def pack_sequence_as(structure, flat_sequence, expand_composites=False):
    if expand_composites:
        refuse("tf.nest.pack_sequence_as", "expand_composites", expand_composites, False)
    flat = list(flat_sequence) if is_nested(flat_sequence) else [flat_sequence]
    if not is_nested(structure):
        if len(flat) != 1:
            raise ValueError(f"The target structure is a single value, but flat_sequence has {len(flat)}")
        return flat[0]
    want = len(flatten(structure))
    if want != len(flat):
        raise ValueError(f"Could not pack sequence. Structure had {want} atoms, but flat_sequence had {len(flat)} items.")
    return _take(structure, iter(flat))


def map_structure(func, *structure, check_types=True, expand_composites=False):
    if not structure:
        raise ValueError("Must provide at least one structure")
    if expand_composites:
        refuse("tf.nest.map_structure", "expand_composites", expand_composites, False)
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    results = [func(*leaves) for leaves in zip(*(flatten(s) for s in structure))]
    return pack_sequence_as(structure[0], results)


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    if expand_composites:
        refuse("tf.nest.assert_same_structure", "expand_composites", expand_composites, False)
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError(f"The two structures don't have the same nested structure: {nest1!r} and {nest2!r}")
    if not is_nested(nest1):
        return
    if isinstance(nest1, Mapping) != isinstance(nest2, Mapping):
        raise TypeError("The two structures don't have the same sequence type.")
    if isinstance(nest1, Mapping) and set(nest1) != set(nest2):
        raise ValueError("The two dictionaries don't have the same set of keys.")
    if check_types and not isinstance(nest1, Mapping) and type(nest1) is not type(nest2):
        raise TypeError(f"The two structures don't have the same sequence type: {type(nest1)} and {type(nest2)}")
    if len(nest1) != len(nest2):
        raise ValueError("The two structures don't have the same number of elements.")
    for a, b in zip(_parts(nest1), _parts(nest2)):
        assert_same_structure(a, b, check_types)
