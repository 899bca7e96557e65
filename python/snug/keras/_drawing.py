"""keras.utils.model_to_dot and plot_model: a model as a graph of pydot's, where that is installed."""
import html
import os
import sys

from snug.keras._symbolic import Operation, _map


def _pydot():
    """The package, or one of its older forks; None: there is none."""
    import importlib
    for name in ("pydot", "pydot_ng", "pydotplus"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def _draws(pydot):
    """Whether Graphviz' programs are there, which make pictures of graphs."""
    try:
        pydot.Dot.create(pydot.Dot())
        return True
    except (OSError, pydot.PydotException):
        return False


def _check(word, model, kwargs):
    if kwargs.pop("layer_range", None) is not None:
        raise ValueError("Argument `layer_range` is no longer supported.")
    if kwargs:
        raise ValueError(f"keras.utils.{word}: unrecognized keyword arguments: {', '.join(kwargs)}")
    if not model.built:
        raise ValueError("This model has not yet been built. Build the model first by calling `build()` or by calling the model on a"
                         " batch of data.")


def _missing(word, what):
    return ImportError(f"You must install {what} for `{word}` to work. model.summary() prints the layers without it")


# --- boxes ------------------------------------------------------------------------------------------------------------------------
def _cell(text, style):
    return f'<td bgcolor="{style[0]}"><font point-size="14"{style[1]}>{text}</font></td>'


_PLAIN, _YES, _NO = ("white", ""), ("forestgreen", ' color="white"'), ("firebrick", ' color="white"')


def _of_tensors(layer, field, word):
    """The shape or dtype of what it gets or gives, as text; "?" where it was never called."""
    try:
        found = _map(lambda t: getattr(t, word), getattr(layer, field))
    except (ValueError, AttributeError):
        return "?"
    text = ", ".join(f"{k}: {v}" for k, v in found.items()) if isinstance(found, dict) else str(found)
    return "?" if found is None else html.escape(text.replace("{", "").replace("}", ""), quote=False)


def _activation_of(layer):
    activation = getattr(layer, "activation", None)
    return activation and str(getattr(activation, "name", None) or getattr(activation, "__name__", None) or activation)


def _label(layer, shows):
    """A table of Graphviz' HTML: name and class, activation, and a row of what else is shown."""
    kind = html.escape(layer.class_name if isinstance(layer, Operation) else type(layer).__name__)
    cells = []
    if shows["show_shapes"]:
        sides = ("output",) if kind == "InputLayer" else ("input", "output")
        cells += [_cell(f"{side.capitalize()} shape: <b>{_of_tensors(layer, side, 'shape')}</b>", _PLAIN) for side in sides]
    if shows["show_dtype"]:
        cells.append(_cell(f"Output dtype: <b>{_of_tensors(layer, 'output', 'dtype')}</b>", _PLAIN))
    if shows["show_trainable"] and layer.weights:
        cells.append(_cell("<b>Trainable</b>", _YES) if layer.trainable else _cell("<b>Non-trainable</b>", _NO))
    span = f'colspan="{max(len(cells), 1)}"'
    title = f"<b>{html.escape(layer.name)}</b> ({kind})" if shows["show_layer_names"] else f"<b>{kind}</b>"
    rows = [f'<td {span} bgcolor="black"><font point-size="16" color="white">{title}</font></td>']
    if shows["show_layer_activations"] and _activation_of(layer):
        rows.append(f'<td bgcolor="white" {span}><font point-size="14">Activation: <b>{html.escape(_activation_of(layer))}</b></font></td>')
    rows += ["".join(cells)] if cells else []
    return '<<table border="0" cellborder="1" bgcolor="black" cellpadding="10">' + "".join(f"<tr>{r}</tr>" for r in rows) + "</table>>"


# --- edges ------------------------------------------------------------------------------------------------------------------------
def _boxes(model):
    """What is drawn of a model; None: the model is one box."""
    from snug.keras._models import Functional, Sequential
    return model.layers if isinstance(model, Sequential) else model.operations if isinstance(model, Functional) else None


def _last(operation, i):
    """The box within nested models that gives output i."""
    from snug.keras._models import Functional
    while _boxes(operation):
        if isinstance(operation, Functional):
            node, i = operation.outputs[i]._keras_history
            operation = node.operation
        else:
            operation = operation.layers[-1]
    return operation


def _first(operation, i):
    """The box within nested models that gets input i."""
    from snug.keras._models import Functional
    while _boxes(operation):
        operation = operation.inputs[i]._keras_history[0].operation if isinstance(operation, Functional) else operation.layers[0]
    return operation


def _edges(model):
    """Pairs of an operation with the number of its output, and one with that of its input."""
    from snug.keras._models import Sequential
    if isinstance(model, Sequential):
        return [((a, 0), (b, 0)) for a, b in zip(model.layers, model.layers[1:])]
    made = [(t._keras_history, node, k) for node in model._graph for k, t in enumerate(node.inputs) if t._keras_history]
    return [((source.operation, i), (node.operation, k)) for (source, i), node, k in made]


def _name(operation):
    return str(id(operation))


def _add_edges(pydot, dot, model, expand_nested):
    for (source, i), (target, k) in _edges(model):
        ends = [_name(_last(source, i)), _name(_first(target, k))] if expand_nested else [_name(source), _name(target)]
        if not dot.get_edge(*ends):
            edge = pydot.Edge(*ends)
            edge.set("penwidth", "2")
            dot.add_edge(edge)


def _add_boxes(pydot, dot, layers, expand_nested, shows):
    for layer in layers:
        if expand_nested and _boxes(layer) is not None:
            inner = pydot.Cluster(style="dashed", graph_name=layer.name)
            _fill(pydot, _titled(inner, layer), layer, expand_nested, shows)
            dot.add_subgraph(inner)
            continue
        node = pydot.Node(_name(layer), label=_label(layer, shows))
        for key, value in (("fontname", "Helvetica"), ("border", "0"), ("margin", "0")):
            node.set(key, value)
        dot.add_node(node)


def _titled(cluster, model):
    cluster.set("label", model.name)
    cluster.set("labeljust", "l")
    return cluster


def _fill(pydot, dot, model, expand_nested, shows):
    layers = _boxes(model)
    _add_boxes(pydot, dot, [model] if layers is None else layers, expand_nested and layers is not None, shows)
    if layers is not None:
        _add_edges(pydot, dot, model, expand_nested)
    return dot


# --- the two functions ------------------------------------------------------------------------------------------------------------
def model_to_dot(model, show_shapes=False, show_dtype=False, show_layer_names=True, rankdir="TB", expand_nested=False, dpi=200,
                 subgraph=False, show_layer_activations=False, show_trainable=False, splines="ortho", **kwargs):
    _check("model_to_dot", model, kwargs)
    pydot = _pydot()
    if pydot is None:
        raise _missing("model_to_dot", "pydot (`pip install pydot`)")
    if subgraph:
        dot = _titled(pydot.Cluster(style="dashed", graph_name=model.name), model)
    else:
        dot = pydot.Dot()
        for key, value in (("rankdir", rankdir), ("concentrate", True), ("dpi", dpi), ("splines", splines)):
            dot.set(key, value)
        dot.set_node_defaults(shape="record")
    shows = {"show_shapes": show_shapes, "show_dtype": show_dtype, "show_layer_names": show_layer_names,
             "show_layer_activations": show_layer_activations, "show_trainable": show_trainable}
    return _fill(pydot, dot, model, expand_nested, shows)


def plot_model(model, to_file="model.png", show_shapes=False, show_dtype=False, show_layer_names=False, rankdir="TB", expand_nested=False,
               dpi=200, show_layer_activations=False, show_trainable=False, splines="ortho", **kwargs):
    _check("plot_model", model, kwargs)
    pydot = _pydot()
    wants = "pydot (`pip install pydot`)" if pydot is None else None if _draws(pydot) else "graphviz (the program `dot`)"
    if wants and "IPython.core.magics.namespace" in sys.modules:      # as Keras: a notebook goes on
        return print(_missing("plot_model", wants))
    if wants:
        raise _missing("plot_model", wants)
    dot = model_to_dot(model, show_shapes, show_dtype, show_layer_names, rankdir, expand_nested, dpi,
                       show_layer_activations=show_layer_activations, show_trainable=show_trainable, splines=splines)
    form = os.path.splitext(str(to_file))[1][1:] or "png"
    dot.write(str(to_file), format=form)
    display = sys.modules.get("IPython.display")
    return display.Image(filename=str(to_file)) if display and form != "pdf" else None
