"""Randomness of the host: orders of epochs; and where all randomness stands, for a fit that goes on."""
_state = {"generator": None}


def generator():
    import numpy as np
    if _state["generator"] is None:
        _state["generator"] = np.random.RandomState()
    return _state["generator"]


def set_seed(seed):
    import numpy as np
    _state["generator"] = np.random.RandomState(seed)


def state():
    """{name: array} of where the engine's keys, the host's generator and tf.random's global one stand."""
    import numpy as np
    from snug import _C, _random
    _, words, place, has_one, one = generator().get_state()
    return {"engine": np.array(_C.random_state(), "uint64").view("int64"), "words": words.astype("int64"),
            "global": np.array([_random.get_global_generator()._count], "int64"), "place": np.array([place, has_one], "int64"),
            "one": np.array([one], "float64")}


def set_state(arrays):
    from snug import _C, _random
    _random.get_global_generator()._count = int(arrays["global"][0])
    place, has_one = (int(n) for n in arrays["place"])
    generator().set_state(("MT19937", arrays["words"].astype("uint32"), place, has_one, float(arrays["one"][0])))
    _C.set_random_state(*(int(n) for n in arrays["engine"].view("uint64")))
