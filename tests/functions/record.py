#!/usr/bin/env python3
"""Records what TensorFlow and Keras give for calls of functions: tests/functions/*.txt, which test_functions runs.
usage: record.py [GROUP...]   (in a Python with TensorFlow 2.21 and Keras 3)

A case is a block of lines: `call NAME`, its arguments, one per line (`kw NAME` before one given by name), then `out` lines with
the results and, where the first of the arguments is a float tensor, a `grad` line with the gradient of their sum by it; or `fails`. Arguments: T dtype rank dims... values..., I integer, R real, B truth, S text, N none, L n (n arguments
follow)."""
import os
import sys

import numpy as np

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402
import keras  # noqa: E402

sys.path.insert(0, os.path.dirname(__file__))
# Draws, functions with ties in their cases, and those whose gradient is None in Snug where it is zeros in TensorFlow.
NO_GRADIENT = "dropout where boolean_mask rgb_to_hsv sign ensure_shape".split()
NAMES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "bool": "bool", "uint8": "u8", "int8": "i8"}


def numbers(a):
    return " ".join(repr(float(v)) if a.dtype.kind == "f" else str(int(v)) for v in a.reshape(-1))


def tensor(a):
    return f"{NAMES[a.dtype.name]} {a.ndim} {' '.join(map(str, a.shape))} {numbers(a)}".rstrip().replace("  ", " ")


def argument(v, out):
    if isinstance(v, np.ndarray):
        out.append("T " + tensor(v))
    elif v is None:
        out.append("N")
    elif isinstance(v, bool):
        out.append(f"B {int(v)}")
    elif isinstance(v, int):
        out.append(f"I {v}")
    elif isinstance(v, float):
        out.append(f"R {v!r}")
    elif isinstance(v, str):
        out.append("S " + v)
    elif isinstance(v, (list, tuple)):
        out.append(f"L {len(v)}")
        for item in v:
            argument(item, out)
    else:
        raise TypeError(type(v))


def as_given(v):
    """Arrays as tensors: TensorFlow's rules for dtypes are those of tensors."""
    if isinstance(v, np.ndarray):
        return tf.constant(v)
    if isinstance(v, (list, tuple)):
        return [as_given(x) for x in v]
    return v


def find(name):
    at = {"tf": tf, "keras": tf.keras if name.startswith("keras.backend") else keras}[name.split(".")[0]]
    for part in name.split(".")[1:]:
        at = getattr(at, part)
    return at


def flat(result):
    if isinstance(result, (list, tuple)):
        return [x for r in result for x in flat(r)]
    return [np.asarray(result)]


def record(name, args, kwargs, spread):
    lines = ["call " + name]
    for a in args:
        argument(a, lines)
    for k, v in kwargs.items():
        lines.append("kw " + k)
        argument(v, lines)
    call = [as_given(a) for a in args]
    first = call[0] if call and isinstance(args[0], np.ndarray) and args[0].dtype.kind == "f" else None
    if spread is not None:
        call = call[:spread] + list(call[spread])
    try:
        with tf.GradientTape() as tape:
            if first is not None:
                tape.watch(first)
            given = find(name)(*call, **{k: as_given(v) for k, v in kwargs.items()})
        results = flat(given)
    except (tf.errors.InvalidArgumentError, ValueError, TypeError):
        return lines + ["fails"]
    lines += ["out " + tensor(r) for r in results]
    return lines + gradient(tape, given, first, name)


def gradient(tape, given, first, name):
    if first is None or name.split(".")[-1] in NO_GRADIENT:
        return []
    try:
        targets = [g for g in tf.nest.flatten(given) if tf.is_tensor(g) and g.dtype.is_floating]
        g = tape.gradient(targets, first) if targets else None
    except (LookupError, ValueError):
        return []
    return [] if g is None else ["grad " + tensor(tf.convert_to_tensor(g).numpy())]


def main():
    import cases
    for group, rows in cases.GROUPS.items():
        if sys.argv[1:] and group not in sys.argv[1:]:
            continue
        lines = []
        for row in rows:
            name, args = row[0], row[1]
            lines += record(name, args, row[2] if len(row) > 2 else {}, row[3] if len(row) > 3 else None)
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), group + ".txt")
        open(path, "w").write("\n".join(lines) + "\n")
        print(group, sum(x.startswith("call") for x in lines), "cases,", sum(x == "fails" for x in lines), "fail")


if __name__ == "__main__":
    main()
