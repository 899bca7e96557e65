"""Zip archives and .npz files that nobody vouches for. What a file says of itself is compared with what it is before anything is allocated:
the directory has a limit, members are stored or deflated, and none is unpacked beyond the size that the caller expects.

    with Archive("model.keras") as archive:
        text = archive.read("config.json", 16 << 20)
    with Npz("weights.npz") as arrays:
        arrays["dense/kernel"].shape                    # of the header alone
        arrays["dense/kernel"].read()                   # an array

Whatever is wrong with the file is a ValueError that names it."""
import contextlib
import math
import re
import struct
import zipfile
import zlib

from snug._files import open_regular

DIRECTORY_BYTES = 1 << 19       # of the list of members, about 5,000 of them; as objects of Python they take ten times as much
MOST_PACKED = 100              # times its packed size: configurations of many like layers reach 40
OBJECTS_PACKED = 25            # the same of lists, which take more as objects: word numbers reach 6
_ENTRY_BYTES = 256              # of a member's place in the directory
_LOCAL_BYTES = 30               # before a member's bytes, at least: its name is there, too


class _Bounded:
    """A file of which one read takes no more than `most` bytes; None: any number. The directory is read by one."""

    def __init__(self, file, most):
        self.file, self.most = file, most
        self.seek, self.tell, self.close = file.seek, file.tell, file.close
        self.seekable, self.mode, self.name = file.seekable, file.mode, file.name

    def read(self, n=-1):
        if self.most is None:
            return self.file.read(n)
        if n > self.most:
            raise ValueError(f"its directory has {n} bytes, more than {self.most}: too many members")
        return self.file.read(n if n >= 0 else self.most)


@contextlib.contextmanager
def checked(path):
    """What the zip readers raise for damaged files, as a ValueError that names the file."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, KeyError, IndexError, OverflowError) as error:
        why = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise ValueError(f"'{path}' is damaged, or no file of this kind: {why}") from None


class Archive:
    """A zip file. members: how many there may be besides the usual few; packed: whether they may be deflated."""

    def __init__(self, path, members=0, packed=True):
        self.path, self._methods = path, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) if packed else (zipfile.ZIP_STORED,)
        self.file = open_regular(path)
        try:
            with checked(path):
                door = _Bounded(self.file, DIRECTORY_BYTES + members * _ENTRY_BYTES)
                try:
                    self._zip = zipfile.ZipFile(door)
                except ValueError as error:
                    raise zipfile.BadZipFile(str(error)) from None
                door.most = None
                if len(set(self._zip.namelist())) != len(self._zip.namelist()):
                    raise zipfile.BadZipFile("two of its members have one name")
                self._check_places()
        except BaseException:
            self.file.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._zip.close()
        self.file.close()

    def _check_places(self):
        """Members lie one behind the other: what few bytes unpack to is bounded by the file's size, how many members it may have."""
        end = 0
        for info in sorted(self._zip.infolist(), key=lambda i: i.header_offset):
            if info.header_offset < end:
                raise zipfile.BadZipFile(f"'{info.filename}' and the member before it lie over each other")
            end = info.header_offset + _LOCAL_BYTES + info.compress_size
        if end > self._zip.start_dir:
            raise zipfile.BadZipFile("its last member lies over its directory")

    def names(self):
        return self._zip.namelist()

    def info(self, name):
        """The place of a member, which is stored or deflated."""
        with checked(self.path):
            info = self._zip.getinfo(name)
            if info.flag_bits & 1 or info.compress_type not in self._methods:
                raise zipfile.BadZipFile(f"'{name}' is encrypted or packed in a way that Snug does not read")
            if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
                raise zipfile.BadZipFile(f"'{name}' is stored, but its two sizes differ")
            return info

    @contextlib.contextmanager
    def open(self, name, limit=None):
        """A member as a file; limit: the bytes that it may have."""
        info = self.info(name)
        if limit is not None and info.file_size > limit:
            raise ValueError(f"'{self.path}': '{name}' has {info.file_size} bytes; at most {limit} are expected")
        with checked(self.path):
            with self._zip.open(info) as member:
                yield member

    def ratio(self, name):
        """Bytes that a member may unpack to: what texts and arrays of a model give, not what a bomb does."""
        return MOST_PACKED * self.info(name).compress_size + (1 << 20)

    def read(self, name, limit):
        with self.open(name, limit) as member, checked(self.path):
            return member.read()

    def place(self, name):
        """(offset, size) in self.file of the bytes of a stored member, whose checksum is compared; None: it is packed."""
        info = self.info(name)
        if info.compress_type != zipfile.ZIP_STORED:
            return None
        with self.open(name) as member, checked(self.path):        # its header is compared with the directory
            while member.read(1 << 18):
                pass
        self.file.seek(info.header_offset + 26)
        lengths = struct.unpack("<HH", self.file.read(4))
        return info.header_offset + _LOCAL_BYTES + sum(lengths), info.file_size


# --- .npz -------------------------------------------------------------------------------------------------
_HEADER = re.compile(rb"\{'descr': *'([^']{1,20})', *'fortran_order': *(True|False), *'shape': *\(([0-9L, ]*)\),? *\} *\n?\Z")


def _header(member, name):
    """(shape, fortran, dtype, bytes of the header) of an .npy file, as NumPy writes it for plain types."""
    import numpy as np
    start = member.read(8)
    form = {b"\x93NUMPY\1\0": "<H", b"\x93NUMPY\2\0": "<I", b"\x93NUMPY\3\0": "<I"}.get(start)
    if form is None:
        raise zipfile.BadZipFile(f"'{name}' is no .npy file")
    n, = struct.unpack(form, member.read(struct.calcsize(form)))
    found = _HEADER.match(member.read(n)) if n <= 4096 else None
    if found is None:
        raise zipfile.BadZipFile(f"'{name}' has no header of a plain array")
    descr, fortran, dims = (word.decode("latin1") for word in found.groups())
    shape = tuple(int(d) for d in dims.replace("L", "").replace(" ", "").split(",") if d)
    if re.fullmatch(r"[<|]V2", descr):
        raise ValueError(f"'{name}' is of two bytes without a name, which is how NumPy saves bfloat16: save .safetensors or .weights.h5, or cast to float32")
    if re.match(r"[<>|=]?[biufcSUO](?!0)[0-9]*\Z", descr) is None or len(shape) > 32 or any(d > 1 << 62 for d in shape):
        raise zipfile.BadZipFile(f"'{name}' of type {descr} and shape {shape} is no array that Snug reads")
    try:
        return shape, fortran == "True", np.dtype(descr), 8 + struct.calcsize(form) + n
    except TypeError:
        raise zipfile.BadZipFile(f"'{name}' is of a type {descr} that there is not") from None


class Entry:
    """An array of an .npz file, of which the header was read: shape and dtype."""

    def __init__(self, archive, name, objects):
        self._archive, self._name = archive, name
        with archive.open(name) as member, checked(archive.path):
            self.shape, self.fortran, self.dtype, self._head = _header(member, name)
        size, of_objects = archive.info(name).file_size, self.dtype.hasobject
        if of_objects and not objects:
            raise ValueError(f"'{archive.path}': '{name}' is an array of objects, which would have to be unpickled; keep arrays of numbers")
        count = math.prod(self.shape)
        if not of_objects and self._head + count * self.dtype.itemsize != size:
            raise ValueError(f"'{archive.path}': '{name}' of shape {self.shape} and type {self.dtype} does not fit into its {size} bytes")

    def check_packed(self):
        most = self._archive.ratio(self._name) if not self.dtype.hasobject else OBJECTS_PACKED * self._archive.info(self._name).compress_size + (1 << 16)
        if self._archive.info(self._name).file_size > most:
            raise ValueError(f"'{self._archive.path}': '{self._name}' unpacks to more than {most} bytes; a data set's own file does not")

    def read(self):
        import numpy as np
        from snug import _pickles
        with self._archive.open(self._name) as member, checked(self._archive.path):
            member.read(self._head)
            if self.dtype.hasobject:
                return _pickles.load(member, where=f"'{self._archive.path}': '{self._name}'")
            made = np.empty(math.prod(self.shape), self.dtype)
            flat, at = made.view("u1") if made.size else made, 0
            while at < made.nbytes:
                piece = member.read(min(1 << 18, made.nbytes - at))
                if not piece:
                    raise EOFError(f"'{self._name}' is cut off")
                flat[at:at + len(piece)] = np.frombuffer(piece, "u1")
                at += len(piece)
            if member.read(1):
                raise EOFError(f"'{self._name}' is longer than it says")
        return made.reshape(self.shape, order="F" if self.fortran else "C")


class Npz:
    """The arrays of an .npz file by name, read when they are wanted. members, packed: as of Archive; objects: lists are arrays, too."""

    def __init__(self, path, members=0, packed=True, objects=False):
        self._archive = Archive(path, members, packed)
        self.names = [name.removesuffix(".npy") for name in self._archive.names()]
        self._objects, self._files = objects, dict(zip(self.names, self._archive.names()))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._archive.__exit__()

    def __contains__(self, name):
        return name in self._files

    def __len__(self):
        return len(self._files)

    def __getitem__(self, name):
        if name not in self._files:
            raise ValueError(f"'{self._archive.path}' has no array '{name}'")
        return Entry(self._archive, self._files[name], self._objects)


def load_npz(path, objects=False):
    """{name: array} of all; objects: arrays of lists as well. Nobody expects a size: each is limited by its packed one."""
    with Npz(path, objects=objects) as arrays:
        entries = {name: arrays[name] for name in arrays.names}
        for entry in entries.values():
            entry.check_packed()
        return {name: entry.read() for name, entry in entries.items()}
