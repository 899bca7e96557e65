"""keras, as Snug has it. Names are found when first used."""
import importlib

__version__ = "3.15.1"

_MODULES = ("layers losses metrics optimizers initializers regularizers constraints activations callbacks utils backend ops random"
            " models saving mixed_precision datasets preprocessing config applications tree dtype_policies wrappers").split()
_FROM = {"Model": "_models", "Sequential": "_models", "Input": "layers", "Layer": "_layer", "InputSpec": "_layer",
         "KerasTensor": "_symbolic", "Variable": "_variable:KerasVariable", "Loss": "losses", "Metric": "metrics",
         "Optimizer": "optimizers", "Initializer": "initializers", "Regularizer": "regularizers", "Function": "_symbolic:Operation",
         "Operation": "_symbolic", "device": "utils", "name_scope": "utils", "version": "utils", "DTypePolicy": "dtype_policies", "FloatDTypePolicy": "dtype_policies"}


def __getattr__(name):
    if name == "__all__":       # what a star gives
        return __dir__()
    if name in _MODULES:
        found = importlib.import_module("snug.keras." + name)
    elif name in _FROM:
        module, _, attribute = _FROM[name].partition(":")
        found = getattr(importlib.import_module("snug.keras." + module), attribute or name)
    else:
        import difflib
        near = difflib.get_close_matches(name, _MODULES + list(_FROM), 1)
        raise AttributeError(f"keras.{name} is not in Snug" + (f"; the nearest is keras.{near[0]}" if near else ""))
    globals()[name] = found
    return found


def __dir__():
    return sorted(_MODULES + list(_FROM))
