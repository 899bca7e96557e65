"""Randomness of the host: orders of epochs."""
_state = {"generator": None}


def generator():
    import numpy as np
    if _state["generator"] is None:
        _state["generator"] = np.random.RandomState()
    return _state["generator"]


def set_seed(seed):
    import numpy as np
    _state["generator"] = np.random.RandomState(seed)
