"""tf.train: checkpoints of variables, one .npz file each, named as TensorFlow names its own; not TensorFlow's format."""
import contextlib
import os
import re
import weakref

from snug import _C, _archives
from snug._given import default_only
from snug._files import _whole, create, in_numpys_types
from snug._threads import aside

PENDING = []    # what was restored before its variable was made


class _Late:
    """Arrays of a checkpoint that no variable has taken yet. It holds none of the objects, and needs no Checkpoint to go on."""

    def __init__(self, checkpoint, arrays):
        self.checkpoint, self.arrays = _weak(checkpoint), arrays
        self.parts = [(name, _weak(value)) for name, value in [("", checkpoint._root), *checkpoint._objects.items()] if value is not None]

    def variables(self):
        """{path: variable} as of now; None: all objects are gone."""
        checkpoint, out = self.checkpoint(), {}
        if checkpoint is not None:
            return checkpoint._all()
        there = [(name, part()) for name, part in self.parts if part() is not None]
        for name, value in there:
            _variables(name, value, out, set())
        return out if there else None


def _weak(value):
    try:
        return weakref.ref(value)
    except TypeError:           # a list
        return lambda: value


def settle():
    """Gives variables that were made since a restore what the checkpoint holds for them; once, not as a part of a trace."""
    for late in list(PENDING):
        mine = late.variables()
        if mine is None or not late.arrays:
            PENDING.remove(late)
            continue
        found = [(mine[path], late.arrays.pop(path)) for path in list(late.arrays) if path in mine and _fits(mine[path], late.arrays[path])]
        if found and _C.is_tracing():
            aside(lambda: _assign_all(found))
        else:
            _assign_all(found)


def _assign_all(pairs):
    for variable, array in pairs:
        variable.assign(array)


def _fits(variable, array):
    return variable.shape is None or tuple(variable.shape) == array.shape


def _variables(name, value, out, seen):
    """{path: variable} of what a checkpoint holds; modules and checkpoints by their attributes."""
    value = getattr(value, "_snug_variable", value)
    if isinstance(value, _C.Variable):
        out[name] = value
    elif isinstance(value, _C.Iterator):
        out[name] = _Position(value)
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            _variables(f"{name}/{i}", part, out, seen)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            _variables(f"{name}/{key}", value[key], out, seen)
    elif isinstance(value, Checkpoint) or _is_module(value):
        if id(value) not in seen:
            parts = value._objects if isinstance(value, Checkpoint) else vars(value)
            for key in sorted(parts):
                _variables(f"{name}/{key}" if name else key, parts[key], out, seen | {id(value)})
    elif hasattr(value, "variables"):
        found = value.variables
        for i, v in enumerate(found() if callable(found) else found):
            out[f"{name}/{i}" if name else str(i)] = getattr(v, "_snug_variable", v)


def _is_module(value):
    from snug._misc import Module
    return isinstance(value, Module) and not hasattr(value, "_flatten_layers")


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
        from snug._variable import Variable
        self.__dict__["_objects"] = dict(kwargs)
        self.__dict__["_root"] = root
        self.__dict__.update(kwargs)
        self.__dict__["save_counter"] = Variable(0, trainable=False, name="save_counter", dtype="int64")

    def __setattr__(self, name, value):
        self.__dict__[name] = value
        self._objects[name] = value
        settle()

    def _all(self):
        out = {}
        if self._root is not None:
            _variables("", self._root, out, set())
        for name, value in self._objects.items():
            _variables(name, value, out, {id(self)})
        return out

    def write(self, file_prefix, options=None):
        import numpy as np
        file_prefix = os.fspath(file_prefix)
        folder = os.path.dirname(file_prefix)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with _whole(file_prefix + ".npz") as part, create(part) as file:
            np.savez(file, __step__=self.save_counter.numpy(), **{k: in_numpys_types(v) for k, v in self._all().items()})
        return file_prefix

    def save(self, file_prefix, options=None):
        self.save_counter.assign_add(1)
        path = self.write(f"{os.fspath(file_prefix)}-{int(self.save_counter)}")
        _write_state(path, [path])
        return path

    def read(self, save_path, options=None):
        if save_path is None:
            return _Status(set(), set())
        save_path = os.fspath(save_path)
        save_path = latest_checkpoint(save_path) or save_path if os.path.isdir(save_path) else save_path
        if not os.path.exists(save_path + ".npz"):
            from snug.errors import NotFoundError
            theirs = "; TensorFlow's own checkpoints are not read: load them there and save the arrays" if os.path.exists(
                save_path + ".index") else ""
            raise NotFoundError(None, None, "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for"
                                f" {save_path}{theirs}")
        mine, read = self._all(), set()
        with _archives.Npz(save_path + ".npz", 2 * len(mine), packed=False) as file:
            step = file["__step__"].read()
            for name in file.names:
                if name in mine and _fits(mine[name], entry := file[name]):
                    mine[name].assign(entry.read())
                    read.add(name)
            self.save_counter.assign(step)
            later = {name: file[name].read() for name in set(file.names) - read - {"__step__"}}
        if later:
            PENDING.append(_Late(self, later))
        return _Status(set(mine) - read, later)

    restore = read


class _Status:
    """unused: what the checkpoint holds and no variable has taken yet; it may grow less."""

    def __init__(self, unread, unused):
        self.unread, self.unused = unread, unused

    def assert_consumed(self):
        if self.unread or self.unused:
            raise AssertionError(f"not restored: {sorted(self.unread | set(self.unused))}")
        return self

    def assert_existing_objects_matched(self):
        if self.unread:
            raise AssertionError(f"not in the checkpoint: {sorted(self.unread)}")
        return self

    def expect_partial(self):
        return self

    def initialize_or_restore(self, session=None):
        return self


def _write_state(newest, all_of, name=None):
    with _whole(os.path.join(os.path.dirname(newest) or ".", name or "checkpoint")) as part, open(part, "w") as file:
        file.write(f'model_checkpoint_path: "{os.path.basename(newest)}"\n')
        file.writelines(f'all_model_checkpoint_paths: "{os.path.basename(path)}"\n' for path in all_of)


def _state_of(folder, latest_filename=None):
    """The newest checkpoint of a folder, and all of it, by the file that says so."""
    path = os.path.join(folder, latest_filename or "checkpoint")
    if not os.path.exists(path):
        return None, []
    with open(path, errors="replace") as file:
        text = file.read(1 << 20)
    newest, all_of = (re.findall(rf'^{word}: "(.*)"', text, re.M) for word in ("model_checkpoint_path", "all_model_checkpoint_paths"))
    full = lambda name: os.path.join(folder, name)
    return full(newest[0]) if newest else None, [full(name) for name in all_of]


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    return _state_of(os.fspath(checkpoint_dir), latest_filename)[0]


_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


def _arrays(path):
    """{name: array} of a checkpoint, or of the newest in a folder."""
    path = latest_checkpoint(path) if os.path.isdir(path) else path
    if path is None or not os.path.exists(path + ".npz"):
        from snug.errors import NotFoundError
        raise NotFoundError(None, None, f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {path}")
    with _archives.Npz(path + ".npz", packed=False) as file:
        made = {name + _SUFFIX: file[name].read() for name in file.names if name != "__step__"}
        return {**made, "save_counter" + _SUFFIX: file["__step__"].read()}


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
    path, all_of = _state_of(os.fspath(checkpoint_dir), latest_filename)
    return path and types.SimpleNamespace(model_checkpoint_path=path, all_model_checkpoint_paths=all_of or [path])


def checkpoints_iterator(checkpoint_dir, min_interval_secs=0, timeout=None, timeout_fn=None):
    """The newest one, once: nobody else writes while a program of Snug reads."""
    path = latest_checkpoint(checkpoint_dir)
    if path:
        yield path


class ExponentialMovingAverage:
    """Averages of variables, each `decay` of what it was and the rest of what it is."""

    @default_only("zero_debias")
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
    """Numbered checkpoints in a folder, the oldest of which go; what an earlier program left there counts."""

    @default_only("keep_checkpoint_every_n_hours")
    def __init__(self, checkpoint, directory, max_to_keep=5, keep_checkpoint_every_n_hours=None, checkpoint_name="ckpt", step_counter=None,
                 checkpoint_interval=None, init_fn=None):
        self.checkpoint, self.directory, self._most, self._name = checkpoint, os.fspath(directory), max_to_keep, checkpoint_name
        self._counter, self._interval, self._init = step_counter, checkpoint_interval, init_fn
        there = [path for path in _state_of(self.directory)[1] if os.path.exists(path + ".npz")]
        self.checkpoints = [path for path in there if os.path.join(self.directory, os.path.basename(path)) == path]     # it removes no others
        self._last = None

    @property
    def latest_checkpoint(self):
        return self.checkpoints[-1] if self.checkpoints else latest_checkpoint(self.directory)

    def save(self, checkpoint_number=None, check_interval=True, options=None):
        step = None if self._counter is None else int(self._counter)
        if check_interval and self._interval and self._last is not None and step - self._last < self._interval:
            return None
        self._last = step
        number = step if checkpoint_number is None and step is not None else checkpoint_number
        if number is None:
            path = self.checkpoint.save(os.path.join(self.directory, self._name))
        else:
            self.checkpoint.save_counter.assign_add(1)
            path = self.checkpoint.write(os.path.join(self.directory, f"{self._name}-{int(number)}"))
        self.checkpoints = [p for p in self.checkpoints if p != path] + [path]
        last = self.checkpoints[-self._most:] if self._most else self.checkpoints
        gone, self.checkpoints = self.checkpoints[:len(self.checkpoints) - len(last)], last
        _write_state(path, last)            # first: a file that it names is there, whenever this ends
        for old in gone:
            with contextlib.suppress(FileNotFoundError):        # another manager of the folder was faster
                os.unlink(old + ".npz")
        return path

    def restore_or_initialize(self):
        if self.latest_checkpoint:
            self.checkpoint.restore(self.latest_checkpoint)
            return self.latest_checkpoint
        if self._init is not None:
            self._init()
        return None
