"""`import tensorflow` and `import keras` resolve to Snug: a finder in front of the others, only after install()."""
import importlib
import importlib.abc
import importlib.util
import sys

_ROOTS = {"tensorflow": "snug.tensorflow", "keras": "snug.keras"}


def real_name(name):
    """'tensorflow.keras.layers' -> 'snug.keras.layers'; None where it is no name of TensorFlow's."""
    root, _, rest = name.partition(".")
    if root not in _ROOTS:
        return None
    for inner in ("compat.v1.keras", "python.keras", "keras.src", "keras", "src"):         # where others find the same names
        if rest == inner or rest.startswith(inner + "."):
            if (root == "tensorflow") == (inner != "src"):
                return "snug.keras" + rest[len(inner):]
    if root == "tensorflow" and (rest == "compat.v1" or rest.startswith("compat.v1.")):
        return "snug.compat_v1" + rest[len("compat.v1"):]
    return _ROOTS[root] + ("." + rest if rest else "")


def _module(name):
    """The module of one of Snug's names: a file, or a namespace that is none."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
    parent, _, last = name.rpartition(".")
    found = getattr(_module(parent), last, None) if parent else None
    if not isinstance(found, type(sys)):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return found


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        real = real_name(name)
        if real is None:
            return None
        try:
            module = _module(real)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"{name} is not in Snug ({error})", name=name) from None
        spec = importlib.util.spec_from_loader(name, self, is_package=True)     # its modules may be attributes, not files
        spec.loader_state = (module, getattr(module, "__spec__", None))
        return spec

    def create_module(self, spec):
        return spec.loader_state[0]

    def exec_module(self, module):
        spec = module.__spec__
        module.__spec__ = spec.loader_state[1] if spec.loader_state else spec


NUMPY = 21 << 20            # its code, the libraries behind it, its modules: measured, and a tenth more


class _AfterNumpy(importlib.abc.MetaPathFinder):
    """Numpy as the others find it. What it brings is asked for at once: libraries ask nobody. Once it is there its arrays ask the budget."""
    looking = False

    def find_spec(self, name, path=None, target=None):
        if name != "numpy" or self.looking:
            return None
        self.looking = True
        spec = importlib.util.find_spec(name)
        self.looking = False
        sys.meta_path.remove(self)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                from snug import _C
                _C.ask(NUMPY, "of NumPy's code and modules")
                run(module)
                _C.guard_arrays()
                _C.book_objects()
            spec.loader.exec_module = exec_module
        return spec


def watch_numpy():
    if not any(isinstance(f, _AfterNumpy) for f in sys.meta_path):
        sys.meta_path.insert(0, _AfterNumpy())


_finder = _Finder()


def install():
    if _finder not in sys.meta_path:
        for name in [n for n in sys.modules if n.partition(".")[0] in _ROOTS]:
            if real_name(name) not in sys.modules or sys.modules[name] is not sys.modules.get(real_name(name)):
                del sys.modules[name]
        sys.meta_path.insert(0, _finder)
