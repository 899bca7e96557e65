"""What a parity program calls, and how one program is run in a process of its own.

A program says `check(name, value[, tol])` for each result and `raises(Class, function)` for each error. Both append an
entry to a list, which is the outcome of the program: plain data that JSON holds. The same program run on TensorFlow
(record.py) and on Snug (run.py) must give the same list; parity.py knows neither of the two.

Invariants: (1) an entry holds bytes that were read, so a pending value is computed when it is checked; (2) values keep
what a user can see of them: tensor, variable, NumPy array or plain Python value, shape, dtype.
"""
import io
import json
import multiprocessing
import os
import runpy
import sys
import time
import traceback

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ("programs", "scripts", "beyond")      # beyond: what later issues bring
MAX_ELEMENTS = 2000
_entries = []


def _kind(value):
    if hasattr(value, "assign") and hasattr(value, "numpy"):
        return "variable"
    return "tensor" if hasattr(value, "numpy") else "array"


def _array(value, kind):
    a = np.asarray(value.numpy() if kind != "array" else value)
    if a.size > MAX_ELEMENTS:
        raise ValueError(f"a check holds {a.size} elements, {MAX_ELEMENTS} are allowed; check a sum or a slice")
    if a.dtype.kind == "c":
        data = [str(x) for x in a.ravel()]
    elif a.dtype.kind in "SO":
        data = [x.decode() if isinstance(x, bytes) else str(x) for x in a.ravel()]
    elif a.dtype.kind in "biuU":
        data = a.ravel().tolist()
    else:
        data = [float(str(x)) for x in a.ravel()]      # shortest digits that name the value in its own type
    return {"kind": kind, "dtype": str(a.dtype), "shape": list(a.shape), "data": data}


def _describe(value):
    """The value as plain data. Order matters: a bool is an int, and a TensorShape may be a tuple."""
    if value is None or isinstance(value, (bool, int, str)):
        return {"kind": type(value).__name__, "data": value}
    if isinstance(value, float) and not isinstance(value, np.generic):
        return {"kind": "float", "data": value}
    if isinstance(value, bytes):
        return {"kind": "bytes", "data": value.decode()}
    if isinstance(value, dict):
        return {"kind": "dict", "data": [[str(k), _describe(v)] for k, v in value.items()]}
    if hasattr(value, "as_list") and hasattr(value, "rank"):
        return {"kind": "shape", "data": None if value.rank is None else value.as_list()}
    if isinstance(value, (list, tuple)):
        return {"kind": "list" if isinstance(value, list) else "tuple", "data": [_describe(v) for v in value]}
    if hasattr(value, "as_numpy_dtype"):
        return {"kind": "dtype", "data": value.name}
    kind = _kind(value)
    if kind == "array" and not isinstance(value, (np.ndarray, np.generic)):
        return {"kind": "object", "data": type(value).__name__}
    return _array(value, kind)


def check(name, value, tol=None):
    """One result: compared with what TensorFlow gave; tol is relative, and absolute for values below 1."""
    entry = {"name": name, "value": _describe(value)}
    if tol is not None:
        entry["tol"] = tol
    _entries.append(entry)


def raises(kind, function):
    """One error: function() must raise `kind`, and the class that was raised is compared, unless `kind` is a tuple: then
    any of its classes will do. What function() returns is read, since some errors wait for the values."""
    try:
        result = function()
        for part in result if isinstance(result, (list, tuple)) else [result]:
            if hasattr(part, "numpy"):
                part.numpy()
    except kind as error:
        names = [c.__name__ for c in kind] if isinstance(kind, tuple) else [kind.__name__, type(error).__name__]
        _entries.append({"name": "raises", "value": {"kind": "raises", "data": names}})
        return
    except Exception as error:
        what = f"{type(error).__name__}: {str(error)[:300]}"
    else:
        what = "nothing raised"
    _entries.append({"name": "raises", "value": {"kind": "raises", "data": what}})


def path_of(name):
    """The file of a program; None if there is none of that name."""
    paths = [os.path.join(HERE, folder, name + ".py") for folder in FOLDERS]
    return next((p for p in paths if os.path.exists(p)), None)


def all_names(folders=FOLDERS):
    return sorted(f[:-3] for folder in folders for f in os.listdir(os.path.join(HERE, folder)) if f.endswith(".py"))


def _child(name, before, queue):
    """Runs one program; its printed lines are captured and are part of the outcome of a script."""
    sys.modules["parity"] = sys.modules[__name__]
    sys.dont_write_bytecode = True
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"          # the recordings were made without a GPU
    path = path_of(name)
    real, sys.stdout = sys.stdout, io.StringIO()
    error = None
    try:
        before()
        sys.argv = [path]
        runpy.run_path(path, run_name="__main__")
    except BaseException:
        error = traceback.format_exc()
    text, sys.stdout = sys.stdout.getvalue(), real
    if os.path.basename(os.path.dirname(path)) == "scripts":
        _entries.append({"name": "printed", "value": {"kind": "printed", "data": text.splitlines()}})
    queue.send(json.dumps({"entries": _entries, "error": error, "text": text[-2000:]}))
    queue.close()
    sys.stderr.flush()
    os._exit(0)


class _Run:
    """A program that is running in a forked process."""

    def __init__(self, name, before, limit_s):
        self.name = name
        self.limit = time.time() + limit_s
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe(duplex=False)
        self.process = context.Process(target=_child, args=(name, before, other))
        self.started = time.time()
        self.process.start()
        other.close()

    def outcome(self):
        """The outcome when it is there, else None."""
        late = time.time() > self.limit
        if not self.pipe.poll(0.02) and self.process.is_alive() and not late:
            return None
        try:
            result = json.loads(self.pipe.recv()) if self.pipe.poll() else None
        except EOFError:
            result = None
        if result is None and late:
            self.process.kill()
        self.process.join()
        if result is None:
            why = "timeout" if late else f"died with exit code {self.process.exitcode}"
            result = {"entries": [], "error": why, "text": ""}
        result["seconds"] = time.time() - self.started
        return result


def run_all(names, before, jobs=2, limit_s=600):
    """Yields (name, outcome) as programs end; `before()` runs first in each process."""
    waiting, running = list(names), []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(_Run(waiting.pop(0), before, limit_s))
        for run in list(running):
            outcome = run.outcome()
            if outcome is not None:
                running.remove(run)
                yield run.name, outcome
