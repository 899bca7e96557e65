"""tf.train: checkpoints of variables, one .npz file each, named as TensorFlow names its own; not TensorFlow's format."""
import os
import re

from snug import _C


def _variables(name, value, out):
    """{path: variable} of what a checkpoint holds."""
    if isinstance(value, _C.Variable):
        out[name] = value
    elif isinstance(value, _C.Iterator):
        out[name] = _Position(value)
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            _variables(f"{name}/{i}", part, out)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            _variables(f"{name}/{key}", value[key], out)
    elif hasattr(value, "variables"):
        found = value.variables
        for i, v in enumerate(found() if callable(found) else found):
            out[f"{name}/{i}"] = getattr(v, "_snug_variable", v)


class _Position:
    """Where an iterator of a dataset stands, as a checkpoint holds it."""
    shape = None

    def __init__(self, iterator):
        self.iterator = iterator

    def numpy(self):
        import numpy as np
        return np.frombuffer(self.iterator.save(), np.uint8)

    def assign(self, value):
        self.iterator.restore(value.tobytes())


class Checkpoint:
    """Variables of the objects that are its attributes."""

    def __init__(self, root=None, **kwargs):
        self._objects = dict(kwargs)
        if root is not None:
            self._objects["root"] = root
        self.__dict__.update(kwargs)
        self.save_counter = 0

    def _all(self):
        out = {}
        for name, value in self._objects.items():
            _variables(name, value, out)
        return out

    def write(self, file_prefix, options=None):
        import numpy as np
        folder = os.path.dirname(file_prefix)
        if folder:
            os.makedirs(folder, exist_ok=True)
        part = file_prefix + ".npz.part"
        with open(part, "wb") as file:
            np.savez(file, __step__=np.int64(self.save_counter), **{k: v.numpy() for k, v in self._all().items()})
        os.replace(part, file_prefix + ".npz")
        return file_prefix

    def save(self, file_prefix, options=None):
        self.save_counter += 1
        path = self.write(f"{file_prefix}-{self.save_counter}")
        with open(os.path.join(os.path.dirname(path) or ".", "checkpoint"), "w") as file:
            file.write(f'model_checkpoint_path: "{os.path.basename(path)}"\n')
        return path

    def read(self, save_path, options=None):
        import numpy as np
        if save_path is None:
            return _Status(set(), set())
        if not os.path.exists(save_path + ".npz"):
            from snug.errors import NotFoundError
            raise NotFoundError(None, None, "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for"
                                f" {save_path}")
        mine, read = self._all(), set()
        with np.load(save_path + ".npz") as file:
            for name in file.files:
                if name in mine and (mine[name].shape is None or tuple(mine[name].shape) == file[name].shape):
                    mine[name].assign(file[name])
                    read.add(name)
            self.save_counter = int(file["__step__"])
            return _Status(set(mine) - read, set(file.files) - read - {"__step__"})

    restore = read


class _Status:
    def __init__(self, unread, unused):
        self.unread, self.unused = unread, unused

    def assert_consumed(self):
        if self.unread or self.unused:
            raise AssertionError(f"not restored: {sorted(self.unread | self.unused)}")
        return self

    def assert_existing_objects_matched(self):
        if self.unread:
            raise AssertionError(f"not in the checkpoint: {sorted(self.unread)}")
        return self

    def expect_partial(self):
        return self

    def initialize_or_restore(self, session=None):
        return self


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    path = os.path.join(checkpoint_dir, latest_filename or "checkpoint")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        found = re.search(r'model_checkpoint_path: "(.*)"', file.read())
    return os.path.join(checkpoint_dir, found.group(1)) if found else None


def _arrays(path):
    """{name: array} of a checkpoint, or of the newest in a folder."""
    import numpy as np
    path = latest_checkpoint(path) if os.path.isdir(path) else path
    if path is None or not os.path.exists(path + ".npz"):
        from snug.errors import NotFoundError
        raise NotFoundError(None, None, f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {path}")
    with np.load(path + ".npz") as file:
        return {name: file[name] for name in file.files if name != "__step__"}


def list_variables(ckpt_dir_or_file):
    return [(name, list(a.shape)) for name, a in sorted(_arrays(ckpt_dir_or_file).items())]


def load_variable(ckpt_dir_or_file, name):
    return _arrays(ckpt_dir_or_file)[name]


class load_checkpoint:
    def __init__(self, ckpt_dir_or_file):
        self._found = _arrays(ckpt_dir_or_file)

    def get_tensor(self, name):
        return self._found[name]

    def has_tensor(self, name):
        return name in self._found

    def get_variable_to_shape_map(self):
        return {name: list(a.shape) for name, a in self._found.items()}

    def get_variable_to_dtype_map(self):
        from snug._types import as_dtype
        return {name: as_dtype(a.dtype) for name, a in self._found.items()}


class CheckpointOptions:
    def __init__(self, **settings):
        self.__dict__.update(settings)


def get_checkpoint_state(checkpoint_dir, latest_filename=None):
    import types
    path = latest_checkpoint(checkpoint_dir, latest_filename)
    return path and types.SimpleNamespace(model_checkpoint_path=path, all_model_checkpoint_paths=[path])


def checkpoints_iterator(checkpoint_dir, min_interval_secs=0, timeout=None, timeout_fn=None):
    """The newest one, once: nobody else writes while a program of Snug reads."""
    path = latest_checkpoint(checkpoint_dir)
    if path:
        yield path


class ExponentialMovingAverage:
    """Averages of variables, each `decay` of what it was and the rest of what it is."""

    def __init__(self, decay, num_updates=None, zero_debias=False, name="ExponentialMovingAverage"):
        self.decay, self.num_updates, self._averages = decay, num_updates, {}

    def apply(self, var_list=None):
        from snug._lazy import tf
        decay = self.decay
        if self.num_updates is not None:
            decay = min(decay, (1.0 + float(self.num_updates)) / (10.0 + float(self.num_updates)))
        for v in var_list or []:
            if id(v) not in self._averages:
                self._averages[id(v)] = (v, tf.Variable(v, trainable=False))
            held = self._averages[id(v)][1]
            held.assign_sub((1.0 - decay) * (held - v))

    def average(self, var):
        found = self._averages.get(id(var))
        return None if found is None else found[1]


class CheckpointManager:
    def __init__(self, checkpoint, directory, max_to_keep=5, checkpoint_name="ckpt", **ignored):
        self.checkpoint, self.directory, self._most, self._name = checkpoint, directory, max_to_keep, checkpoint_name
        self.checkpoints = []

    @property
    def latest_checkpoint(self):
        return self.checkpoints[-1] if self.checkpoints else latest_checkpoint(self.directory)

    def save(self, checkpoint_number=None, check_interval=True, options=None):
        if checkpoint_number is not None:
            self.checkpoint.save_counter = int(checkpoint_number) - 1
        self.checkpoints.append(self.checkpoint.save(os.path.join(self.directory, self._name)))
        while self._most and len(self.checkpoints) > self._most:
            os.unlink(self.checkpoints.pop(0) + ".npz")
        return self.checkpoints[-1]

    def restore_or_initialize(self):
        if self.latest_checkpoint:
            self.checkpoint.restore(self.latest_checkpoint)
        return self.latest_checkpoint
