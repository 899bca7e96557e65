"""tf.io.gfile: Python's own files under TensorFlow's names."""
import contextlib as _contextlib
import glob as _glob
import io as _io
import math
import os
import shutil

exists = os.path.exists


def isdir(path):
    return os.path.isdir(path)


def join(path, *paths):
    return os.path.join(path, *paths)


def listdir(path):
    return os.listdir(path)


def remove(path):
    os.remove(path)


def rename(src, dst, overwrite=False):
    if not overwrite and os.path.exists(dst):
        from snug.errors import AlreadyExistsError
        raise AlreadyExistsError(None, None, f"file already exists: '{dst}'; give overwrite=True to put another in its place")
    os.replace(src, dst)


@_contextlib.contextmanager
def _whole(path):
    """A name to write under: what is there takes the place of `path`, or of what that links to, once it is complete and on the disk. The name is
    this writer's alone; the engine makes it, syncs the file and its folder, and renames."""
    from snug import _C, errors
    try:
        file = _C.WholeFile(path)
        try:
            yield file.name
            file.commit()
        finally:
            file.discard()
    except (errors.NotFoundError, errors.PermissionDeniedError, errors.FailedPreconditionError, errors.UnavailableError) as error:
        kind = {errors.NotFoundError: FileNotFoundError, errors.PermissionDeniedError: PermissionError,        # as Python's own files fail
                errors.FailedPreconditionError: IsADirectoryError}.get(type(error), OSError)
        raise kind(str(error)) from None


WAITING_MOST = 4 << 20


class _Written(_io.FileIO):
    """Of what is written no more than some bytes wait for the disk in the system's cache: where the memory of a group is limited they count with
    the process, and cannot be taken back, so that with a large file a group has no room for more, and the process is killed."""
    waiting = 0

    def write(self, data):
        n = super().write(data)
        self.waiting += n
        if self.waiting >= WAITING_MOST:
            self.waiting = 0
            os.fdatasync(self.fileno())
            os.posix_fadvise(self.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return n


def create(part):
    """To write the file of that name, of _whole or _aside, from its beginning."""
    from snug import _C
    return _io.BufferedWriter(_Written(part, "w"), PIECE) if _C.info()["budget_bytes"] else open(part, "wb")


@_contextlib.contextmanager
def _aside(path):
    """A name beside `path` for what goes into that file and is gone then; where its writer is killed, the next one removes it."""
    from snug import _C
    file = _C.WholeFile(path)
    try:
        yield file.name
    finally:
        file.discard()


LEFT_SECONDS = 3600         # what nobody names and nobody wrote to for so long is of a writer that was killed


def publish(folder, name, notes, key, pattern, default=None):
    """Writes the notes of a folder, which name one of the files that fit the pattern, and removes those that were named before and those that
    killed writers left. Writers meet here one after the other, so that none removes what another one is about to name."""
    import fcntl
    import json
    import time
    path, lock = os.path.join(folder, name), os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with _contextlib.suppress(OSError):         # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            before = read_json(path, dict, JSON_BYTES).get(key, default)
        except (OSError, ValueError):
            before = None
        with _whole(path) as part, open(part, "w") as file:
            json.dump(notes, file)
        for entry in os.listdir(folder):
            if pattern.match(entry) and entry != notes.get(key):
                with _contextlib.suppress(OSError):
                    if entry == before or os.stat(os.path.join(folder, entry)).st_mtime < time.time() - LEFT_SECONDS:
                        os.remove(os.path.join(folder, entry))
    finally:
        os.close(lock)


def named(find, missing):
    """What find() gives; once more where the file that a folder's notes name is gone, as long as it is another one each time."""
    said = None
    while True:
        try:
            return find()
        except missing as error:
            if str(error) == said:
                raise
            said = str(error)


JSON_BYTES = 16 << 20      # of a text that is parsed: a model of 20,000 layers takes that much
_COSTS = ((":", 96), ('"', 28), (",", 32), ("[", 64), ("{", 64))        # bytes that Python takes for what each of these makes, about
MOST_COST = 13             # times the text: configurations reach 11.6


def check_json(pieces):
    """Compares what the values of a JSON text will take with the text, which comes in pieces; ValueError: it is more than configurations take."""
    size = cost = 0
    for piece in pieces:
        size += len(piece)
        cost += sum(each * piece.count(mark if isinstance(piece, str) else mark.encode()) for mark, each in _COSTS)
    if cost > MOST_COST * size + (4 << 20):
        raise ValueError(f"a JSON text of {size} bytes with more lists and values than configurations have")


def parse_json(text, kind=dict, limit=JSON_BYTES, path=None):
    """A text that nobody vouches for, as JSON; ValueError: it is none, or too long, nested too deep, or another kind of value. Says which
    file it stands in, where that is given."""
    try:
        return _parsed_json(text, kind, limit)
    except ValueError as error:          # of JSON or UTF-8, too: none that a caller would know
        raise ValueError(f"'{path}': {error}" if path else str(error)) from None


def _parsed_json(text, kind, limit):
    import json
    if len(text) > limit:
        raise ValueError(f"a JSON text of {len(text)} bytes; at most {limit} are read")
    check_json([text])
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("the JSON text is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"the JSON text is damaged: {error}") from None
    if not isinstance(found, kind):
        raise ValueError(f"the JSON text holds a {type(found).__name__}, not a {kind.__name__}")
    return found


def open_regular(path):
    """A file to read, of bytes; ValueError: a pipe, which nobody may ever write to, or a device."""
    import stat as words
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if words.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise ValueError(f"'{path}' is no regular file; copy pipes and devices to one first")


def read_json(path, kind=dict, limit=1 << 20):
    """The same of a file, of which no more than the limit is read, and no more than a piece before it was looked at."""
    with open_regular(path) as file:
        check_json(bounded(file, limit, f"'{path}'"))
        file.seek(0)
        return parse_json(file.read(limit + 1), kind, limit, path)


def bounded(file, limit, what):
    """The bytes of a file in pieces; ValueError: there are more than the limit."""
    while piece := file.read(1 << 18):
        limit -= len(piece)
        if limit < 0:
            raise ValueError(f"{what} has more bytes than are read")
        yield piece


@_contextlib.contextmanager
def damaged(path):
    """What the contents of a file make code raise that expects others, as the one exception that is documented for it: ValueError."""
    import struct
    from snug import errors
    try:
        yield
    except (KeyError, IndexError, AttributeError, struct.error, RecursionError, OverflowError, UnicodeError) as error:
        raise ValueError(f"'{path}' does not describe a model, or is damaged: {type(error).__name__}: {str(error)[:200]}") from error
    except errors.OpError as error:
        if isinstance(error, MemoryError):
            raise
        raise ValueError(f"'{path}' does not describe a model that Snug can build: {error}") from error


def assign_all(pairs, path, skip_mismatch=False):
    """Variables get what entries of a file read, one after the other: (variable, entry or None). Shapes are compared before the first is written."""
    from snug import _C
    pairs = [(v, entry) for v, entry in pairs if entry is not None]
    wrong = [(v, entry) for v, entry in pairs if tuple(v.shape) != tuple(entry.shape)]
    if wrong and not skip_mismatch:
        v, entry = wrong[0]
        raise ValueError(f"weight '{getattr(v, 'path', v.name)}' is {tuple(v.shape)}, in '{path}' it is {tuple(entry.shape)}")
    for v, entry in pairs:
        if tuple(v.shape) == tuple(entry.shape):
            v.assign(entry.read())
            _C.boundary()              # each array is let go before the next one is copied


def is_bfloat16(value):
    """Of a tensor, or an array of ml_dtypes' type."""
    return getattr(getattr(value, "dtype", None), "name", None) == "bfloat16"


def in_numpys_types(value):
    """A tensor as an array that any NumPy reads: bfloat16 as float32."""
    import numpy as np
    made = value.numpy()
    return made.astype(np.float32) if is_bfloat16(made) else made


PIECE = 1 << 18        # bytes of a variable that are in memory at once on their way to a file


def pieces(value):
    """The bytes of a variable or tensor one after the other, or those of an array."""
    from snug import _C
    from snug._types import as_dtype
    if not _C.is_tensor(value):
        import numpy as np
        value = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
        flat = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("<"), copy=False)).reshape(-1)
        for at in range(0, flat.size, PIECE):
            yield flat[at:at + PIECE].tobytes()
        return
    count, step = math.prod(value.shape), PIECE // as_dtype(value.dtype).size
    for first in range(0, count, step):
        yield _C.read_part(value, first, min(step, count - first))


class Stored:
    """A variable that a file is to hold: what an array says of itself, but its bytes are read piece by piece when they are written.
    bfloat16 has TensorFlow's dtype, others NumPy's."""

    def __init__(self, variable):
        import numpy as np
        from snug._types import as_dtype
        self.variable, self.shape = variable, tuple(variable.shape)
        kind = as_dtype(variable.dtype)
        self.dtype = kind if kind.name == "bfloat16" else np.dtype(kind.as_numpy_dtype)
        self.ndim, self.nbytes = len(self.shape), math.prod(self.shape) * kind.size

    def pieces(self):
        return pieces(self.variable)


def stored(value):
    """A variable or tensor as Stored, else the array."""
    import numpy as np
    from snug import _C
    inner = getattr(value, "value", None)
    for one in (value, inner if _C.is_tensor(inner) else None):
        if one is not None and _C.is_tensor(one):
            return Stored(one)
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


class Copies:
    """Copies of variables, booked when this is made and filled by keep(), as often as wanted: a list of arrays, `arrays`, of bfloat16
    as float32."""

    def __init__(self, variables):
        import numpy as np
        from snug._types import as_dtype
        self.variables = list(variables)
        self.arrays = [np.empty(v.shape, np.float32 if v.dtype == "bfloat16" else as_dtype(v.dtype).as_numpy_dtype)
                       for v in self.variables]

    def keep(self):
        for v, array in zip(self.variables, self.arrays):
            found, at, flat = stored(v), 0, array.reshape(-1).view("u1")
            if not isinstance(found, Stored) or is_bfloat16(found):
                array[...] = found if not is_bfloat16(found) else in_numpys_types(v)
                continue
            for piece in found.pieces():
                flat[at:at + len(piece)] = memoryview(piece)
                at += len(piece)
        return self.arrays


def makedirs(path):
    os.makedirs(path, exist_ok=True)


def mkdir(path):
    os.mkdir(path)


def rmtree(path):
    shutil.rmtree(path)


def glob(pattern):
    return sorted(_glob.glob(pattern))


def copy(src, dst, overwrite=False):
    if os.path.exists(dst) and not overwrite:
        from snug.errors import AlreadyExistsError
        raise AlreadyExistsError(None, None, f"'{dst}' exists")
    shutil.copyfile(src, dst)


def walk(top, topdown=True, onerror=None):
    return os.walk(top, topdown, onerror)


class _Stat:
    """length, mtime_nsec, is_directory."""

    def __init__(self, found):
        import stat as words
        self.length, self.mtime_nsec, self.is_directory = found.st_size, found.st_mtime_ns, words.S_ISDIR(found.st_mode)


def stat(path):
    try:
        return _Stat(os.stat(path))
    except FileNotFoundError:
        from snug.errors import NotFoundError
        raise NotFoundError(None, None, f"{path}; No such file or directory") from None


def GFile(name, mode="r"):
    return open(name, mode)
