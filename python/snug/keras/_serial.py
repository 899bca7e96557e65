"""Between objects and configurations: what Keras' serialize and deserialize functions do.

A configuration may come from a file that somebody else wrote. What it names is looked for among registered objects, custom_objects and Keras'
own names alone; an attribute of a module is never taken because a file names it, and code in a file runs only where the caller trusts it."""
import contextlib
import contextvars
import functools
import importlib
import sys

from snug._given import default_only, refuse, takes
from snug import _C

_registered = {}


@functools.lru_cache(None)
def parse_signature(text):
    """[(name, default or REQUIRED)] of arguments as Python writes them."""
    made = takes(text)
    names, defaults = made.__code__.co_varnames[:made.__code__.co_argcount], made.__defaults__ or ()
    n = len(names) - len(defaults)
    return [(name, REQUIRED) for name in names[:n]] + list(zip(names[n:], defaults))


_TAKES_ALL = 4      # inspect.CO_VARARGS


class Shown:
    """`__signature__` of a family of classes whose __init__ takes *args: the arguments of the class and, behind them, those of all. Where a
    class has an __init__ of its own that takes no *args it says so itself."""

    def __init__(self, text, beside="", name=None):
        self.text, self.beside, self.name = text, beside, name

    def __get__(self, obj, cls):
        made = next(c for c in cls.__mro__ if "__init__" in c.__dict__)
        if obj is not None or not made.__module__.startswith("snug.") or not made.__init__.__code__.co_flags & _TAKES_ALL:
            raise AttributeError("__signature__")
        text = self.text(cls)
        if text is None:
            raise AttributeError("__signature__")
        import inspect
        beside = self.beside if self.name is None else f"name={self.name(cls)!r}{self.beside}"
        return inspect.signature(takes(", ".join(filter(None, (text, beside)))))


class _Required:
    def __repr__(self):
        return "REQUIRED"


REQUIRED = _Required()


def bind(cls_name, signature, args, kwargs):
    """Values by name; what is no argument of the class stays in kwargs."""
    if len(args) > len(signature):
        raise TypeError(f"{cls_name}() takes {len(signature)} arguments but {len(args)} were given")
    values = dict(zip([name for name, _ in signature], args))
    for name, default in signature[len(args):]:
        if name in kwargs:
            values[name] = kwargs.pop(name)
        elif default is REQUIRED:
            raise TypeError(f"{cls_name}.__init__() missing 1 required positional argument: '{name}'")
        else:
            values[name] = default
    return values


def bind_all(cls_name, signature, args, kwargs):
    """Values by name; anything else is refused."""
    values = bind(cls_name, signature, args, kwargs)
    if kwargs:
        raise TypeError(f"{cls_name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
    return values


def refuse_none(cls_name, signature, values):
    """None is no way to leave out a setting of the engine's that has another default."""
    for key, default in signature:
        if default is not REQUIRED and default is not None and values[key] is None and key != "reduction":
            refuse(cls_name, key, None, default)


def to_config(value):
    """What a configuration holds for it, fit for JSON."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [to_config(v) for v in value]
    if isinstance(value, dict):
        return {str(k): to_config(v) for k, v in value.items()}
    if hasattr(value, "as_list") and hasattr(value, "rank"):        # a shape
        return value.as_list()
    if hasattr(value, "get_config"):
        return serialize_keras_object(value)
    if _C.is_tensor(value):
        return value.numpy().tolist()
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "name") and type(value).__name__ == "DType":
        return value.name
    if callable(value):
        return _function_config(value)
    raise TypeError(f"{value!r} cannot be written into a configuration")


def _function_config(function):
    """A function of Keras' by its name; one of the user's with the module it stands in."""
    name = getattr(function, "__name__", str(function))
    if not hasattr(function, "__code__") or function.__module__.startswith("snug."):
        return name
    if name == "<lambda>" and not _copies.get():
        return _lambda_config(function)
    full = f"lambda at {id(function)}" if name == "<lambda>" else get_registered_name(function)
    _note(full, function)
    return {"module": function.__module__, "class_name": "function", "config": full, "registered_name": "function"}


def _lambda_config(function):
    """A lambda has no name to be found by: its code is kept, as Keras does."""
    import base64
    import marshal
    closure = [c.cell_contents for c in function.__closure__ or ()] or None
    return {"class_name": "__lambda__", "config": {"code": base64.encodebytes(marshal.dumps(function.__code__)).decode(),
                                                   "defaults": to_config(function.__defaults__), "closure": to_config(closure)}}


_trusted = contextvars.ContextVar("trusted", default=False)       # of this thread's call alone
_always = [False]                                                 # enable_unsafe_deserialization


def is_trusted():
    return _always[0] or _trusted.get()


@contextlib.contextmanager
def trusting(trusted):
    """Whether code in a file may be run."""
    token = _trusted.set(trusted or _trusted.get())
    try:
        yield
    finally:
        _trusted.reset(token)


_met = contextvars.ContextVar("met", default=None)
_copies = contextvars.ContextVar("copies", default=False)


@contextlib.contextmanager
def collecting(copies=False):
    """{name: class or function of the user's} of all that is serialized meanwhile: what whoever reads it needs. Copies in this process get lambdas as
    they are; else they are kept as code."""
    tokens = _met.set({}), _copies.set(copies)
    try:
        yield _met.get()
    finally:
        _met.reset(tokens[0])
        _copies.reset(tokens[1])


def _note(name, value):
    if _met.get() is not None:
        _met.get()[name] = value


def copy_of(obj, settings=()):
    """An object as its configuration, with other settings, describes it; classes and functions need not be registered for it. What the object was
    made of may come from a file: a copy trusts it no more than the object did."""
    with collecting(copies=True) as found:
        config = {**obj.get_config(), **dict(settings)}
    with custom_object_scope(found):
        return type(obj).from_config(config)


def _load_lambda(config):
    import base64
    import marshal
    import types
    if not is_trusted():
        raise ValueError("Requested the deserialization of a `Lambda` layer whose `function` is a Python lambda. This carries a potential"
                         " risk of arbitrary code execution and thus it is disallowed by default. If you trust the source of the artifact,"
                         " you can override this error by passing `safe_mode=False` to the loading function, or calling"
                         " `keras.config.enable_unsafe_deserialization().")
    code = marshal.loads(base64.b64decode(config["code"]))
    cells = tuple(types.CellType(v) for v in config.get("closure") or ())
    names = {**vars(sys.modules["builtins"]), **vars(sys.modules["__main__"])}
    return types.FunctionType(code, names, code.co_name, tuple(config["defaults"]) if config.get("defaults") else None, cells)


def serialize_keras_object(obj):
    if obj is None or isinstance(obj, (bool, int, float, str)):
        return obj
    if not hasattr(obj, "get_config"):
        return to_config(obj)
    home = type(obj).__module__
    module = getattr(type(obj), "_keras_module", "keras." + home[len("snug.keras."):]) if home.startswith("snug.keras.") else home
    registered = None if home.startswith("snug.") else get_registered_name(type(obj))
    module = None if registered and ">" in registered else module
    if registered:
        _note(registered if ">" in registered else type(obj).__name__, type(obj))
    out = {"module": module, "class_name": type(obj).__name__, "config": to_config(obj.get_config()), "registered_name": registered}
    built = obj.get_build_config() if hasattr(obj, "get_build_config") else None
    if built is not None:
        out["build_config"] = to_config(built)
    if hasattr(obj, "get_compile_config"):
        out["compile_config"] = obj.get_compile_config()
    return out


_HOMES = ("layers", "_models", "initializers", "regularizers", "constraints", "losses", "metrics", "optimizers",
          "schedules", "activations", "_features")


def _named(name, custom):
    """What custom_objects, the scope or the registry hold under a name, or under it behind its package; None: nothing."""
    tables = (custom or {}, _registered, _scope.get(), _objects)
    exact = next((t[name] for t in tables if name in t), None)
    return exact if exact is not None else next((v for t in tables for k, v in t.items() if k.rpartition(">")[2] == name), None)


def _of_keras(name):
    """A class of Keras' own of that name: one that Snug defines and that a configuration can make."""
    for home in _HOMES if name.isidentifier() and not name.startswith("_") else ():
        found = getattr(importlib.import_module("snug.keras." + home), name, None)
        if isinstance(found, type) and found.__module__.startswith("snug.keras") and hasattr(found, "from_config"):
            return found
    return None


def _unknown(kind, name):
    return TypeError(f"Could not locate {kind} '{name}'. Make sure custom classes and functions are decorated with"
                     " `@keras.saving.register_keras_serializable()`, or given in custom_objects.")


def _word(value, what):
    if not isinstance(value, str):
        raise ValueError(f"a configuration's {what} is a text, not {value!r}: it is damaged")
    return value


def find_class(name, custom=None):
    name = _word(name, "class_name")
    found = _named(name, custom) or _of_keras(name)
    if not isinstance(found, type):
        raise _unknown("class", name)
    return found


def _class_of(config, custom):
    """The class of a row, by the name it was registered under, else by its own; Keras' where the row says that it is Keras'."""
    name, full, module = _word(config["class_name"], "class_name"), config.get("registered_name"), config.get("module")
    if isinstance(full, str) and ">" in full and isinstance(_named(full, custom), type):
        return _named(full, custom)
    given = next((t[name] for t in (custom or {}, _scope.get(), _objects) if name in t), None)
    if given is None and isinstance(module, str) and module.partition(".")[0] == "keras":
        given = _of_keras(name)
    return given if isinstance(given, type) else find_class(name, custom)


@default_only("module_objects")
def deserialize_keras_object(config, custom_objects=None, safe_mode=True, module_objects=None):
    with trusting(not safe_mode), custom_object_scope(custom_objects) if custom_objects else contextlib.nullcontext():
        return _deserialized(config, custom_objects)


def _deserialized(config, custom_objects):
    if isinstance(config, (list, tuple)):
        return [_deserialized(c, custom_objects) for c in config]
    if not isinstance(config, dict) or "class_name" not in config:
        return config
    if config["class_name"] == "__tuple__":
        return tuple(_deserialized(c, custom_objects) for c in config["items"])
    if config["class_name"] == "__keras_tensor__":
        return config
    if config["class_name"] == "__lambda__":
        return _load_lambda(config["config"])
    if config["class_name"] == "function":
        return find_function(config["config"], custom_objects)
    cls = _class_of(config, custom_objects)
    inner = config.get("config", {})
    if hasattr(cls, "_from_config_with"):
        return cls._from_config_with(inner, custom_objects)
    made = cls.from_config(inner)
    if config.get("build_config") and "build_from_config" in cls.__dict__:        # of the user's class
        made.build_from_config(config["build_config"])
        made.built = True
    return made


def find_function(name, custom=None):
    found = _named(_word(name, "function"), custom)
    if found is None:
        raise _unknown("function", name)
    return found


def from_config(value):
    """What to_config wrote, as objects again; names stay names."""
    if isinstance(value, (list, tuple)):
        return [from_config(v) for v in value]
    if isinstance(value, dict) and "class_name" not in value:
        return {k: from_config(v) for k, v in value.items()}
    return deserialize_keras_object(value) if isinstance(value, dict) else value


_objects = {}                                            # get_custom_objects
_scope = contextvars.ContextVar("scope", default={})     # custom_object_scope: of this thread's calls alone


class custom_object_scope:
    def __init__(self, custom_objects=None, *more):
        self.objects = dict(custom_objects or {})
        for m in more:
            self.objects.update(m)

    def __enter__(self):
        self.token = _scope.set({**_scope.get(), **self.objects})
        return self

    def __exit__(self, *exc):
        _scope.reset(self.token)


CustomObjectScope = custom_object_scope


def get_custom_objects():
    return _objects


def in_scope(name):
    """What custom_object_scope or get_custom_objects hold under a name; None: nothing."""
    return _scope.get().get(name, _objects.get(name))


def register_keras_serializable(package="Custom", name=None):
    def decorate(obj):
        full = f"{package}>{name or obj.__name__}"
        _registered[full] = _objects[full] = obj
        return obj
    return decorate


def get_registered_object(name, custom_objects=None, module_objects=None):
    for known in (custom_objects, _registered, module_objects):
        if known and name in known:
            return known[name]
    return None


def get_registered_name(obj):
    return next((name for name, known in _registered.items() if known is obj), obj.__name__)
