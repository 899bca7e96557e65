"""Models in files: weights as .weights.h5 (Keras' own), .npz (by position and path) and .safetensors; whole models as .keras, which is
a zip of metadata.json, config.json and model.weights.h5."""
import json
import os
import struct

from snug._files import _whole


def _kind(path):
    path = str(path)
    if path.endswith(".npz"):
        return "npz"
    if path.endswith(".safetensors"):
        return "safetensors"
    if path.endswith((".weights.h5", ".h5", ".hdf5")):
        return "h5"
    raise ValueError(f"The filename must end in `.weights.h5`, `.npz` or `.safetensors`. Received: filepath={path}")


def _names(model):
    seen, names = {}, []
    for v in model.weights:
        name = v.path if hasattr(v, "path") else v.name
        n = seen[name] = seen.get(name, 0) + 1
        names.append(name if n == 1 else f"{name}_{n}")
    return names


# --- where Keras keeps what ------------------------------------------------------------------------------
_RECURRENT = ("LSTM", "GRU", "SimpleRNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D")


def _parts_of(layer):
    """{group: weights} of a built-in layer that Keras makes of several."""
    from snug.keras._names import snake
    kind, weights = type(layer).__name__, layer.weights
    if kind in _RECURRENT:
        return {"cell": weights}
    if kind == "Bidirectional":
        half, inner = len(weights) // 2, "/cell" if type(layer.layer).__name__ in _RECURRENT else ""
        return {"forward_layer" + inner: weights[:half], "backward_layer" + inner: weights[half:]}
    if kind == "TimeDistributed":
        return {"layer": weights}
    if kind == "MultiHeadAttention" and weights:
        n = len(weights) // 4
        return {word + "_dense": weights[n * i:n * i + n] for i, word in enumerate(("query", "key", "value", "output"))}
    if kind == "RNN":
        cells = getattr(layer.cell, "cells", layer.cell)
        if not isinstance(cells, (list, tuple)):
            return {"cell": weights}
        n, names = len(weights) // len(cells), _numbered(snake(type(c).__name__) for c in cells)
        return {"cell/cells/" + name: weights[n * i:n * i + n] for i, name in enumerate(names)}
    return None


def _numbered(names):
    """The second of a name gets _1, the third _2."""
    seen, out = {}, []
    for name in names:
        n = seen[name] = seen.get(name, -1) + 1
        out.append(f"{name}_{n}" if n else name)
    return out


def _children(layer):
    """(name, layers) of what hangs below, in Keras' order: attributes by name, containers as lists."""
    from snug.keras._layer import Layer
    from snug.keras._models import Functional, Model, Sequential
    if isinstance(layer, (Functional, Sequential)):
        yield "layers", list(layer.layers)
        return
    attributes = {k: v for k, v in vars(layer).items() if not k.startswith("_")}
    if isinstance(layer, Model):
        attributes["layers"] = list(layer.layers)
    for name in sorted(attributes):
        value = attributes[name]
        value = list(value.values()) if isinstance(value, dict) else value
        if isinstance(value, Layer) or isinstance(value, (list, tuple)) and any(isinstance(v, Layer) for v in value):
            yield name, value


def _groups(layer, path="", visited=None):
    """(path of the group, its variables) of a model, as Keras walks it; each layer once, which `visited` gets by its path."""
    from snug.keras._layer import Layer
    from snug.keras._names import snake
    visited = {} if visited is None else visited
    if any(layer is known for known in visited.values()):
        return
    visited[path] = layer
    built_in = type(layer).__module__.startswith("snug.") and not layer._own_graph
    parts = _parts_of(layer) if built_in else None
    if built_in:
        yield path + "vars", [] if parts else layer.weights
        for name, weights in (parts or {}).items():
            yield f"{path}{name}/vars", weights
        return
    own = {id(v) for v in layer._own}
    yield path + "vars", [v for v in layer.weights if id(v) in own]
    for name, value in _children(layer):
        if isinstance(value, Layer):
            yield from _groups(value, f"{path}{name}/", visited)
            continue
        inner = [v for v in value if isinstance(v, Layer)]
        for v, word in zip(inner, _numbered(snake(type(v).__name__) for v in inner)):
            yield from _groups(v, f"{path}{name}/{word}/", visited)


def with_own(model, method):
    """{path: layer} of the layers whose class, the user's, has such a method of its own."""
    from snug.keras._layer import Layer
    visited = {}
    list(_groups(model, visited=visited))
    return {path: layer for path, layer in visited.items() if getattr(type(layer), method) is not getattr(Layer, method)}


def _write_h5(path, groups, model):
    import numpy as np
    from snug.keras import _hdf5
    tree, groups = {}, dict(groups)
    for above, layer in with_own(model, "save_own_variables").items():
        store = groups[above + "vars"] = {}
        layer.save_own_variables(store)
    for group, variables in groups.items():
        at = tree
        for word in group.split("/"):
            at = at.setdefault(word, {})
        named = variables if isinstance(variables, dict) else dict(enumerate(variables))
        at.update({str(k): v.numpy() if hasattr(v, "numpy") else np.asarray(v) for k, v in named.items()})
    _hdf5.write(path, tree)


def _group_of(tree, group):
    for word in group.split("/"):
        tree = tree.get(word, {}) if isinstance(tree, dict) else {}
    return tree if isinstance(tree, dict) else {}


def _in_order(tree, path, model):
    """The arrays of a file in the order of the model's weights; None where a layer of the user's loads its own."""
    found = {}
    own = {above + "vars" for above in with_own(model, "load_own_variables")}
    for group, variables in _groups(model):
        at = _group_of(tree, group)
        if group in own:
            found.update({id(v): None for v in variables})
            continue
        if variables and (len(at) != len(variables) or not all(hasattr(at.get(str(i)), "shape") for i in range(len(at)))):
            raise ValueError(f"'{path}' has {len(at)} arrays in '{group}', the model {len(variables)} variables there: it is of"
                             " another model")
        found.update({id(v): at[str(i)] for i, v in enumerate(variables)})
    return [found[id(v)] for v in model.weights]


def save_weights(model, path, overwrite=True):
    import numpy as np
    kind, path = _kind(path), str(path)
    if not overwrite and os.path.exists(path):
        raise ValueError(f"'{path}' exists; give overwrite=True")
    arrays = {} if kind == "h5" else {name: v.numpy() for name, v in zip(_names(model), model.weights)}
    with _whole(path) as part:
        if kind == "h5":
            _write_h5(part, _groups(model), model)
        elif kind == "npz":
            with open(part, "wb") as file:
                np.savez(file, **arrays)
        else:
            _write_safetensors(part, arrays)


_DTYPES = {"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64", "bool": "BOOL", "uint8": "U8", "int8": "I8"}


def _write_safetensors(path, arrays):
    head, at = {}, 0
    for name, a in arrays.items():
        head[name] = {"dtype": _DTYPES[a.dtype.name], "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for a in arrays.values():
            file.write(a.tobytes())


def _read_safetensors(path):
    import numpy as np
    back = {v: k for k, v in _DTYPES.items()}
    with open(path, "rb") as file:
        n, = struct.unpack("<Q", file.read(8))
        head = json.loads(file.read(n))
        out = {}
        for name, info in head.items():
            if name == "__metadata__":
                continue
            first, end = info["data_offsets"]
            file.seek(8 + n + first)
            out[name] = np.frombuffer(file.read(end - first), dtype=back[info["dtype"]]).reshape(info["shape"])
        return out


def load_weights(model, path, skip_mismatch=False):
    if not model.built and not model.weights:
        raise ValueError("You are loading weights into a model that has not yet been built. Try building the model first by calling it on"
                         " some data or by using `build()`.")
    import numpy as np
    from snug.keras import _hdf5, _whole_h5
    kind, path = _kind(path), str(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"No such file: '{path}'")
    if kind == "h5":
        tree = _hdf5.read(path)
        older = tree.get("model_weights", tree) if isinstance(tree, _hdf5.Group) else None
        if not isinstance(older, _hdf5.Group):
            raise ValueError(f"'{path}': it has no group of weights; give what save or save_weights wrote")
        if "layer_names" in older.attributes:        # of a whole model, or weights as Keras 2 wrote them
            return _whole_h5.load_weights(model, older, path, skip_mismatch)
        arrays = dict(enumerate(_in_order(tree, path, model)))
    elif kind == "npz":
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
    else:
        arrays = _read_safetensors(path)
    names = _names(model)
    values = [arrays[n] for n in names] if all(n in arrays for n in names) else list(arrays.values())
    if len(values) != len(names):
        raise ValueError(f"'{path}' has {len(values)} arrays, the model {len(names)} weights")
    for above, layer in with_own(model, "load_own_variables").items() if kind == "h5" else ():
        layer.load_own_variables(_group_of(tree, above + "vars"))
    for v, value in zip(model.weights, values):
        if value is None:
            continue
        if tuple(v.shape) != tuple(value.shape):
            if skip_mismatch:
                continue
            raise ValueError(f"weight '{v.name}' is {tuple(v.shape)}, in '{path}' it is {tuple(value.shape)}")
        v.assign(value)


# --- whole models ----------------------------------------------------------------------------------------
_CONFIG, _METADATA, _WEIGHTS, _OPTIMIZER, _ASSETS = "config.json", "metadata.json", "model.weights.h5", "optimizer/vars", "assets"


def _is_h5(path):
    """Whether it is a whole model's .h5; a ValueError where it is no name of a whole model."""
    if path.endswith((".h5", ".hdf5")):
        return True
    if not path.endswith(".keras"):
        raise ValueError("Invalid filepath extension for saving. Please add either a `.keras` extension for the native Keras format"
                         f" (recommended) or a `.h5` extension. Use `model.export(filepath)` for serving. Received: filepath={path}.")
    return False


def _with_optimizer(model):
    """The groups of a model and, where there is one that began, its optimizer's."""
    groups = list(_groups(model))
    if model.compiled and model.optimizer is not None and model.optimizer.built:
        groups.append((_OPTIMIZER, model.optimizer.variables))
    return groups


def save_state(model, path):
    """Weights and the optimizer's variables in one file."""
    with _whole(path) as part:
        _write_h5(part, _with_optimizer(model), model)


def load_state(model, path):
    load_weights(model, path)
    _load_optimizer(model, path)


def save_model(model, path, overwrite=True, include_optimizer=True):
    from snug.keras import _serial, __version__
    import time
    import zipfile
    path = str(path)
    older = _is_h5(path)
    if not overwrite and os.path.exists(path):
        raise ValueError(f"'{path}' exists; give overwrite=True")
    if older:
        from snug.keras import _whole_h5
        return _whole_h5.save(model, path, include_optimizer)
    config = _serial.serialize_keras_object(model)
    with _whole(path) as part:
        weights = part + ".weights"
        try:
            _write_h5(weights, _with_optimizer(model), model)
            with zipfile.ZipFile(part, "w") as file:
                file.writestr(_METADATA, json.dumps({"keras_version": __version__, "date_saved": time.strftime("%Y-%m-%d@%H:%M:%S")}))
                file.writestr(_CONFIG, json.dumps(config))
                file.write(weights, _WEIGHTS)
                _save_assets(model, file)
        finally:
            if os.path.exists(weights):
                os.remove(weights)


def _save_assets(model, file):
    """Files that layers of the user's write, each layer's in a folder of the zip."""
    import tempfile
    for above, layer in with_own(model, "save_assets").items():
        with tempfile.TemporaryDirectory() as folder:
            layer.save_assets(folder)
            for home, _, names in os.walk(folder):
                for name in names:
                    inner = os.path.relpath(os.path.join(home, name), folder)
                    file.write(os.path.join(home, name), f"{_ASSETS}/{above}{inner}")


def _load_assets(model, path):
    import tempfile
    import zipfile
    wanted = with_own(model, "load_assets")
    if not wanted:
        return
    with zipfile.ZipFile(path) as file, tempfile.TemporaryDirectory() as folder:
        for name in file.namelist():
            if name.startswith(_ASSETS + "/"):
                file.extract(name, folder)
        for above, layer in wanted.items():
            layer.load_assets(os.path.join(folder, _ASSETS, *above.split("/")).rstrip(os.sep))


def _load_optimizer(model, path):
    from snug.keras import _hdf5
    arrays = _group_of(_hdf5.read(path), _OPTIMIZER)
    if not arrays or model.optimizer is None:
        return
    model.optimizer.build(model.trainable_variables)
    variables = model.optimizer.variables
    if len(variables) == len(arrays):         # one of another kind starts anew, as Keras' does
        for i, v in enumerate(variables):
            if i != 1 or model.optimizer._schedule is None:
                v.assign(arrays[str(i)])


def _unpack(path):
    """The configuration of a whole model, and its weights in a file beside it, which the caller removes."""
    import shutil
    import tempfile
    import zipfile
    try:
        with zipfile.ZipFile(path) as file:
            config = json.loads(file.read(_CONFIG))
            handle, weights = tempfile.mkstemp(".weights.h5", dir=os.path.dirname(os.path.abspath(path)))
            with file.open(_WEIGHTS) as source, os.fdopen(handle, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            return config, weights
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"'{path}' is not a file that Keras wrote as .keras: {error}") from None


def load_model(path, custom_objects=None, compile=True, safe_mode=True):
    from snug.keras import _serial
    path = str(path)
    if not os.path.exists(path):
        raise ValueError(f"File not found: filepath={path}. Please ensure the file is an accessible `.keras` zip file.")
    if path.endswith((".h5", ".hdf5")):
        from snug.keras import _whole_h5
        return _whole_h5.load(path, custom_objects, compile)
    if not path.endswith(".keras"):
        raise ValueError(f"File format not supported: filepath={path}. Keras 3 only supports V3 `.keras` files and legacy H5 format files"
                         " (`.h5` extension). What model.export wrote is read by keras.layers.TFSMLayer or tf.saved_model.load.")
    config, weights = _unpack(path)
    try:
        with _serial.custom_object_scope(custom_objects), _serial.trusting(not safe_mode):
            model = _serial.deserialize_keras_object(config)
            shape = config.get("build_config", {}).get("input_shape")
            if not model.built and shape is not None:
                model.build(tuple(shape) if isinstance(shape, list) else shape)
            if model.built or model.weights:        # else there was nothing to save
                load_weights(model, weights)
            _load_assets(model, path)
            if compile and config.get("compile_config"):
                model.compile_from_config(config["compile_config"])
                _load_optimizer(model, weights)
    finally:
        os.remove(weights)
    return model


def to_bytes(model):
    """What save writes; the file is gone again."""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        save_model(model, path)
        with open(path, "rb") as file:
            return file.read()


def from_bytes(data):
    """What to_bytes gave. Lambdas are read, too: pickle trusts its bytes anyway."""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        with open(path, "wb") as file:
            file.write(data)
        return load_model(path, safe_mode=False)
