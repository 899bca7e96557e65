#!/usr/bin/env python3
"""Runs the parity programs on Snug and compares with what TensorFlow gave (expected/NAME.json).
usage: run.py [--list] [--jobs N] [--timeout SECONDS] [--beyond] [--all-errors] [--as-is] [--device gpu] [NAME...]

One line per program, then "N passed, M failed"; the exit code is 0 when none failed. A value agrees when kind, dtype and
shape are equal and each element is within the tolerance of its entry (f32 1e-5, f64 1e-9, f16 1e-3: relative, and
absolute below 1). Printed numbers agree within two units of their last printed digit or 1e-4 of their value.
On a GPU products are made in f32, not TF32, so that the same tolerances hold."""
import argparse
import json
import math
import os
import re
import sys

import parity

TOLERANCE = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-5, "float64": 1e-9}
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf")


NOT_ON_A_GPU = {"device_config", "devices_scopes"}  # their recordings say that there is none


def use_snug():
    import snug
    snug.install()


def use_gpu():
    use_snug()
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    from snug import _C
    _C.choose_device("gpu")
    _C.exact_products(True)


def number_differs(want, got, tol):
    if want != want or got != got:
        return (want != want) != (got != got)
    if want == got or math.isinf(want) or math.isinf(got):
        return want != got
    return not abs(want - got) <= tol * max(1.0, abs(want))


def compare_arrays(want, got, tol):
    for field in ("kind", "dtype", "shape"):
        if want[field] != got[field]:
            return f"{field} is {got[field]}, expected {want[field]}"
    exact = want["dtype"] not in TOLERANCE
    for i, (w, g) in enumerate(zip(want["data"], got["data"])):
        if w != g if exact else number_differs(w, g, tol or TOLERANCE[want["dtype"]]):
            return f"element {i} of {want['shape']} is {g}, expected {w}"
    return None


def compare_parts(want, got, tol):
    if len(want) != len(got):
        return f"{len(got)} parts, expected {len(want)}"
    for i, (w, g) in enumerate(zip(want, got)):
        why = compare(w, g, tol)
        if why:
            return f"part {i}: {why}"
    return None


def compare_lines(want, got):
    for n, (w, g) in enumerate(zip(want, got), 1):
        numbers_w, numbers_g = NUMBER.findall(w), NUMBER.findall(g)
        if NUMBER.sub("#", w) != NUMBER.sub("#", g):
            return f"line {n} is {g!r}, expected {w!r}"
        for a, b in zip(numbers_w, numbers_g):
            digits = len(a.split(".")[1]) if "." in a and "e" not in a.lower() else 0
            slack = 2 * 10.0 ** -digits if "." in a else 0
            if a != b and ("." not in a or number_differs(float(a), float(b), max(slack, 1e-4))):
                return f"line {n} has {b}, expected {a}: {g!r}"
    if len(want) != len(got):
        return f"{len(got)} lines, expected {len(want)}"
    return None


def compare(want, got, tol):
    """What differs, in words; None when nothing does."""
    kind = want["kind"]
    if kind != got["kind"]:
        return f"a {got['kind']} ({str(got['data'])[:200]}), expected a {kind} ({str(want['data'])[:80]})"
    if "dtype" in want:
        return compare_arrays(want, got, tol)
    if kind in ("list", "tuple"):
        return compare_parts(want["data"], got["data"], tol)
    if kind == "dict":
        left, right = dict(want["data"]), dict(got["data"])
        if left.keys() != right.keys():
            return f"keys {sorted(right)}, expected {sorted(left)}"
        return compare_parts([left[k] for k in left], [right[k] for k in left], tol)
    if kind == "float":
        differs = number_differs(want["data"], got["data"], tol or 1e-5)
    elif kind == "printed":
        return compare_lines(want["data"], got["data"])
    else:
        differs = want["data"] != got["data"]
    return f"{got['data']!r}, expected {want['data']!r}" if differs else None


def judge(name, outcome):
    """All that differs between this outcome and the recording, one line each."""
    path = os.path.join(parity.HERE, "expected", name + ".json")
    if not os.path.exists(path):
        return ["no recording"]
    with open(path) as f:
        expected = json.load(f)
    found = []
    for want, got in zip(expected, outcome["entries"]):
        if want["name"] != got["name"]:
            return found + [f"checks {got['name']!r} where {want['name']!r} was expected"]
        why = compare(want["value"], got["value"], want.get("tol"))
        if why:
            found.append(f"{want['name']}: {why}")
    if outcome["error"]:
        lines = outcome["error"].strip().splitlines()
        places = [l.strip() for l in lines if l.strip().startswith("File")]
        where = [l for l in places if any(f"/{folder}/" in l for folder in parity.FOLDERS)]
        place = re.sub(r'File ".*/', "", where[-1]).replace('"', "") if where else ""
        found.append(f"{lines[-1]} [{place}]")
    elif len(expected) != len(outcome["entries"]):
        found.append(f"{len(outcome['entries'])} entries, expected {len(expected)}")
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("names", nargs="*", help="programs to run; all when none is named")
    options.add_argument("--list", action="store_true", help="print the names of the programs")
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--timeout", type=float, default=60)
    options.add_argument("--beyond", action="store_true", help="also what is beyond the Python door's issue")
    options.add_argument("--as-is", action="store_true", help="import what is installed: checks the recordings themselves")
    options.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    options.add_argument("--all-errors", action="store_true", help="print all that differs, not the first")
    given = options.parse_args()
    every = parity.all_names(parity.FOLDERS if given.beyond else parity.FOLDERS[:2])
    if given.list:
        print("\n".join(every))
        return 0
    unknown = [n for n in given.names if parity.path_of(n) is None]
    if unknown:
        sys.exit("no such program: " + " ".join(unknown))
    if given.as_is:
        import tensorflow  # noqa: F401 (once, before the processes fork)
    passed = failed = 0
    names, before = given.names or every, (lambda: None) if given.as_is else use_snug
    if given.device == "gpu":
        names, before = [n for n in names if n not in NOT_ON_A_GPU], use_gpu
    for name, outcome in parity.run_all(names, before, given.jobs, given.timeout):
        found = judge(name, outcome)
        passed, failed = (passed + 1, failed) if not found else (passed, failed + 1)
        print(f"{'ok    ' if not found else 'FAILED'} {name}", flush=True)
        for line in found if given.all_errors else found[:1]:
            print("       " + line[:400], flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
