"""keras.tree: structures of lists, tuples and dicts."""
from snug._nest import assert_same_structure, flatten, is_nested, map_structure, pack_sequence_as  # noqa: F401


def lists_to_tuples(structure):
    if isinstance(structure, (list, tuple)) and not hasattr(structure, "_fields"):
        return tuple(lists_to_tuples(s) for s in structure)
    return {k: lists_to_tuples(v) for k, v in structure.items()} if isinstance(structure, dict) else structure


def flatten_with_path(structure, path=()):
    if not is_nested(structure):
        return [(path, structure)]
    items = [(k, structure[k]) for k in sorted(structure)] if isinstance(structure, dict) else enumerate(structure)
    return [row for key, part in items for row in flatten_with_path(part, path + (key,))]


def traverse(func, structure, top_down=True):
    """func on each part; None: go on inside. top_down False: the inner ones first."""
    if top_down:
        found = func(structure)
        if found is not None:
            return found
    if isinstance(structure, dict):
        structure = {k: traverse(func, v, top_down) for k, v in structure.items()}
    elif is_nested(structure):
        parts = [traverse(func, v, top_down) for v in structure]
        structure = type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)
    found = None if top_down else func(structure)
    return structure if found is None else found
