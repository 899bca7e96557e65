"""What a public name takes, as text that the same code makes of TensorFlow's objects and of Snug's."""
import inspect

OPEN = "..."        # nothing is known of the arguments


def shown(value):
    """A default: numbers, texts and tuples as they are written, dtypes and functions by their names."""
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(shown, value)) + ("," if isinstance(value, tuple) and len(value) == 1 else "")
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if hasattr(value, "as_numpy_dtype"):
        return repr(value.name)
    return f"<{getattr(value, '__name__', type(value).__name__)}>"


def parameter(p):
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    return star + p.name + ("" if p.default is p.empty else "=" + shown(p.default))


def describe(found):
    """"(units, activation=None, **kwargs)", "..." of what does not say, None of what is not called."""
    if not callable(found):
        return None
    try:
        given = list(inspect.signature(found).parameters.values())
    except (ValueError, TypeError):
        return OPEN
    out, open_ended = [], False
    for p in given:
        if p.kind is p.KEYWORD_ONLY and not open_ended:
            out.append("*")
        open_ended = open_ended or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        out.append(parameter(p))
    return "(" + ", ".join(out) + ")"
