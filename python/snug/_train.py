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
