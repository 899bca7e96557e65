"""Between objects and configurations: what Keras' serialize and deserialize functions do."""
import ast
import contextlib
import importlib
import sys

from snug import _C

_registered = {}


def parse_signature(text):
    """[(name, default or REQUIRED)] of a row of _signatures."""
    out = []
    for part in text.split("|") if text else []:
        name, given, default = part.partition("=")
        out.append((name, ast.literal_eval(default) if given else REQUIRED))
    return out


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
    if name == "<lambda>":
        return _lambda_config(function)
    full = get_registered_name(function)
    return {"module": function.__module__, "class_name": "function", "config": full, "registered_name": "function"}


def _lambda_config(function):
    """A lambda has no name to be found by: its code is kept, as Keras does."""
    import base64
    import marshal
    closure = [c.cell_contents for c in function.__closure__ or ()] or None
    return {"class_name": "__lambda__", "config": {"code": base64.encodebytes(marshal.dumps(function.__code__)).decode(),
                                                   "defaults": to_config(function.__defaults__), "closure": to_config(closure)}}


_trusted = [False]


@contextlib.contextmanager
def trusting(trusted):
    """Whether code in a file may be run."""
    before, _trusted[0] = _trusted[0], trusted or _trusted[0]
    try:
        yield
    finally:
        _trusted[0] = before


def _load_lambda(config):
    import base64
    import marshal
    import types
    if not _trusted[0]:
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
    out = {"module": module, "class_name": type(obj).__name__, "config": to_config(obj.get_config()), "registered_name": registered}
    built = obj.get_build_config() if hasattr(obj, "get_build_config") else None
    if built is not None:
        out["build_config"] = to_config(built)
    if hasattr(obj, "get_compile_config"):
        out["compile_config"] = obj.get_compile_config()
    return out


_HOMES = ("layers", "_models", "initializers", "regularizers", "constraints", "losses", "metrics", "optimizers",
          "schedules", "activations", "_features")


def _of_user(module, name):
    """A class or function of a module of the user's that is loaded."""
    return getattr(sys.modules.get(module), name, None) if module and not module.startswith("keras") else None


def find_class(name, custom=None):
    for table in (custom or {}, _registered, _scope):
        if name in table:
            return table[name]
        for key, value in table.items():
            if key.rpartition(">")[2] == name:
                return value
    for home in _HOMES:
        module = importlib.import_module("snug.keras." + home)
        found = getattr(module, name, None)
        if isinstance(found, type):
            return found
    raise TypeError(f"Could not locate class '{name}'. Make sure custom classes and functions are decorated with"
                    " `@keras.saving.register_keras_serializable()`, or given in custom_objects.")


def deserialize_keras_object(config, custom_objects=None, safe_mode=True, **ignored):
    if isinstance(config, (list, tuple)):
        return [deserialize_keras_object(c, custom_objects) for c in config]
    if not isinstance(config, dict) or "class_name" not in config:
        return config
    if config["class_name"] == "__tuple__":
        return tuple(deserialize_keras_object(c, custom_objects) for c in config["items"])
    if config["class_name"] == "__keras_tensor__":
        return config
    if config["class_name"] == "__lambda__":
        return _load_lambda(config["config"])
    if config["class_name"] == "function":
        return _of_user(config.get("module"), config["config"]) or find_function(config["config"], custom_objects)
    cls = _of_user(config.get("module"), config["class_name"]) or find_class(config["class_name"], custom_objects)
    inner = config.get("config", {})
    if hasattr(cls, "_from_config_with"):
        return cls._from_config_with(inner, custom_objects)
    made = cls.from_config(inner)
    if config.get("build_config") and "build_from_config" in cls.__dict__:        # of the user's class
        made.build_from_config(config["build_config"])
        made.built = True
    return made


def find_function(name, custom=None):
    for table in (custom or {}, _registered, _scope):
        for key, value in table.items():
            if name in (key, key.rpartition(">")[2]):
                return value
    raise TypeError(f"Could not locate function '{name}'. Make sure custom classes and functions are decorated with"
                    " `@keras.saving.register_keras_serializable()`, or given in custom_objects.")


def from_config(value):
    """What to_config wrote, as objects again; names stay names."""
    if isinstance(value, (list, tuple)):
        return [from_config(v) for v in value]
    if isinstance(value, dict) and "class_name" not in value:
        return {k: from_config(v) for k, v in value.items()}
    return deserialize_keras_object(value) if isinstance(value, dict) else value


_scope = {}


class custom_object_scope:
    def __init__(self, custom_objects=None, *more):
        self.objects = dict(custom_objects or {})
        for m in more:
            self.objects.update(m)

    def __enter__(self):
        self.saved = dict(_scope)
        _scope.update(self.objects)
        return self

    def __exit__(self, *exc):
        _scope.clear()
        _scope.update(self.saved)


CustomObjectScope = custom_object_scope


def get_custom_objects():
    return _scope


def register_keras_serializable(package="Custom", name=None):
    def decorate(obj):
        full = f"{package}>{name or obj.__name__}"
        _registered[full] = _scope[full] = obj
        return obj
    return decorate


def get_registered_object(name, custom_objects=None, module_objects=None):
    return _registered.get(name)


def get_registered_name(obj):
    return next((name for name, known in _registered.items() if known is obj), obj.__name__)
