"""tensorflow, as Snug has it: `import snug.tensorflow as tf`. Names are found when first used (snug/_names.py)."""
from snug import _names

__version__ = "2.21.0"
newaxis = None


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    found = _names.find("", name)
    globals()[name] = found
    return found


def __dir__():
    return sorted(_names.names_of("") | {"__version__", "newaxis"})
