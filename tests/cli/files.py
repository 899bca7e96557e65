"""Small files for the tests of the command: .npy, idx, safetensors and model JSON, with nothing but the standard library."""
import gzip
import json
import struct


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f)
    return path


def npy(path, descr, shape, values=None, raw=None):
    """An .npy file of version 1.0. values: numbers in order; raw: bytes instead."""
    code = {"<f2": "e", "<f4": "f", "<f8": "d", "|u1": "B", "<i4": "i", "<i8": "q"}
    data = raw if raw is not None else struct.pack(f"<{len(values)}{code[descr]}", *values)
    dims = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return write(path, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)


def read_npy(path):
    """(shape, values) of an f16, f32 or f64 file."""
    data = read(path)
    n = struct.unpack("<H", data[8:10])[0]
    head = eval(data[10:10 + n], {})  # our own file
    code, size = {"<f2": ("e", 2), "<f4": ("f", 4), "<f8": ("d", 8), "<i4": ("i", 4)}[head["descr"]]
    body = data[10 + n:]
    return head["shape"], struct.unpack(f"<{len(body) // size}{code}", body)


def tensors(data):
    """All bytes of the tensors of a safetensors file, in order."""
    return data[8 + struct.unpack("<Q", data[:8])[0]:]


def idx_gz(path, shape, values):
    data = struct.pack(">BBBB", 0, 0, 8, len(shape)) + struct.pack(f">{len(shape)}I", *shape) + bytes(values)
    with gzip.open(path, "wb") as f:
        f.write(data)
    return path


def dense(name, units, activation="linear", **more):
    return {"class_name": "Dense", "config": {"name": name, "units": units, "activation": activation, **more}}


def model(path, n_in, layers, **compile_config):
    """A Sequential model; compile settings only when some are given."""
    shape = n_in if isinstance(n_in, list) else [n_in]
    first = {"class_name": "InputLayer", "config": {"batch_shape": [None] + shape, "name": "input"}}
    root = {"class_name": "Sequential", "config": {"name": "m", "layers": [first] + layers}}
    if compile_config:
        root["compile_config"] = compile_config
    with open(path, "w") as f:
        json.dump(root, f)
    return path
