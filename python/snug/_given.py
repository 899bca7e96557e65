"""Parameters that TensorFlow has and Snug has one value for: another value is refused by name, never left out."""
import functools


def same(value, default):
    """Whether a value says what the default says; None and False both say that there is none."""
    none = lambda v: v is None or v is False
    if value is default or (none(value) and none(default)):
        return True
    plain = (int, float, str, tuple, list)
    return isinstance(value, plain) and isinstance(default, plain) and isinstance(value, bool) == isinstance(default, bool) and value == default


def refuse(function, parameter, value, default):
    if not same(value, default):
        raise NotImplementedError(f"{function}({parameter}={value!r}) is not in Snug: it takes {parameter}={default!r} alone")


def default_only(names, called=None):
    """A decorator: of these parameters, named with blanks between them, the function takes the default alone."""
    def decorate(function):
        code = function.__code__
        order, word = code.co_varnames[:code.co_argcount], called or function.__qualname__
        values = dict(zip(order[len(order) - len(function.__defaults__ or ()):], function.__defaults__ or ()), **(function.__kwdefaults__ or {}))
        places = [(name, order.index(name) if name in order else len(order) + 99, values[name]) for name in names.split()]

        @functools.wraps(function)
        def checked(*args, **kwargs):
            for name, at, default in places:
                if name in kwargs or at < len(args):
                    refuse(word, name, kwargs[name] if name in kwargs else args[at], default)
            return function(*args, **kwargs)
        return checked
    return decorate


def as_array(made, dtype, copy):
    """What __array__ answers with an array that was made for the call: a copy, which NumPy's copy=False does not want."""
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested: its values lie elsewhere, or in another form")
    return made if dtype is None else made.astype(dtype)


def takes(text):
    """A function of these arguments, as Python writes them; the text is Snug's own. As `__wrapped__` of one that takes *args it is what
    help() and inspect.signature() show."""
    return eval(f"lambda {text}: None", {})
