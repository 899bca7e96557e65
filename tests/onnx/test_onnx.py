#!/usr/bin/env python3
"""ONNX' operator tests (Debian: libonnx-testdata) that a row of the table, or a few of them, can say: each model is mapped by
operators.py to a graph of Snug's operators, run, and compared with the recorded outputs. Skips (77) where the data are not installed.
usage: test_onnx.py LIBSNUG.SO [-v] [CASE...]"""
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import operators  # noqa: E402
import protobuf  # noqa: E402
import snug  # noqa: E402

DATA = os.environ.get("SNUG_ONNX_DATA", "/usr/share/libonnx-testdata/data/node")
RELATIVE, ABSOLUTE = 2e-5, 1e-6  # f32; integers and truth values are equal


def tensors(folder, kind):
    """input_0.pb, input_1.pb, ..."""
    out = []
    while os.path.exists(path := f"{folder}/test_data_set_0/{kind}_{len(out)}.pb"):
        with open(path, "rb") as f:
            out.append(protobuf.Tensor(f.read()))
    return out


def build(graph, model, inputs):
    """Values by name; operators.Unmapped where the table does not reach."""
    values = {"": None}
    for name, tensor in list(model.constants.items()) + list(zip(model.inputs, inputs)):
        values[name] = snug.Value(graph, tensor=tensor)
    for node in model.nodes:
        results = operators.apply(graph, node, [values[i] for i in node.inputs], model.opset)
        values.update(zip(node.outputs, results))
    outputs = [values[name] for name in model.outputs]
    if any(v.tensor is not None for v in outputs):
        raise operators.Unmapped("nothing is computed: shapes and constants")
    return outputs


def differ(got, wanted):
    """What is wrong with one output, or None."""
    if len(got) != len(wanted.data):
        return f"{len(got)} elements, not {len(wanted.data)}"
    for i, (g, w) in enumerate(zip(got, wanted.data)):
        if g == w or (g != g and w != w):
            continue
        if not isinstance(w, float) or not abs(g - w) <= ABSOLUTE + RELATIVE * abs(w) or math.isinf(w):
            return f"element {i} is {g!r}, not {w!r}"
    return None


def run(lib, folder):
    """'' when right, what is wrong, or None when the table does not map it."""
    with open(f"{folder}/model.onnx", "rb") as f:
        model = protobuf.Model(f.read())
    if not model.has_tensors_alone:
        return None
    inputs, wanted = tensors(folder, "input"), tensors(folder, "output")
    if any(t.dtype is None for t in inputs + wanted + list(model.constants.values())) or not wanted:
        return None
    graph = snug.Graph(lib)
    try:
        outputs = build(graph, model, inputs)
        for v, w in zip(outputs, wanted):
            if (v.dtype, v.shape) != (w.dtype, list(w.shape)):
                return f"type {v.dtype}{v.shape}, not {w.dtype}{w.shape}"
        results = graph.run(outputs)
    except operators.Unmapped:
        return None
    except snug.Refused as e:
        return f"refused: {e}"
    finally:
        graph.close()
    return next(filter(None, map(differ, results, wanted)), "")


def main():
    arguments = [a for a in sys.argv[2:] if a != "-v"]
    if not os.path.isdir(DATA):
        print("libonnx-testdata is not installed")
        return 77
    lib, used, wrong, unmapped = snug.Library(sys.argv[1]), 0, 0, []
    for case in arguments or sorted(os.listdir(DATA)):
        said = run(lib, f"{DATA}/{case}")
        if said is None:
            unmapped.append(case)
            continue
        used += 1
        if said:
            wrong += 1
            print(f"{case}: {said}")
    lib.close()
    if "-v" in sys.argv:
        print("not mapped:", *unmapped)
    print(f"{used} of {used + len(unmapped)} ONNX operator tests used, {wrong} wrong")
    return 1 if wrong or (not arguments and used < operators.LEAST) else 0


if __name__ == "__main__":
    sys.exit(main())
