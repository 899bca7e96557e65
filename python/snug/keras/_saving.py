"""Weights in files: .npz (by position and path) and .safetensors; whole models as a JSON beside them are not written yet."""
import json
import os
import struct


def _kind(path):
    path = str(path)
    if path.endswith(".npz"):
        return "npz"
    if path.endswith(".safetensors"):
        return "safetensors"
    if path.endswith((".weights.h5", ".h5", ".hdf5")):
        raise NotImplementedError(f"'{path}': HDF5 files are not in Snug yet; use a name that ends in .npz or .safetensors")
    raise ValueError(f"The filename must end in `.weights.h5`, `.npz` or `.safetensors`. Received: filepath={path}")


def _names(model):
    seen, names = {}, []
    for v in model.weights:
        name = v.path if hasattr(v, "path") else v.name
        n = seen[name] = seen.get(name, 0) + 1
        names.append(name if n == 1 else f"{name}_{n}")
    return names


def save_weights(model, path, overwrite=True):
    import numpy as np
    kind, path = _kind(path), str(path)
    if not overwrite and os.path.exists(path):
        raise ValueError(f"'{path}' exists; give overwrite=True")
    arrays = {name: v.numpy() for name, v in zip(_names(model), model.weights)}
    part = path + ".part"
    if kind == "npz":
        with open(part, "wb") as file:
            np.savez(file, **arrays)
    else:
        _write_safetensors(part, arrays)
    os.replace(part, path)


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
    import numpy as np
    kind, path = _kind(path), str(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"No such file: '{path}'")
    if kind == "npz":
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
    else:
        arrays = _read_safetensors(path)
    names = _names(model)
    values = [arrays[n] for n in names] if all(n in arrays for n in names) else list(arrays.values())
    if len(values) != len(names):
        raise ValueError(f"'{path}' has {len(values)} arrays, the model {len(names)} weights")
    for v, value in zip(model.weights, values):
        if tuple(v.shape) != tuple(value.shape):
            if skip_mismatch:
                continue
            raise ValueError(f"weight '{v.name}' is {tuple(v.shape)}, in '{path}' it is {tuple(value.shape)}")
        v.assign(value)


def save_model(model, path, overwrite=True):
    raise NotImplementedError(f"'{path}': whole models are not written yet; use model.save_weights('x.safetensors') and model.to_json()")


def load_model(path, custom_objects=None):
    raise NotImplementedError(f"'{path}': whole models are not read yet; use keras.models.model_from_json and load_weights")
