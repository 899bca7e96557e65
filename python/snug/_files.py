"""tf.io.gfile: Python's own files under TensorFlow's names."""
import glob as _glob
import os
import shutil

exists, isdir, remove, rename = os.path.exists, os.path.isdir, os.remove, os.rename
listdir, join = os.listdir, os.path.join


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


def stat(path):
    return os.stat(path)


def GFile(name, mode="r"):
    return open(name, mode)
