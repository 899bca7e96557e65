"""keras.utils."""
import sys
import time
import warnings

from snug._given import default_only
from snug import _C
from snug._files import _whole
from snug.keras._data import Stream  # noqa: F401
from snug.keras._drawing import model_to_dot, plot_model  # noqa: F401
from snug.keras._pictures import array_to_img, image_dataset_from_directory, img_to_array, load_img, save_img  # noqa: F401
from snug.keras._texts import audio_dataset_from_directory, text_dataset_from_directory  # noqa: F401
from snug.keras._serial import (CustomObjectScope, custom_object_scope, deserialize_keras_object, get_custom_objects,  # noqa: F401
                                get_registered_name, get_registered_object, register_keras_serializable, serialize_keras_object)
from snug.keras._training import pack_x_y_sample_weight, unpack_x_y_sample_weight  # noqa: F401


def to_categorical(x, num_classes=None):
    import numpy as np
    x = np.asarray(x, dtype="int64")
    shape = x.shape[:-1] if x.ndim > 1 and x.shape[-1] == 1 else x.shape
    flat = x.reshape(-1)
    n = int(num_classes) if num_classes else int(flat.max()) + 1
    out = np.zeros((flat.size, n))
    out[np.arange(flat.size), flat] = 1
    return out.reshape(*shape, n)


def normalize(x, axis=-1, order=2):
    import numpy as np
    norm = np.atleast_1d(np.linalg.norm(x, order, axis))
    norm[norm == 0] = 1
    return x / np.expand_dims(norm, axis)


def set_random_seed(seed):
    import random

    import numpy as np
    from snug._lazy import tf
    from snug.keras import _seed
    random.seed(seed)
    np.random.seed(seed)
    tf.random.set_seed(seed)
    _seed.set_seed(seed)


class PyDataset:
    """Batches by index: subclasses have __len__ and __getitem__."""

    def __init__(self, workers=1, use_multiprocessing=False, max_queue_size=10):
        self.workers = workers

    def __getitem__(self, index):
        raise NotImplementedError

    def on_epoch_begin(self):
        pass

    def on_epoch_end(self):
        pass

    @property
    def num_batches(self):
        return len(self)


Sequence = PyDataset


def get_file(fname=None, origin=None, untar=False, md5_hash=None, file_hash=None, cache_subdir="datasets", hash_algorithm="auto", extract=False,
             archive_format="auto", cache_dir=None, force_download=False):
    """A file that is in the cache folder already, or that `origin` names on this machine."""
    import os
    import shutil
    from snug.keras import datasets
    name = str(fname or os.path.basename(str(origin or "").rstrip("/")))
    if os.sep in name and not os.path.isabs(name):
        raise ValueError(f"keras.utils.get_file: fname={name} has a folder; give it as cache_dir and cache_subdir, or a whole path")
    folder = os.path.join(cache_dir, cache_subdir) if cache_dir else os.path.join(os.path.dirname(datasets.cache_folder()), cache_subdir)
    path = os.path.join(folder, name)           # a whole path stays what it is
    local = str(origin or "").removeprefix("file://")
    if (force_download or not os.path.exists(path)) and os.path.exists(local):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with _whole(path) as part:
            shutil.copyfile(local, part)
    if not os.path.exists(path):
        raise FileNotFoundError(f"keras.utils.get_file: there is no file '{path}'; Snug downloads nothing: put {origin or name} there")
    if file_hash is not None or md5_hash is not None:
        _verify(path, file_hash or md5_hash, hash_algorithm if file_hash else "md5")
    if (extract or untar) and os.path.isfile(path):
        target = path + "_extracted"
        if force_download:
            shutil.rmtree(target, ignore_errors=True)
        if not os.path.exists(target):
            if not _is_archive(path, "tar" if untar else archive_format):
                warnings.warn("Could not extract archive.", stacklevel=2)
                return target
            _unpack_whole(path, target)
        return target
    return path


def _unpack_whole(path, target):
    """The folder is there when all is in it; of two programs that unpack at once, the first one's stays."""
    import os
    import secrets
    import shutil
    part = f"{target}.{secrets.token_hex(8)}.part"
    try:
        os.mkdir(part)
        _unpack(path, part)
        os.rename(part, target)
    except OSError:
        if not os.path.isdir(target):
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _verify(path, wanted, algorithm):
    import hashlib
    algorithm = ("sha256" if len(wanted) == 64 else "md5") if algorithm == "auto" else algorithm
    made = hashlib.new(algorithm)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            made.update(block)
    if made.hexdigest() != str(wanted).lower():
        raise ValueError(f"keras.utils.get_file: the {algorithm} hash of '{path}' is {made.hexdigest()}, not {wanted}; put the whole"
                         " file there")


def _is_archive(path, formats):
    """Whether it is one of these: "tar", "zip", a list of them, "auto" (both) or None."""
    import tarfile
    import zipfile
    tests = {"tar": tarfile.is_tarfile, "zip": zipfile.is_zipfile}
    formats = list(tests) if formats == "auto" else [formats] if isinstance(formats, str) else formats or []
    unknown = [f for f in formats if f not in tests]
    if unknown:
        raise NotImplementedError(f"keras.utils.get_file: archive_format={unknown[0]!r} is not known; give 'auto', 'tar', 'zip' or None")
    return any(tests[f](path) for f in formats)


def _unpack(path, target):
    """Nothing of an archive lands outside its folder."""
    import shutil
    import tarfile
    if not tarfile.is_tarfile(path):
        return shutil.unpack_archive(path, target, "zip")
    with tarfile.open(path) as archive:
        if hasattr(tarfile, "data_filter"):
            return archive.extractall(target, filter="data")
        for member in archive:
            _stays(member, path)
            _made_plain(member)
        archive.extractall(target)


def _made_plain(member):
    """As that filter does it: the owner is who unpacks, who can read it all; nobody else writes, and nothing runs as another."""
    import os
    mode = member.mode & (0o755 if member.mode & 0o100 else 0o644)
    member.mode = mode | 0o600 if member.isreg() or member.islnk() else 0o755
    member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""


def _stays(member, path):
    """As the filter of newer Pythons, more strictly: links go down alone, so no chain of them leaves."""
    import tarfile
    names = [member.name] + ([member.linkname] if member.issym() or member.islnk() else [])
    if any(name.startswith("/") or ".." in name.split("/") for name in names) or not (member.isreg() or member.isdir() or names[1:]):
        raise tarfile.ExtractError(f"keras.utils.get_file: '{member.name}' of '{path}' would be outside its folder, or is no file;"
                                   " unpack it yourself and give the folder's path")


class Progbar:
    """The bar of fit, for loops of one's own; metrics that are no state are means over the units seen."""

    def __init__(self, target, width=20, verbose=1, interval=0.05, stateful_metrics=None, unit_name="step"):
        self.target, self.verbose, self.width, self.unit_name = target, verbose, width, unit_name
        self.seen, self._sums, self._shown = 0, {}, 0.0
        self.interval, self._began, self._stateful = interval, time.time(), set(stateful_metrics or ())

    def update(self, current, values=None, finalize=None):
        from snug.keras.callbacks import bar_text
        units = max(current - self.seen, 1)
        for k, v in values or []:
            total, n = (0.0, 0) if k in self._stateful else self._sums.get(k, (0.0, 0))
            self._sums[k] = (total + float(v) * units, n + units)
        self.seen, now = current, time.time()
        last = finalize if finalize is not None else self.target is not None and current >= self.target
        if self.verbose == 1 and (last or now - self._shown >= self.interval and sys.stdout.isatty()):
            means = {k: t / n for k, (t, n) in self._sums.items()}
            print(bar_text(current, self.target, now - self._began, means, self.width, self.unit_name), end="\n" if last else "", flush=True)
            self._shown = now

    def add(self, n, values=None):
        self.update(self.seen + n, values)


def pad_sequences(sequences, maxlen=None, dtype="int32", padding="pre", truncating="pre", value=0.0):
    import numpy as np
    maxlen = maxlen if maxlen is not None else max((len(s) for s in sequences), default=0)
    sample = next((np.asarray(s).shape[1:] for s in sequences if len(s)), ())
    out = np.full((len(sequences), maxlen, *sample), value, dtype=dtype)
    for i, s in enumerate(sequences):
        if not len(s):
            continue
        s = np.asarray(s[-maxlen:] if truncating == "pre" else s[:maxlen], dtype=dtype)
        if padding == "post":
            out[i, :len(s)] = s
        else:
            out[i, -len(s):] = s
    return out


def timeseries_dataset_from_array(data, targets, sequence_length, sequence_stride=1, sampling_rate=1, batch_size=128, shuffle=False,
                                  seed=None, start_index=None, end_index=None):
    """Windows over the rows of an array, each with the target at its first row."""
    import numpy as np
    from snug._lazy import tf
    data = np.asarray(data)[start_index:end_index]
    targets = None if targets is None else np.asarray(targets)[start_index:end_index]
    count = len(data) - (sequence_length - 1) * sampling_rate
    starts = np.arange(0, count if targets is None else min(count, len(targets)), sequence_stride)
    if shuffle:
        np.random.RandomState(seed).shuffle(starts)

    def windows():
        for i in starts:
            window = data[i:i + sequence_length * sampling_rate:sampling_rate]
            yield window if targets is None else (window, targets[i])

    signature = tf.TensorSpec((sequence_length, *data.shape[1:]), data.dtype)
    if targets is not None:
        signature = (signature, tf.TensorSpec(targets.shape[1:], targets.dtype))
    found = tf.data.Dataset.from_generator(windows, output_signature=signature)
    if shuffle:
        found = found.shuffle(buffer_size=batch_size * 8 if batch_size else 1024, seed=seed)
    return found.batch(batch_size) if batch_size else found


def split_dataset(dataset, left_size=None, right_size=None, shuffle=False, seed=None):
    from snug._lazy import tf
    if not isinstance(dataset, tf.data.Dataset):
        dataset = tf.data.Dataset.from_tensor_slices(tuple(dataset) if isinstance(dataset, list) else dataset)
    n = sum(1 for _ in dataset._raw()) if dataset._d.cardinality() < 0 else len(dataset)
    if left_size is None and right_size is None:
        raise ValueError("At least one of the `left_size` or `right_size` must be specified.")
    count = lambda size: None if size is None else round(size * n) if isinstance(size, float) else int(size)
    left, right = count(left_size), count(right_size)
    left = n - right if left is None else left
    right = n - left if right is None else right
    dataset = dataset.shuffle(n, seed=seed, reshuffle_each_iteration=False) if shuffle else dataset
    return dataset.take(left), dataset.skip(left).take(right)


def is_keras_tensor(x):
    from snug.keras._symbolic import KerasTensor
    return isinstance(x, KerasTensor)


def get_source_inputs(tensor):
    return [tensor]


def device(name):
    from snug._lazy import tf
    return tf.device(name)


@default_only("override_parent", "keras.name_scope")
def name_scope(name, caller=None, deduplicate=True, override_parent=None):
    from snug._lazy import tf
    return tf.name_scope(name)


def version():
    from snug.keras import __version__
    return __version__


def standardize_dtype(dtype):
    from snug._types import as_dtype
    return as_dtype("float32" if dtype is None else dtype).name


def clear_session(free_memory=True):
    from snug.keras import backend
    backend.clear_session()


def enable_interactive_logging():
    """What fit prints is lines; there is nothing else to choose."""


def disable_interactive_logging():
    """See enable_interactive_logging."""


def is_interactive_logging_enabled():
    return True


def __getattr__(name):
    if name == "FeatureSpace":
        from snug.keras._features import FeatureSpace
        globals()[name] = FeatureSpace
        return FeatureSpace
    raise AttributeError(f"keras.utils.{name} is not in Snug")


del _C
