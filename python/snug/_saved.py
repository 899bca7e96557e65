"""tf.saved_model: folders that Snug writes and reads back. A Keras model is kept as a .keras file; a tf.Module as the name of its class, which
the program that loads it must define, and what its attributes hold. TensorFlow's own folders hold graphs, which Snug does not read."""
import json
import os
import sys

from snug import _C, _nest
from snug._lazy import tf

_NOTES, _MODEL, _ARRAYS = "snug_model.json", "model.keras", "variables.npz"
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
    folder = str(export_dir)
    os.makedirs(os.path.join(folder, ASSETS_DIRECTORY), exist_ok=True)
    if isinstance(obj, Model):
        obj.save(os.path.join(folder, _MODEL))
        notes = {"kind": "model"}
    else:
        arrays = {}
        notes = {"kind": "module", "object": _written(obj, arrays, "", [])}
        _write_arrays(os.path.join(folder, _ARRAYS), arrays)
        notes["signatures"] = _names_of(obj, signatures)
    with open(os.path.join(folder, _NOTES), "w") as file:
        json.dump(notes, file)


def _write_arrays(path, arrays):
    import numpy as np
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def _names_of(obj, signatures):
    """{key of the signature: name of the method}; a function that is no method of the object cannot be found again."""
    given = signatures if isinstance(signatures, dict) else {} if signatures is None else {DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
    methods = {name: getattr(obj, name) for name in dir(obj) if not name.startswith("__") or name == "__call__"}
    found = {}
    for key, function in given.items():
        function = getattr(function, "_of_function", function)
        found[key] = next((n for n, m in methods.items() if m is function or m == function), None)
        if found[key] is None:
            raise NotImplementedError("tf.saved_model.save: a signature that is no method of the object has no name to be found by;"
                                      " make it a @tf.function of the object's class")
    return found


def _written(value, arrays, path, seen):
    """A value fit for JSON; variables and arrays go to `arrays` under their paths."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (_C.Variable, _C.Tensor)) or hasattr(value, "__array__"):
        arrays[path] = value.numpy() if hasattr(value, "numpy") else value
        kind = "variable" if isinstance(value, _C.Variable) else "tensor"
        return {"kind": kind, "at": path, "trainable": bool(getattr(value, "trainable", False))}
    if isinstance(value, (list, tuple)):
        return {"kind": type(value).__name__, "items": [_written(v, arrays, f"{path}/{i}", seen) for i, v in enumerate(value)]}
    if isinstance(value, dict):
        return {"kind": "dict", "items": {str(k): _written(v, arrays, f"{path}/{k}", seen) for k, v in value.items()}}
    if any(value is s for s in seen) or not hasattr(value, "__dict__") or callable(value) and not isinstance(value, tf.Module):
        return {"kind": "dropped"}
    cls = type(value)
    return {"kind": "object", "module": cls.__module__, "class": cls.__qualname__,
            "attributes": {k: _written(v, arrays, f"{path}/{k}", seen + [value]) for k, v in vars(value).items()}}


# --- reading --------------------------------------------------------------------------------------------
def load(export_dir, tags=None, options=None):
    import numpy as np
    folder = str(export_dir)
    path = os.path.join(folder, _NOTES)
    if not os.path.exists(path):
        if os.path.exists(os.path.join(folder, SAVED_MODEL_FILENAME_PB)):
            raise NotImplementedError(f"'{folder}' was written by TensorFlow: it holds a graph, which Snug does not read. Load it there and"
                                      " save the model as .keras, or its weights as .weights.h5.")
        raise OSError(f"SavedModel file does not exist at: {folder}/{{saved_model.pbtxt|saved_model.pb}}")
    with open(path) as file:
        notes = json.load(file)
    if notes["kind"] == "model":
        from snug.keras import models
        return _Loaded(models.load_model(os.path.join(folder, _MODEL)))
    with np.load(os.path.join(folder, _ARRAYS)) as file:
        made = _read(notes["object"], {name: file[name] for name in file.files})
    made.signatures = {key: getattr(made, name) for key, name in notes["signatures"].items()}
    return made


def _class(module, name):
    """Of what the program has imported already: a file's words run no code."""
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise NotImplementedError(f"the folder holds a {name} of module {module}, which the program does not define; Snug keeps an object's"
                                  " variables, not its code")
    return found


def _read(value, arrays):
    if not isinstance(value, dict):
        return value
    kind = value["kind"]
    if kind == "variable":
        return tf.Variable(arrays[value["at"]], trainable=value["trainable"])
    if kind == "tensor":
        return tf.constant(arrays[value["at"]])
    if kind in ("list", "tuple"):
        items = [_read(v, arrays) for v in value["items"]]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {k: _read(v, arrays) for k, v in value["items"].items()}
    if kind == "dropped":
        return None
    cls = _class(value["module"], value["class"])
    made = object.__new__(cls)
    made.__dict__.update({k: _read(v, arrays) for k, v in value["attributes"].items()})
    return made


class _Loaded:
    """An exported model: serve(x), signatures, variables."""

    def __init__(self, model):
        self.model = self._model = model
        self.signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: self._signature, "serve": self._signature}
        self.variables, self.trainable_variables = model.variables, model.trainable_variables

    def serve(self, *inputs):
        return self._model(inputs[0] if len(inputs) == 1 else list(inputs), training=False)

    def __call__(self, *inputs, training=False, **kwargs):
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
