"""Models in files: weights as .weights.h5 (Keras' own), .npz (by position and path) and .safetensors; whole models as .keras, which is
a zip of metadata.json, config.json and model.weights.h5."""
import contextlib
import json
import os
import struct

from snug import _archives, _C
from snug._arrays import of_bits
from snug._files import JSON_BYTES, _aside, _whole, assign_all, check_json, create, damaged, is_bfloat16, parse_json, pieces, stored


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


def _groups(layer, path="", visited=None, seen=None):
    """(path of the group, its variables) of a model, as Keras walks it; each layer once, which `visited` gets by its path."""
    from snug.keras._layer import Layer
    from snug.keras._names import numbered, snake
    visited = {} if visited is None else visited
    seen = {id(known) for known in visited.values()} if seen is None else seen
    if id(layer) in seen:
        return
    seen.add(id(layer))
    visited[path] = layer
    built_in = type(layer).__module__.startswith("snug.") and not layer._own_graph
    parts = layer._weight_groups() if built_in else None
    if built_in:
        yield path + "vars", [] if parts else layer.weights
        for name, weights in (parts or {}).items():
            yield f"{path}{name}/vars", weights
        return
    own = {id(v) for v in layer._own}
    yield path + "vars", [v for v in layer.weights if id(v) in own]
    for name, value in _children(layer):
        if isinstance(value, Layer):
            yield from _groups(value, f"{path}{name}/", visited, seen)
            continue
        inner = [v for v in value if isinstance(v, Layer)]
        for v, word in zip(inner, numbered(snake(type(v).__name__) for v in inner)):
            yield from _groups(v, f"{path}{name}/{word}/", visited, seen)


def with_own(model, method):
    """{path: layer} of the layers whose class, the user's, has such a method of its own."""
    from snug.keras._layer import Layer
    visited = {}
    list(_groups(model, visited=visited))
    return {path: layer for path, layer in visited.items() if getattr(type(layer), method) is not getattr(Layer, method)}


def _write_h5(path, groups, model):
    from snug.keras import _hdf5
    tree = {}
    for group, named in _named_groups(groups, model).items():
        at = tree
        for word in group.split("/"):
            at = at.setdefault(word, {})
        at.update({str(k): stored(v) for k, v in named.items()})
    _hdf5.write(path, tree)


def _group_of(tree, group):
    if isinstance(tree, _Groups):
        return tree.get(group, {})
    for word in group.split("/"):
        tree = tree.get(word, {}) if hasattr(tree, "keys") else {}
    return tree if hasattr(tree, "keys") else {}


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
    kind, path = _kind(path), str(path)
    if not overwrite and os.path.exists(path):
        raise ValueError(f"'{path}' exists; give overwrite=True")
    arrays = {} if kind == "h5" else {name: stored(v) for name, v in zip(_names(model), model.weights)}
    with _whole(path) as part:
        if kind == "h5":
            _write_h5(part, _groups(model), model)
        elif kind == "npz":
            with create(part) as file:
                _write_npz(file, arrays)
        else:
            _write_safetensors(part, arrays)


_DTYPES = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16", "int32": "I32", "int64": "I64", "bool": "BOOL", "uint8": "U8", "int8": "I8",
           "int16": "I16", "uint16": "U16", "uint32": "U32", "uint64": "U64"}


def _write_npz(file, arrays):
    """As numpy.savez does, a variable's bytes piece by piece."""
    import zipfile
    import numpy as np
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as made:
        for name, a in arrays.items():
            if is_bfloat16(a):
                raise ValueError(f"'{name}' is of bfloat16, for which .npz has no name: save .safetensors or .weights.h5, or cast to float32")
            with made.open(name + ".npy", "w", force_zip64=True) as member:
                head = {"descr": np.lib.format.dtype_to_descr(a.dtype), "fortran_order": False, "shape": tuple(a.shape)}
                np.lib.format.write_array_header_1_0(member, head)
                for piece in a.pieces() if hasattr(a, "pieces") else pieces(a):
                    member.write(piece)


def _write_safetensors(path, arrays):
    head, at = {}, 0
    for name, a in arrays.items():
        if a.dtype.name not in _DTYPES:
            raise ValueError(f"'{name}' is of {a.dtype}, which .safetensors does not hold; save .weights.h5 or .npz")
        head[name] = {"dtype": _DTYPES[a.dtype.name], "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with create(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for a in arrays.values():
            for piece in a.pieces() if hasattr(a, "pieces") else pieces(a):
                file.write(piece)


class _Tensors:
    """A .safetensors file, which the engine checks and reads: entries by name, in the order of their places. most: how many there may be."""

    def __init__(self, path, most):
        self._file = _C.Safetensors(path, most)
        self._rows = {name: (i, word, dims) for i, (name, word, dims) in enumerate(self._file.rows())}
        self.names = list(self._rows)

    def __contains__(self, name):
        return name in self._rows

    def __getitem__(self, name):
        return _Tensor(self._file, *self._rows[name])


class _Tensor:
    def __init__(self, file, number, word, shape):
        self._file, self._number, self._word, self.shape = file, number, word, shape

    def read(self):
        import numpy as np
        from snug._types import as_dtype
        word = "float32" if self._word == "bfloat16" else self._word
        made = np.empty(self.shape, word)
        self._file.read(self._number, as_dtype(word), made)
        return made


@contextlib.contextmanager
def _arrays_of(path, kind, model):
    """The entries of an .npz or .safetensors file by name."""
    if kind == "npz":
        with _archives.Npz(path, 2 * len(model.weights)) as arrays:
            yield arrays
        return
    from snug import errors
    try:
        arrays = _Tensors(path, 2 * len(model.weights) + 2000)
    except errors.DataLossError as error:
        raise ValueError(str(error)) from None
    yield arrays


def load_weights(model, path, skip_mismatch=False, by_name=None):
    if not model.built and not model.weights:
        raise ValueError("You are loading weights into a model that has not yet been built. Try building the model first by calling it on"
                         " some data or by using `build()`.")
    from snug.keras import _hdf5
    kind, path = _kind(path), str(path)
    if by_name is not None and (path.endswith(".weights.h5") or not path.endswith((".h5", ".hdf5"))):
        raise ValueError(f"`by_name` only supports loading legacy '.h5' or '.hdf5' files. Received: {path}")
    if not os.path.exists(path):
        raise FileNotFoundError(f"No such file: '{path}'")
    if kind == "h5":
        with _hdf5.opened(path) as tree:
            return _load_tree(model, tree, path, skip_mismatch, by_name)
    with _arrays_of(path, kind, model) as arrays:
        names = _names(model)
        found = names if all(n in arrays for n in names) else arrays.names
        if len(found) != len(names):
            raise ValueError(f"'{path}' has {len(arrays.names)} arrays, the model {len(names)} weights")
        assign_all([(v, arrays[n]) for v, n in zip(model.weights, found)], path, skip_mismatch)


def _load_tree(model, tree, path, skip_mismatch=False, by_name=None):
    """Weights of an HDF5 file, as Keras 3 or Keras 2 writes them."""
    from snug.keras import _hdf5, _whole_h5
    if isinstance(tree, _hdf5.Found):
        tree.expect(len(model.weights))
    older = tree.get("model_weights", tree) if isinstance(tree, _hdf5.Found) else None
    if not isinstance(older, _hdf5.Found):
        raise ValueError(f"'{path}': it has no group of weights; give what save or save_weights wrote")
    if "layer_names" in older.attributes or "layer_names0" in older.attributes:        # of a whole model, or weights as Keras 2 wrote them
        return (_whole_h5.load_by_name if by_name else _whole_h5.load_weights)(model, older, path, skip_mismatch)
    if by_name:
        raise ValueError(f"'{path}' names no layers: load_weights(by_name=True) reads what Keras 2 wrote, or save of a whole model as .h5")
    _load_groups(model, tree, path, skip_mismatch)


def _load_groups(model, tree, path, skip_mismatch=False):
    """Weights of a tree that has them where Keras 3 keeps them."""
    entries = _in_order(tree, path, model)
    for above, layer in with_own(model, "load_own_variables").items():
        store = _group_of(tree, above + "vars")
        layer.load_own_variables(store.arrays() if hasattr(store, "arrays") else {k: kept.read() for k, kept in store.items()})
    assign_all(zip(model.weights, entries), path, skip_mismatch)


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


_STATE = "state"


def _named_groups(groups, model):
    """{group: {name: variable or array}}, with what layers of the user's keep themselves."""
    groups = dict(groups)
    for above, layer in with_own(model, "save_own_variables").items():
        store = groups[above + "vars"] = {}
        layer.save_own_variables(store)
    return {group: values if isinstance(values, dict) else dict(enumerate(values)) for group, values in groups.items()}


def _counters(model):
    """Of all layers, those inside of others included."""
    return [counter for layer in model._with_inner() for counter in layer._counters()]


def save_state(model, path, epoch):
    """What a fit needs to go on as if it had not stopped, in one checkpoint of the engine's: weights, the optimizer's variables, the epoch, where
    randomness stands."""
    import numpy as np
    from snug._types import as_dtype
    from snug.keras import _seed
    groups = _named_groups(_with_optimizer(model), model)
    groups[_STATE] = {"epoch": np.array([epoch], "int64"), "draws": np.array([n for n, _ in _counters(model)], "int64"),
                      "sequences": np.frombuffer(b"sequence" + _C.sequences(), "int64"), **_seed.state()}        # no array is empty
    writer = _C.CheckpointWriter(path)
    for group, named in groups.items():
        for name, value in named.items():
            value = stored(value)
            writer.begin(f"{group}/{name}", as_dtype(value.dtype.name), tuple(value.shape))
            for piece in value.pieces() if hasattr(value, "pieces") else pieces(value):
                writer.append(piece)
    writer.commit()


class _Kept:
    """An array of a checkpoint: shape; read() gives it."""

    def __init__(self, file, number, word, shape):
        self._file, self._number, self._word, self.shape = file, number, word, shape

    def read(self):
        import numpy as np
        pairs = self._word == "bfloat16"
        made = np.empty(self.shape, "uint16" if pairs else self._word)
        self._file.read(self._number, made)
        return of_bits(made) if pairs else made


class _Groups(dict):
    """The arrays of a checkpoint by the paths of their groups: {path: {name: array}}."""


def _kept(path, most):
    """The arrays of a checkpoint, which may be so many."""
    from snug import errors
    try:
        file = _C.Checkpoint(path, most)
    except errors.DataLossError as error:
        raise ValueError(str(error)) from None
    groups = _Groups()
    for number, (name, word, shape) in enumerate(file.rows()):
        group, _, last = name.rpartition("/")
        groups.setdefault(group, {})[last] = _Kept(file, number, word, shape)
    return groups


def load_state(model, path):
    """Back to where save_state was called; gives the epoch. Another model's file, or a damaged one, changes nothing."""
    from snug.keras import _seed
    with damaged(path):
        tree = _kept(path, 8 * len(model.weights) + 1000)
        state = {name: entry.read() for name, entry in _group_of(tree, _STATE).items()}
        counters, draws, sequences = _counters(model), state.pop("draws", None), state.pop("sequences", None)
        shapes = {"epoch": (1,), **{k: a.shape for k, a in _seed.state().items()}}
        if draws is None or sequences is None or {k: a.shape for k, a in state.items()} != shapes:
            raise ValueError(f"'{path}' is no state of a fit; remove it to begin anew")
        if draws.shape != (len(counters),):
            raise ValueError(f"'{path}' says of {draws.size} random sequences of layers where they stand, the model has {len(counters)}: it is of"
                             " another one")
        slots = _optimizer_entries(model, tree, path)
        _load_groups(model, tree, path)
        for v, entry in slots:
            v.assign(entry.read())
            _C.boundary()
        for n, (_, take) in zip(draws.tolist(), counters):
            take(n)
        _C.set_sequences(sequences.tobytes()[8:])
        _seed.set_state(state)      # after all that makes layers, which takes keys
        return int(state["epoch"][0])


def _optimizer_entries(model, tree, path):
    """(variable of the optimizer, what the file holds for it): all of them, or none where it had not begun."""
    entries = _group_of(tree, _OPTIMIZER)
    if not len(entries) or model.optimizer is None:
        return []
    model.optimizer.build(model.trainable_variables)
    variables = model.optimizer.variables
    if len(entries) != len(variables) or not all(str(i) in entries for i in range(len(variables))):
        raise ValueError(f"'{path}' holds {len(entries)} variables of an optimizer, the model's has {len(variables)}: it is of another one")
    pairs = [(v, entries[str(i)]) for i, v in enumerate(variables)]
    for v, entry in pairs:
        if tuple(v.shape) != entry.shape:
            raise ValueError(f"'{path}': '{v.path}' is {tuple(v.shape)}, in the file it is {entry.shape}")
    return pairs


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
    with _whole(path) as part, _aside(path) as weights:
        _write_h5(weights, _with_optimizer(model), model)
        with create(part) as made, zipfile.ZipFile(made, "w") as file:
            file.writestr(_METADATA, json.dumps({"keras_version": __version__, "date_saved": time.strftime("%Y-%m-%d@%H:%M:%S")}))
            file.writestr(_CONFIG, json.dumps(config))
            file.write(weights, _WEIGHTS)
            _save_assets(model, file)


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


def _load_assets(model, archive):
    """Files of layers of the user's, which get a folder of their own; names lead nowhere else, and sizes are what the archive holds unpacked."""
    import shutil
    import tempfile
    wanted = with_own(model, "load_assets")
    if not wanted:
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in archive.names():
            words = name.split("/")
            if words[0] != _ASSETS or name.endswith("/"):
                continue
            if any(w in ("", ".", "..") or "\\" in w or "\0" in w for w in words):
                raise ValueError(f"'{archive.path}': the asset '{name}' would lie outside its folder")
            target = os.path.join(folder, *words)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with archive.open(name, archive.ratio(name)) as source, open(target, "wb") as file:
                shutil.copyfileobj(source, file, 1 << 18)
        for above, layer in wanted.items():
            layer.load_assets(os.path.join(folder, _ASSETS, *above.split("/")).rstrip(os.sep))


def _load_optimizer(model, tree):
    if model.optimizer is None:
        return
    model.optimizer.build(model.trainable_variables)
    variables = model.optimizer.variables
    if hasattr(tree, "expect"):
        tree.expect(len(variables))
    arrays = _group_of(tree, _OPTIMIZER)
    if len(variables) == len(arrays):         # one of another kind starts anew, as Keras' does
        for i, v in enumerate(variables):
            if i != 1 or model.optimizer._schedule is None:
                v.assign(arrays[str(i)].read())
                _C.boundary()


@contextlib.contextmanager
def _weights_of(archive, model):
    """The tree of a whole model's weights: where they lie in the archive, or, packed, in a nameless file beside it, of which no more is unpacked
    than the model can need."""
    import shutil
    import tempfile
    from snug.keras import _hdf5
    place = archive.place(_WEIGHTS)
    if place is not None:
        with _hdf5.opened(archive.path, *place, archive.file) as tree:      # under the path there may be another model by now
            yield tree
        return
    bytes_of = sum(stored(v).nbytes for v in model.weights)
    with tempfile.TemporaryFile(dir=os.path.dirname(os.path.abspath(archive.path))) as file:
        with archive.open(_WEIGHTS, 8 * bytes_of + (1 << 23)) as source:
            shutil.copyfileobj(source, file, 1 << 18)
        file.flush()
        with _hdf5.opened(archive.path, file=file) as tree:
            yield tree


def load_model(path, custom_objects=None, compile=True, safe_mode=True):
    from snug.keras import _serial
    path = str(path)
    if not os.path.exists(path):
        raise ValueError(f"File not found: filepath={path}. Please ensure the file is an accessible `.keras` zip file.")
    if path.endswith((".h5", ".hdf5")):
        from snug.keras import _whole_h5
        return _whole_h5.load(path, custom_objects, compile, safe_mode)
    if not path.endswith(".keras"):
        raise ValueError(f"File format not supported: filepath={path}. Keras 3 only supports V3 `.keras` files and legacy H5 format files"
                         " (`.h5` extension). What model.export wrote is read by keras.layers.TFSMLayer or tf.saved_model.load.")
    with _opened(path) as archive, damaged(path):
        config = _config_of(archive)
        with _serial.custom_object_scope(custom_objects), _serial.trusting(not safe_mode):
            model = _serial.deserialize_keras_object(config)
            shape = (config.get("build_config") or {}).get("input_shape")
            if not model.built and shape is not None:
                model.build(tuple(shape) if isinstance(shape, list) else shape)
            has_weights = model.built or bool(model.weights)         # else there was nothing to save
            with _weights_of(archive, model) if has_weights else contextlib.nullcontext() as tree:
                if tree is not None:
                    _load_tree(model, tree, path)
                _load_assets(model, archive)
                if compile and config.get("compile_config"):
                    model.compile_from_config(config["compile_config"])
                    _load_optimizer(model, {} if tree is None else tree)
    return model


def _opened(path):
    try:
        return _archives.Archive(path)
    except ValueError as error:
        raise ValueError(f"'{path}' is not a file that Keras wrote as .keras: {error}") from None


def _config_of(archive):
    """The configuration of a whole model."""
    try:
        most = min(JSON_BYTES, archive.ratio(_CONFIG))
        with archive.open(_CONFIG, most) as member:
            check_json(iter(lambda: member.read(1 << 18), b""))
        config = parse_json(archive.read(_CONFIG, most))
        archive.info(_WEIGHTS)
    except ValueError as error:
        raise ValueError(f"'{archive.path}' is not a file that Keras wrote as .keras: {error}") from None
    if not isinstance(config.get("class_name"), str) or not isinstance(config.get("config"), dict):
        raise ValueError(f"'{archive.path}' is not a file that Keras wrote as .keras: its configuration names no class")
    return config


def to_bytes(model):
    """What save writes; the file is gone again."""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        save_model(model, path)
        with open(path, "rb") as file:
            return file.read()


def from_bytes(data, custom_objects=None, safe_mode=False):
    """What to_bytes gave. Lambdas are read, too, where pickle calls this: it trusts its bytes anyway."""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        with open(path, "wb") as file:
            file.write(data)
        return load_model(path, custom_objects, safe_mode=safe_mode)
