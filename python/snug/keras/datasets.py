"""keras.datasets: from the local cache folder only; nothing is downloaded."""
import os
import types

from snug import _archives, _pickles
from snug._files import JSON_BYTES, open_regular, read_json

_FILES = {"mnist": ["mnist.npz"], "fashion_mnist": ["fashion-mnist"], "imdb": ["imdb.npz"], "reuters": ["reuters.npz"],
          "cifar10": ["cifar-10-batches-py-target/cifar-10-batches-py", "cifar-10-batches-py"],
          "cifar100": ["cifar-100-python-target/cifar-100-python", "cifar-100-python"],
          "boston_housing": ["boston_housing.npz"], "california_housing": ["california_housing.npz"]}


def cache_folder():
    return os.path.join(os.environ.get("KERAS_HOME", os.path.join(os.path.expanduser("~"), ".keras")), "datasets")


def _path(name, path=None):
    names = [path] if path else _FILES[name]
    full = [n if os.path.isabs(n) else os.path.join(cache_folder(), n) for n in names]
    for found in full:
        if os.path.exists(found):
            return found
    raise FileNotFoundError(f"keras.datasets.{name}: there is no file '{full[0]}'; Snug downloads nothing: put it there")


class _Arrays(dict):
    """{name: array} of an .npz file; what is missing is said by the file's name."""

    def __init__(self, path):
        super().__init__(_archives.load_npz(path, objects=True))
        self.path = path

    def __missing__(self, name):
        raise ValueError(f"'{self.path}' has no array '{name}', but {sorted(self)}; put the data set's own file there")


def _arrays(name, path):
    return _Arrays(_path(name, path))


def _mnist(path="mnist.npz"):
    f = _arrays("mnist", path)
    return (f["x_train"], f["y_train"]), (f["x_test"], f["y_test"])


_MOST_ITEMS = 60000


def _idx(path, head, item):
    """The bytes behind an idx file's head, which are as many items as the head says."""
    import zlib

    import numpy as np

    from snug._gzip import gunzip
    try:
        with open_regular(path) as packed, gunzip(packed) as f:
            start = f.read(head)
            count = int.from_bytes(start[4:8], "big")
            if count > _MOST_ITEMS:
                raise ValueError(f"'{path}' says that it holds {count} items, more than the {_MOST_ITEMS} of the data set")
            found = f.read(count * item + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"'{path}' is damaged: {error}") from None
    if len(start) != head or len(found) != count * item:
        raise ValueError(f"'{path}' does not hold the {count} items that it says; put the data set's own file there")
    return np.frombuffer(found, np.uint8)


def _fashion_mnist():
    folder, out = _path("fashion_mnist"), []
    for part in ("train", "t10k"):
        labels = _idx(os.path.join(folder, f"{part}-labels-idx1-ubyte.gz"), 8, 1)
        pictures = _idx(os.path.join(folder, f"{part}-images-idx3-ubyte.gz"), 16, 784)
        out.append((pictures.reshape(len(labels), 28, 28), labels))
    return tuple(out)


# --- small pictures -------------------------------------------------------------------------------------
def _batch(path, key):
    """Pictures with their channels last, and labels."""
    import numpy as np
    with open_regular(path) as f:
        found = _pickles.load(f, "bytes", f"'{path}'")
    if not isinstance(found, dict) or not {b"data", key.encode()} <= set(found):
        raise ValueError(f"'{path}' holds no b'data' and b'{key}'; put the files of CIFAR's Python version there")
    pictures = np.asarray(found[b"data"]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return pictures, np.array(found[key.encode()], "uint8").reshape(-1, 1)


def _cifar10():
    import numpy as np
    folder = _path("cifar10")
    parts = [_batch(os.path.join(folder, f"data_batch_{i}"), "labels") for i in range(1, 6)]
    return tuple(np.concatenate(column) for column in zip(*parts)), _batch(os.path.join(folder, "test_batch"), "labels")


def _cifar100(label_mode="fine"):
    if label_mode not in ("fine", "coarse"):
        raise ValueError(f"`label_mode` must be one of `'fine'`, `'coarse'`. Received: label_mode={label_mode}.")
    folder = _path("cifar100")
    return tuple(_batch(os.path.join(folder, part), f"{label_mode}_labels") for part in ("train", "test"))


# --- numbers of words -----------------------------------------------------------------------------------
def _words(lines, num_words, skip_top, maxlen, start_char, oov_char, index_from):
    """[(line, its place)]: begun, shifted, cut and without rare words, as the settings say."""
    if start_char is not None:
        lines = [[start_char] + [w + index_from for w in line] for line in lines]
    elif index_from:
        lines = [[w + index_from for w in line] for line in lines]
    kept = [(line, i) for i, line in enumerate(lines) if not maxlen or len(line) < maxlen]
    if not kept:
        raise ValueError(f"After filtering for sequences shorter than maxlen={maxlen}, no sequence was kept. Increase maxlen.")
    most = num_words or max(max(line) for line, _ in kept)
    inside = lambda w: skip_top <= w < most
    return [([w if inside(w) else oov_char for w in line] if oov_char is not None else [w for w in line if inside(w)], i) for line, i in kept]


def _objects(rows):
    import numpy as np
    made = np.empty(len(rows), object)
    made[:] = rows
    return made


def _shuffled(draw, x, y):
    import numpy as np
    order = np.arange(len(x))
    draw.shuffle(order)
    return x[order], y[order]


def _imdb(path="imdb.npz", num_words=None, skip_top=0, maxlen=None, seed=113, start_char=1, oov_char=2, index_from=3):
    import numpy as np
    f, draw = _arrays("imdb", path), np.random.RandomState(seed)
    train = _shuffled(draw, f["x_train"], f["y_train"])
    test = _shuffled(draw, f["x_test"], f["y_test"])
    rows = _words([*train[0], *test[0]], num_words, skip_top, maxlen, start_char, oov_char, index_from)
    labels, at = np.concatenate([train[1], test[1]]), len(train[0])
    parts = [[(line, labels[i]) for line, i in rows if (i < at) == first] for first in (True, False)]
    return tuple((_objects([line for line, _ in part]), np.array([label for _, label in part])) for part in parts)


def _reuters(path="reuters.npz", num_words=None, skip_top=0, maxlen=None, test_split=0.2, seed=113, start_char=1, oov_char=2, index_from=3):
    import numpy as np
    f = _arrays("reuters", path)
    x, y = _shuffled(np.random.RandomState(seed), f["x"], f["y"])
    rows = _words(list(x), num_words, skip_top, maxlen, start_char, oov_char, index_from)
    lines, labels, at = _objects([line for line, _ in rows]), np.array([y[i] for _, i in rows]), int(len(rows) * (1 - test_split))
    return (lines[:at], labels[:at]), (lines[at:], labels[at:])


def _word_index(name):
    def get_word_index(path=f"{name}_word_index.json"):
        return read_json(_path(name, path), limit=JSON_BYTES)
    return get_word_index


def _housing(name):
    def load_data(path=None, test_split=0.2, seed=113, version="large"):
        import numpy as np
        if version not in ("small", "large"):
            raise ValueError(f"Argument `version` must be one of 'small', 'large'. Received: version={version}")
        f, n = _arrays(name, path), 600 if version == "small" else None
        x, y = _shuffled(np.random.RandomState(seed), f["x"][:n], f["y"][:n])
        at = int(len(x) * (1 - test_split))
        return (x[:at], y[:at]), (x[at:], y[at:])
    return load_data


_LOADERS = {"mnist": _mnist, "fashion_mnist": _fashion_mnist, "cifar10": _cifar10, "cifar100": _cifar100, "imdb": _imdb, "reuters": _reuters,
            "boston_housing": _housing("boston_housing"), "california_housing": _housing("california_housing")}
for _name, _load in _LOADERS.items():
    globals()[_name] = types.SimpleNamespace(load_data=_load, __name__=_name)
for _name in ("imdb", "reuters"):
    globals()[_name].get_word_index = _word_index(_name)
