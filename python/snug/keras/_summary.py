"""model.summary(), as Keras prints it."""
import math
import re
import shutil

from snug._types import as_dtype
from snug.keras._layer import Layer
from snug.keras._symbolic import Operation


def _shape(layer):
    """Of the first symbolic call, or what follows from the shape that it was built for."""
    try:
        built = layer.__dict__.get("_build_shape")
        if layer._nodes or hasattr(type(layer), "output_names"):
            shapes = layer.output_shape
            shapes = list(shapes) if shapes and isinstance(shapes[0], tuple) else shapes
        else:
            tells = type(layer).compute_output_shape is not Layer.compute_output_shape
            shapes = layer.compute_output_shape(tuple(built)) if tells and built is not None else None
    except Exception:      # a layer that cannot tell: whatever its call raises
        shapes = None
    if shapes is None:
        return "?"
    if isinstance(shapes, (list, dict)) or shapes and isinstance(shapes[0], tuple):
        several = ", ".join(_one(s) for s in _lists(shapes))
        return f"[{several}]" if isinstance(shapes, list) else f"({several})" if isinstance(shapes, tuple) else several
    return _one(shapes)


def _one(shape):
    return f"({', '.join(str(d) for d in shape)})"


def _lists(shapes):
    values = shapes.values() if isinstance(shapes, dict) else shapes
    return [tuple(s) for s in values]


def _bytes(variables, more=0):
    size = sum(_count([v]) * as_dtype(v.dtype).size for v in variables) + more
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size < 1024 or unit == "TB":
            return f"{size:.2f} {unit}"
        size /= 1024


def _count(variables):
    total = 0
    for v in variables:
        n = 1
        for d in v.shape:
            n *= d
        total += n
    return total


def _connected(layer):
    names = []
    for node in layer._nodes:
        for t in node.inputs:
            if t._keras_history:
                made, i = t._keras_history
                which = next((k for k, n in enumerate(getattr(made.operation, "_nodes", [])) if n is made), 0)
                names.append(f"{made.operation.name}[{which}][{i}]")
    return ", ".join(names) or "-"


def _wrap(text, width):
    """Lines of whole words; a word that is too long ends in an ellipsis."""
    front = len(text) - len(text.lstrip(" "))
    first, *words = text[front:].split(" ")
    lines, line = [], ""
    for word in [" " * front + first] + words:
        both = f"{line} {word}" if line else word
        if len(both) <= width:
            line = both
            continue
        if line:
            lines.append(line)
        line = word if len(word) <= width else word[:width - 1] + "…"
    return lines + [line]


def _widths(positions, n, length):
    """Of n columns whose ends are at these parts of the length; too wide they are cut alike, too narrow spread by what they have."""
    ends = [int(p * length) for p in positions]
    widths = [end - start for start, end in zip([0] + ends, ends)]
    if min(widths) < 4:
        raise ValueError("Insufficient console width to print summary.")
    widths = [w + 2 for w in widths[:n]]
    room, parts = length - n - 1, []
    rest, total = room - sum(widths), sum(widths)
    for k, w in enumerate(widths):
        more = round(rest / (n - k)) if rest < 0 else math.ceil(w * rest / total)
        parts.append(w + more - 2)
        rest, total = rest - more, total - w
    return parts


def _rows_of(model, layer, chain, expand_nested, show_trainable, level=0):
    front = "   " * level + "└ " if level else ""
    params = f"{_count(layer.weights):,}" if layer.built or not layer.weights else "?"
    if not layer.seems_built and not layer._nodes:
        params = "0 (unbuilt)" if not layer.weights else params
    kind = layer.class_name if isinstance(layer, Operation) else type(layer).__name__
    row = [f"{front}{layer.name} ({kind})", _shape(layer), params]
    row += [] if chain else [_connected(layer)]
    row += ["-" if not layer.weights else "Y" if layer.trainable else "N"] if show_trainable else []
    rows = [row]
    for inner in getattr(layer, "layers", ()) if expand_nested else ():
        rows += _rows_of(model, inner, chain, expand_nested, show_trainable, level + 1)
    return rows


def _range(layers, names):
    """Layers from the first that matches the first name to the last that matches the second."""
    if names is None:
        return layers
    first = [i for i, layer in enumerate(layers) if re.match(names[0], layer.name)]
    last = [i for i, layer in enumerate(layers) if re.match(names[1], layer.name)]
    if not first or not last:
        raise ValueError(f"Passed layer_range does not match any model layer. Received: layer_range={names}.")
    return layers[min(first[0], last[0]):max(first[-1], last[-1]) + 1]


def show(model, line_length, positions, out, expand_nested, show_trainable, layer_range):
    from snug.keras._models import Functional
    graph = model if isinstance(model, Functional) else None
    chain = graph is None or all(len(n.inputs) <= 1 for n in graph._graph) and len(graph.inputs) == 1
    heads = ["Layer (type)", "Output Shape", "Param #"] + ([] if chain else ["Connected to"])
    positions = positions or ([0.45, 0.80, 1.0] if chain else [0.3, 0.56, 0.74, 1.0])
    if show_trainable:
        heads.append("Trainable")
        positions = [p * 0.90 for p in positions] + [1.0]
    columns = shutil.get_terminal_size().columns
    length = line_length or min((88 if chain else 108) + 12 * show_trainable, columns - 4)
    rows = []
    for layer in _range(list(graph._operations) if graph is not None else model.layers, layer_range):
        rows += _rows_of(model, layer, chain, expand_nested, show_trainable)
    _table(model, heads, rows, _widths(positions, len(heads), length), lambda line: out(line[:max(columns, 80)]))
    optimizer = getattr(model, "optimizer", None)
    slots = optimizer._slots() if optimizer is not None and optimizer.built else None
    kinds = [("Total", model.weights + (slots or []), slots is not None), ("Trainable", model.trainable_weights, False),
             ("Non-trainable", model.non_trainable_weights, False)] + ([("Optimizer", slots, True)] if slots is not None else [])
    for kind, variables, steps in kinds:           # an optimizer counts its steps in eight bytes and has a rate of four
        out(f" {kind} params: {_count(variables) + 2 * steps:,} ({_bytes(variables, 12 * steps)})")


def _table(model, heads, rows, widths, out):
    sides = [">" if h == "Param #" else "^" if h == "Trainable" else "<" for h in heads]

    def line(left, fill, middle, end):
        return left + middle.join(fill * (w + 2) for w in widths) + end

    def cells(values, bar):
        pieces = [_wrap(v, w) for v, w in zip(values, widths)]
        for i in range(max(len(p) for p in pieces)):
            parts = []
            for p, w, r in zip(pieces, widths, sides):
                text = p[i] if i < len(p) else ""
                parts.append(f" {text:{r}{w}} ")
            out(bar + bar.join(parts) + bar)
    out(f'Model: "{model.name}"')
    out(line("┏", "━", "┳", "┓"))
    cells(heads, "┃")
    out(line("┡", "━", "╇", "┩"))
    for k, row in enumerate(rows):
        cells(row, "│")
        out(line("├", "─", "┼", "┤") if k + 1 < len(rows) else line("└", "─", "┴", "┘"))



