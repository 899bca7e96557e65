"""model.summary(), as Keras prints it."""



def _shape(layer):
    """Of the first symbolic call, or what follows from the shape that it was built for."""
    try:
        built = layer.__dict__.get("_build_shape")
        shapes = layer.output_shape if layer._nodes else layer.compute_output_shape(tuple(built)) if built is not None else None
    except Exception:      # a layer that cannot tell: whatever its call raises
        shapes = None
    if shapes is None:
        return "?"
    if isinstance(shapes, (list, dict)):
        several = ", ".join(str(tuple(s)) for s in (_lists(shapes)))
        return f"[{several}]" if isinstance(shapes, list) else several
    return str(tuple(shapes))


def _lists(shapes):
    values = shapes.values() if isinstance(shapes, dict) else shapes
    return [tuple(s) for s in values]


def _bytes(variables, more=0):
    size = sum(_count([v]) * v.dtype.size for v in variables) + more
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


def _connected(model, layer):
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
    lines, line = [], ""
    for word in text.split(" "):
        both = f"{line} {word}" if line else word
        if len(both) <= width:
            line = both
            continue
        if line:
            lines.append(line)
        line = word if len(word) <= width else word[:width - 1] + "…"
    return lines + [line]


def show(model, line_length, out, expand_nested, show_trainable):
    from snug.keras._models import Functional, Sequential
    graph = model if isinstance(model, Functional) else None
    chain = graph is None or all(len(n.inputs) <= 1 for n in graph._graph) and len(graph.inputs) == 1
    widths = [31, 22, 13] if chain else [19, 17, 10, 17]
    if line_length:
        widths = [max(4, w * line_length // 76) for w in widths]
    heads = ["Layer (type)", "Output Shape", "Param #"] + ([] if chain else ["Connected to"])
    rows = []
    layers = model.layers
    for layer in layers:
        name = f"{layer.name} ({type(layer).__name__})"
        params = f"{_count(layer.weights):,}" if layer.built or not layer.weights else "?"
        if not layer.built and not layer._nodes:
            params = "0 (unbuilt)" if not layer.weights else params
        rows.append([name, _shape(layer), params] + ([] if chain else [_connected(model, layer)]))
    _table(model, heads, rows, widths, out)
    optimizer = getattr(model, "optimizer", None)
    slots = list(optimizer._c.slots()) if optimizer is not None and optimizer._c is not None else None
    kinds = [("Total", model.weights + (slots or []), slots is not None), ("Trainable", model.trainable_weights, False),
             ("Non-trainable", model.non_trainable_weights, False)] + ([("Optimizer", slots, True)] if slots is not None else [])
    for kind, variables, steps in kinds:           # an optimizer counts its steps in eight bytes and has a rate of four
        out(f" {kind} params: {_count(variables) + 2 * steps:,} ({_bytes(variables, 12 * steps)})")


def _table(model, heads, rows, widths, out):
    right = [h == "Param #" for h in heads]

    def line(left, fill, middle, end):
        return left + middle.join(fill * (w + 2) for w in widths) + end

    def cells(values, bar):
        pieces = [_wrap(v, w) for v, w in zip(values, widths)]
        for i in range(max(len(p) for p in pieces)):
            parts = []
            for p, w, r in zip(pieces, widths, right):
                text = p[i] if i < len(p) else ""
                parts.append(f" {text:>{w}} " if r else f" {text:<{w}} ")
            out(bar + bar.join(parts) + bar)
    out(f'Model: "{model.name}"')
    out(line("┏", "━", "┳", "┓"))
    cells(heads, "┃")
    out(line("┡", "━", "╇", "┩"))
    for k, row in enumerate(rows):
        cells(row, "│")
        out(line("├", "─", "┼", "┤") if k + 1 < len(rows) else line("└", "─", "┴", "┘"))



