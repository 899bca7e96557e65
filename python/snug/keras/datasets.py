"""keras.datasets: from the local cache folder only; nothing is downloaded."""
import os
import types

_FILES = {"mnist": "mnist.npz", "fashion_mnist": "fashion-mnist", "cifar10": "cifar-10-batches-py", "cifar100": "cifar-100-python",
          "imdb": "imdb.npz", "reuters": "reuters.npz", "boston_housing": "boston_housing.npz", "california_housing":
          "california_housing.npz"}


def _path(name, path=None):
    folder = os.path.join(os.environ.get("KERAS_HOME", os.path.join(os.path.expanduser("~"), ".keras")), "datasets")
    full = path if path and os.path.isabs(path) else os.path.join(folder, path or _FILES[name])
    if not os.path.exists(full):
        raise FileNotFoundError(f"keras.datasets.{name}: there is no file '{full}'; Snug downloads nothing: put it there")
    return full


def _loader(name):
    def load_data(path=None, **settings):
        import numpy as np
        full = _path(name, path)
        if os.path.isdir(full):
            return _from_folder(name, full)
        with np.load(full, allow_pickle=name in ("imdb", "reuters")) as f:
            if "x_train" in f.files:
                return (f["x_train"], f["y_train"]), (f["x_test"], f["y_test"])
            x, y = f["x"], f["y"]
        at = int(len(x) * (1 - settings.get("test_split", 0.2)))
        return (x[:at], y[:at]), (x[at:], y[at:])
    return load_data


def _from_folder(name, folder):
    import gzip

    import numpy as np
    if name == "fashion_mnist":
        out = []
        for part in ("train", "t10k"):
            with gzip.open(os.path.join(folder, f"{part}-labels-idx1-ubyte.gz")) as f:
                labels = np.frombuffer(f.read(), np.uint8, offset=8)
            with gzip.open(os.path.join(folder, f"{part}-images-idx3-ubyte.gz")) as f:
                images = np.frombuffer(f.read(), np.uint8, offset=16).reshape(len(labels), 28, 28)
            out.append((images, labels))
        return tuple(out)
    raise NotImplementedError(f"keras.datasets.{name} in '{folder}' is not read yet")


for _name in _FILES:
    globals()[_name] = types.SimpleNamespace(load_data=_loader(_name), __name__=_name)
