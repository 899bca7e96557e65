"""tf.saved_model: folders that Snug writes and reads back. A Keras model is kept as a .keras file; a tf.Module as the name of its class, which
the program that loads it must define, and what its attributes hold; functions among them by the names they are registered under
(keras.saving.register_keras_serializable). TensorFlow's own folders hold graphs, which Snug does not read."""
import functools
import os
import re
import secrets
import types

from snug import _C, _archives, _nest
from snug._files import JSON_BYTES, _whole, create, in_numpys_types, is_bfloat16, named, publish, read_json
from snug._lazy import tf
from snug.keras import _serial

_NOTES, _MODEL = "snug_model.json", "model.keras"
_ARRAYS = re.compile(r"variables(-[0-9a-f]{16})?\.npz\Z")
ASSETS_DIRECTORY, VARIABLES_DIRECTORY, SAVED_MODEL_FILENAME_PB = "assets", "variables", "saved_model.pb"
SERVING, TRAINING, GPU, TPU = "serve", "train", "gpu", "tpu"
DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"


class SaveOptions:
    def __init__(self, **settings):
        self.__dict__.update(settings)


LoadOptions = SaveOptions


def contains_saved_model(export_dir):
    return os.path.exists(os.path.join(str(export_dir), _NOTES))


# --- writing --------------------------------------------------------------------------------------------
def save(obj, export_dir, signatures=None, options=None):
    from snug.keras import Model
    if obj is None or isinstance(obj, (bool, int, float, str, list, tuple, dict, _C.Tensor)) or _is_function(obj):
        raise ValueError(f"tf.saved_model.save: the object is a {type(obj).__qualname__}; give a Keras model, a tf.Module or a variable")
    folder = str(export_dir)
    os.makedirs(os.path.join(folder, ASSETS_DIRECTORY), exist_ok=True)
    if isinstance(obj, Model):
        obj.save(os.path.join(folder, _MODEL))
        notes = {"kind": "model"}
    else:
        arrays = {}
        notes = {"kind": "module", "object": _written(obj, arrays, "", {}), "signatures": _names_of(obj, signatures)}
        notes["arrays"] = f"variables-{secrets.token_hex(8)}.npz"       # whole before the notes name it: a folder is the old one or the new one
        _write_arrays(os.path.join(folder, notes["arrays"]), arrays)
    publish(folder, _NOTES, notes, "arrays", _ARRAYS, "variables.npz")


def _write_arrays(path, arrays):
    import numpy as np
    with _whole(path) as part, create(part) as file:
        np.savez(file, **arrays)


def _names_of(obj, signatures):
    """{key of the signature: name of the method}; a function that is no method of the object cannot be found again."""
    given = signatures if isinstance(signatures, dict) else {} if signatures is None else {DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
    methods = {name: getattr(obj, name) for name in dir(obj) if _may_serve(name)}
    fixed = [name for name, method in methods.items() if getattr(method, "input_signature", None) is not None]
    if signatures is None and len(fixed) == 1:
        return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: fixed[0]}
    found = {}
    for key, function in given.items():
        function = getattr(function, "_function", function)         # of a concrete one
        found[key] = next((n for n, m in methods.items() if m is function or m == function), None)
        if found[key] is None:
            raise NotImplementedError("tf.saved_model.save: a signature that is no method of the object has no name to be found by;"
                                      " make it a @tf.function of the object's class")
    return found


def _may_serve(name):
    return not name.startswith("_") or name == "__call__"


def _written(value, arrays, path, known):
    """A value fit for JSON; variables and arrays go to `arrays` under their paths. known: {id: path} of the variables and modules met
    so far, each of which is written once. Functions are code: their names are kept where the program that loads them can say what they are."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (_C.Variable, tf.Module)) and id(value) in known:
        return {"kind": "same", "at": known[id(value)]}
    if isinstance(value, (_C.Variable, _C.Tensor)) or hasattr(value, "__array__"):
        return _written_array(value, arrays, path, known)
    if isinstance(value, tf.Module):
        known[id(value)] = path
        cls = type(value)
        return {"kind": "object", "at": path, "module": cls.__module__, "class": cls.__qualname__,
                "attributes": {k: _written(v, arrays, f"{path}/{k}", known) for k, v in vars(value).items()}}
    if type(value) is tuple or isinstance(value, list):
        kind = "tuple" if type(value) is tuple else "list"
        return {"kind": kind, "items": [_written(v, arrays, f"{path}/{i}", known) for i, v in enumerate(value)]}
    if isinstance(value, dict) and all(isinstance(k, (str, int)) for k in value):
        return {"kind": "dict", "items": [(k, _written(v, arrays, f"{path}/{k}", known)) for k, v in value.items()]}
    if isinstance(value, tf.DType):
        return {"kind": "dtype", "name": value.name}
    if isinstance(value, tf.TensorShape):
        return {"kind": "shape", "dims": None if value.rank is None else value.as_list()}
    if _is_function(value):
        return _name_of(value) or {"kind": "dropped", "at": path}
    raise _refusal(value, path)


def _is_function(value):
    from snug._function import Function
    return isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial, Function))


_FUNCTIONS = ("", "nn", "math", "keras.activations")     # of tf, which attributes like `activation` hold


def _of_tf(path, name):
    """A function of Snug's under a public name; None: it is none."""
    found = tf
    for word in filter(None, path.split(".")):
        found = getattr(found, word)
    found = getattr(found, name, None) if name.isidentifier() and not name.startswith("_") else None
    return found if callable(found) and not isinstance(found, type) and not isinstance(found, types.ModuleType) else None


_saved_here = {}     # functions that this program has saved: it may load them again without registering them


def _name_of(function):
    """Where a function is found again: by its name in tf, or the one it is registered under; None: it has no such name."""
    name = getattr(function, "__name__", "")
    for path in _FUNCTIONS:
        if name.isidentifier() and _of_tf(path, name) is function:
            return {"kind": "of tf", "path": path, "name": name}
    full = next((key for key, known in _serial._registered.items() if known is function), None)
    if full is None and isinstance(function, types.FunctionType) and "<" not in function.__qualname__:
        full = f"{function.__module__}.{function.__qualname__}"
        _saved_here[full] = function
    return None if full is None else {"kind": "function", "name": full}


class _Left:
    """In place of a function that the folder cannot hold."""

    def __init__(self, path):
        self._path = path

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"tf.saved_model.load: '{self._path[1:]}' is a function without a name that can be found again; Snug keeps an"
                                  " object's variables, not its code: decorate it with @keras.saving.register_keras_serializable()")


def _refusal(value, path):
    from snug.keras.layers import Layer
    remedy = "save a Keras model that has the layer, or keep its weights in a file" if isinstance(value, Layer) else \
        "keep it in a tuple or in a dict" if isinstance(value, tuple) else "make its class a tf.Module, or leave it out"
    where = f"the attribute '{path[1:]}'" if path else "the object"
    return NotImplementedError(f"tf.saved_model.save: {where} is a {type(value).__qualname__}; Snug's folders hold tf.Modules, variables, tensors,"
                               f" numbers, texts, and lists, tuples and dicts of these: {remedy}")


def _written_array(value, arrays, path, known):
    array = in_numpys_types(value) if hasattr(value, "numpy") else value.__array__()
    if getattr(array, "dtype", None) == object or isinstance(array, bytes):
        raise NotImplementedError(f"tf.saved_model.save: '{path[1:]}' holds texts in a tensor; keep them in a list")
    arrays[path] = array
    noted = {"dtype": "bfloat16"} if is_bfloat16(value) else {}
    if not isinstance(value, _C.Variable):
        return {"kind": "tensor", "at": path, **noted}
    known[id(value)] = path
    return {"kind": "variable", "at": path, "trainable": bool(value.trainable), **noted}


# --- reading --------------------------------------------------------------------------------------------
def load(export_dir, tags=None, options=None):
    folder = str(export_dir)
    path = os.path.join(folder, _NOTES)
    if not os.path.exists(path):
        if os.path.exists(os.path.join(folder, SAVED_MODEL_FILENAME_PB)):
            raise NotImplementedError(f"'{folder}' was written by TensorFlow: it holds a graph, which Snug does not read. Load it there and"
                                      " save the model as .keras, or its weights as .weights.h5.")
        raise OSError(f"SavedModel file does not exist at: {folder}/{{saved_model.pbtxt|saved_model.pb}}")
    notes, arrays = named(lambda: _opened(folder, path), FileNotFoundError)
    if arrays is None:
        from snug.keras import models
        return _Loaded(models.load_model(os.path.join(folder, _MODEL)))
    try:
        with arrays:
            made = _read(notes["object"], arrays, {})
        made.signatures = {key: _Signature(_served(made, name)) for key, name in notes["signatures"].items()}
        return made
    except (KeyError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(f"'{path}' is damaged: {type(error).__name__}: {error}") from None


def _served(made, name):
    """The method that a file names as a signature."""
    found = getattr(made, name) if _may_serve(name) else None
    if not callable(found):
        raise KeyError(f"'{name}' is no method that serves")
    return found


def _opened(folder, path):
    """A folder's notes and the arrays that they name; None: there are none, it holds a model."""
    notes = read_json(path, dict, JSON_BYTES)
    if notes.get("kind") == "model":
        return notes, None
    arrays = notes.get("arrays", "variables.npz")
    if notes.get("kind") != "module" or not isinstance(notes.get("signatures"), dict) or not isinstance(arrays, str) or not _ARRAYS.match(arrays):
        raise ValueError(f"'{path}' is damaged: it describes neither a model nor a module")
    return notes, _archives.Npz(os.path.join(folder, arrays), packed=False)


class _Signature:
    """A method, called by the names of its arguments; what it gives has names, too."""

    def __init__(self, function):
        self._function = function
        self.structured_input_signature = ((), {s.name or f"args_{i}": s for i, s in enumerate(getattr(function, "input_signature", None) or ())})

    def __call__(self, *args, **named):
        result = self._function(*args, **named)
        return result if isinstance(result, dict) else {f"output_{i}": t for i, t in enumerate(_nest.flatten(result))}

    @property
    def structured_outputs(self):
        concrete = self._function.get_concrete_function()
        result = concrete.structured_outputs
        return result if isinstance(result, dict) else {f"output_{i}": t for i, t in enumerate(_nest.flatten(result))}


def _class(module, name):
    """Of the tf.Modules that the program has defined: a file's words reach no other object of any module."""
    waiting = [tf.Module]
    while waiting:
        found = waiting.pop()
        own = found is tf.Module or not found.__module__.startswith("snug.")
        if own and (found.__module__, found.__qualname__) == (module, name):
            return found
        waiting += found.__subclasses__()
    raise NotImplementedError(f"the folder holds a {name} of module {module}, which is no tf.Module that the program defines; Snug keeps an"
                              " object's variables, not its code")


def _function(name):
    return _serial._registered.get(name) or _saved_here.get(name) or _Left("/" + str(name))


def _read(value, arrays, known):
    """known: {path: variable or module} that were made so far."""
    if not isinstance(value, dict):
        return value
    kind = value["kind"]
    if kind == "same":
        return known[value["at"]]
    if kind == "variable":
        known[value["at"]] = made = tf.Variable(arrays[value["at"]].read(), trainable=value["trainable"], dtype=value.get("dtype"))
        return made
    if kind == "tensor":
        return tf.constant(arrays[value["at"]].read(), value.get("dtype"))
    if kind in ("list", "tuple"):
        items = [_read(v, arrays, known) for v in value["items"]]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {k: _read(v, arrays, known) for k, v in value["items"]}
    if kind == "dtype":
        return tf.as_dtype(value["name"])
    if kind == "shape":
        return tf.TensorShape(value["dims"])
    if kind == "dropped":
        return _Left(value["at"])
    if kind == "of tf":
        return _of_tf(value["path"], value["name"]) if value["path"] in _FUNCTIONS else None
    if kind == "function":
        return _function(value["name"])
    if kind != "object":
        raise ValueError(f"a value of kind {kind!r}")
    cls = _class(value["module"], value["class"])
    known[value["at"]] = made = object.__new__(cls)
    made.__dict__.update({k: _read(v, arrays, known) for k, v in value["attributes"].items() if not k.startswith("__")})
    return made


class _Loaded:
    """An exported model: serve(x), signatures, variables."""

    def __init__(self, model):
        self.model = self._model = model
        self.signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: self._signature, "serve": self._signature}
        self.variables, self.trainable_variables = model.variables, model.trainable_variables

    def serve(self, *inputs):
        return self._model(inputs[0] if len(inputs) == 1 else list(inputs), training=False)

    def __call__(self, *inputs, training=False):
        return self._model(inputs[0] if len(inputs) == 1 else list(inputs), training=training)

    def _signature(self, *inputs, **named):
        made = _nest.flatten(self.serve(*inputs, *named.values()))
        return {f"output_{i}": t for i, t in enumerate(made)}


def export(model, filepath, verbose=True):
    """What Model.export does, and what it says."""
    if not model.built:
        raise ValueError("The layer provided has not yet been built. It must be built before export.")
    save(model, filepath)
    if verbose:
        print(f"Saved artifact at '{filepath}' (Snug's own form: tf.saved_model.load and TFSMLayer of Snug read it).\n\n* Endpoint 'serve'")
