"""Snug: deep learning inside a byte budget. TensorFlow programs run unchanged: `python -m snug --budget 2GiB train.py`.

    import snug
    snug.budget("2GiB")
    import snug.tensorflow as tf
"""
__version__ = "0.1.0"


def __getattr__(name):
    import importlib
    if name in ("tensorflow", "keras", "errors", "_C", "data"):
        return importlib.import_module("snug." + name)
    if name == "BudgetError":
        from snug.errors import BudgetError
        return BudgetError
    if name == "plan":
        from snug._plan import plan
        return plan
    raise AttributeError(f"module 'snug' has no attribute '{name}'")


def budget(size=None):
    """Sets the most this process may use of the memory of the device it runs on, a GPU's or the host's: bytes, "2GiB",
    "50%", "auto"; None: no limit. Gives the number of bytes."""
    from snug import _C
    there = _C.card_budget("auto" if size is None else str(size))
    return _C.budget(size) if there is None else there


def host_budget(size=None):
    """The same of the host's memory, also where a GPU is used."""
    from snug import _C
    return _C.budget(size)


def spill(folder):
    """A folder on a disk for what does not fit the budget otherwise; None: none."""
    from snug import _C
    _C.spill(folder)


def sync():
    """Runs all that is recorded."""
    from snug import _C
    _C.sync()


def memory():
    """Who holds what: a dict of categories, `print` gives the table."""
    from snug._memory import memory
    return memory()


def progress(seconds=10):
    """While files are listed, a shuffle's buffer or a cache is filled, a line about it on stderr each so many seconds; 0: none."""
    from snug import _C
    _C.tell_passes(seconds)


def install():
    """From now on `import tensorflow` and `import keras` give Snug."""
    from snug import _hook
    _hook.install()
