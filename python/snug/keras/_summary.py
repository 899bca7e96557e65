"""model.summary(), as Keras prints it."""



def _shape(layer):
    try:
        shapes = layer.output_shape if layer._nodes else None
    except (AttributeError, TypeError):
        shapes = None
    if shapes is None:
        return "?"
    if isinstance(shapes, (list, dict)):
        return ", ".join(str(tuple(s)) for s in (_lists(shapes)))
    return str(tuple(shapes))


def _lists(shapes):
    values = shapes.values() if isinstance(shapes, dict) else shapes
    return [tuple(s) for s in values]


def _bytes(n):
    size = 4 * n
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
                names.append(f"{t._keras_history[0].operation.name}[0][{t._keras_history[1]}]")
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
    trainable, frozen = _count(model.trainable_weights), _count(model.non_trainable_weights)
    extra = _count(model.optimizer._c.slots()) + 2 if getattr(model, "optimizer", None) is not None and model.optimizer._c is not None else 0
    total = trainable + frozen + extra
    out(f" Total params: {total:,} ({_bytes(total)})")
    out(f" Trainable params: {trainable:,} ({_bytes(trainable)})")
    out(f" Non-trainable params: {frozen:,} ({_bytes(frozen)})")
    if extra:
        out(f" Optimizer params: {extra:,} ({_bytes(extra)})")


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



