"""Datasets in folders, Dataset.save and load: elements in a file of the engine's (as cache(file) writes it), and dataset.json, which names that file
and says how many there are, their types, shapes and structure. The elements' file is whole before dataset.json names it, so a folder holds the
dataset of before or the new one."""
import os
import re
import secrets

from snug import _structure
from snug._files import named, publish, read_json
from snug._lazy import tf
from snug._types import as_dtype

_NOTES, _ELEMENTS = "dataset.json", re.compile(r"elements-[0-9a-f]{16}\Z")
_DEEPEST = 32


# --- structures, as JSON holds them -----------------------------------------------------------------------
def _written(shape):
    if shape is None or shape is _structure.LEAF:
        return None if shape is None else "part"
    if isinstance(shape, tuple):
        return {"tuple": [_written(s) for s in shape]}
    return {"dict": [[key, _written(shape[key])] for key in sorted(shape)]}


def _read(value, depth=0):
    if value is None or value == "part":
        return None if value is None else _structure.LEAF
    if isinstance(value, dict) and len(value) == 1 and depth < _DEEPEST:
        (kind, parts), = value.items()
        if kind == "tuple" and isinstance(parts, list):
            return tuple(_read(v, depth + 1) for v in parts)
        if kind == "dict" and isinstance(parts, list) and all(isinstance(p, list) and len(p) == 2 and isinstance(p[0], (str, int)) for p in parts):
            return {key: _read(v, depth + 1) for key, v in parts}
    raise ValueError("its structure is none of tuples and dicts")


def _spec_of(rows):
    """[(dtype, dims)] of what the notes list; dims None: of any rank."""
    if not isinstance(rows, list):
        raise ValueError("it lists no types")
    spec = []
    for row in rows:
        good = isinstance(row, list) and len(row) == 2 and isinstance(row[0], str)
        if not good or not (row[1] is None or isinstance(row[1], list) and all(d is None or type(d) is int and 0 <= d < 1 << 62 for d in row[1])):
            raise ValueError(f"{row!r:.80} is no type")
        spec.append((as_dtype(row[0]), None if row[1] is None else tuple(row[1])))
    return spec


# --- folders ----------------------------------------------------------------------------------------------
def save(dataset, folder):
    os.makedirs(folder, exist_ok=True)
    name = f"elements-{secrets.token_hex(8)}"
    path = os.path.join(folder, name)
    try:
        count = sum(1 for _ in dataset.cache(path)._raw())
        spec = [[kind.name, None if dims is None else list(dims)] for kind, dims in dataset._d.spec()]
        notes = {"format": 1, "elements": name, "count": count, "spec": spec, "structure": _written(dataset._shape)}
        publish(folder, _NOTES, notes, "elements", _ELEMENTS)
    except BaseException:
        if os.path.exists(path) and not _is_named(folder, name):
            os.remove(path)
        raise


def _is_named(folder, name):
    try:
        return _notes(folder)["elements"] == name
    except tf.errors.OpError:
        return False


def _notes(folder):
    """What dataset.json says, checked."""
    path = os.path.join(folder, _NOTES)
    if not os.path.exists(path):
        older = " (it was saved by an older Snug, as a pickle, which is not read: save it again)" if os.path.exists(
            os.path.join(folder, "elements.pickle")) else ""
        raise tf.errors.NotFoundError(None, None, f"Could not find saved dataset at {folder}{older}")
    try:
        notes = read_json(path, dict)
        if notes.get("format") != 1 or not isinstance(notes.get("elements"), str) or not _ELEMENTS.match(notes["elements"]):
            raise ValueError("it names no file of elements")
        if type(notes.get("count")) is not int or notes["count"] < 0:
            raise ValueError("it does not say how many elements there are")
        notes["spec"], notes["structure"] = _spec_of(notes.get("spec")), _read(notes.get("structure"))
        if len(_structure.flatten(notes["structure"])) != len(notes["spec"]):
            raise ValueError(f"{len(notes['spec'])} types do not fit its structure")
        return notes
    except (ValueError, TypeError) as error:
        raise tf.errors.DataLossError(None, None, f"'{path}' is damaged: {error}") from None


def load(folder):
    from snug import data

    def found():
        notes = _notes(folder)
        path = os.path.join(folder, notes["elements"])
        if not os.path.exists(path):
            next(missing(notes))
        return notes, path

    def missing(notes):
        raise tf.errors.NotFoundError(None, None, f"Could not find saved dataset at {folder}: its elements '{notes['elements']}' are not there")
        yield

    notes, path = named(found, tf.errors.NotFoundError)
    made = data._generated(lambda: missing(notes), notes["structure"], notes["spec"], "_LoadDataset", notes["count"], flat=True)
    return data.Dataset(lambda d, ignore: d.cache(path), (made,), notes["structure"], "_LoadDataset")
