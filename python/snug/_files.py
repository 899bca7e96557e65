"""tf.io.gfile: Python's own files under TensorFlow's names."""
import contextlib as _contextlib
import glob as _glob
import os
import shutil

exists, isdir, remove, rename = os.path.exists, os.path.isdir, os.remove, os.rename
listdir, join = os.listdir, os.path.join


@_contextlib.contextmanager
def _whole(path):
    """A name to write under: what is there takes the place of `path`, or of what that links to, once it is complete."""
    target = os.path.realpath(path)
    part = target + ".part"
    try:
        yield part
        os.replace(part, target)
    finally:
        if os.path.exists(part):
            os.remove(part)


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
