"""HDF5, as much of it as model files need: groups with attributes of text and contiguous arrays, superblock 0, as h5py writes them by default.

What is written is a tree of dicts with arrays as leaves; a Group is a dict with attributes, each a text or a list of texts. Reading is lazy: a
Found is a group whose members are looked up when they are asked for, an Array has a shape and reads its bytes when read() is called.

    with opened("m.weights.h5") as tree:
        tree["layers"]["dense"]["vars"]["0"].read()

Reading trusts nothing: addresses and sizes are checked against the file; what is read besides arrays is limited by the size of the file, since a
sound file has each of its bytes once; and whatever is not plain raises ValueError. A file whose groups lead back to themselves, or that has one
object under many names, costs what is asked of it and no more."""
import collections.abc
import contextlib
import math
import os
import struct

from snug._arrays import of_bits
from snug._files import create, open_regular
from snug._given import as_array

UNDEFINED = (1 << 64) - 1
MAGIC = b"\x89HDF\r\n\x1a\n"
LEAF, INNER = 4, 16               # half of the names in a leaf, half of the children of a tree node
MOST_TEXTS = 4000                # of an attribute: an object header has at most 64 KiB for one
_OPAQUE_PAIR = bytes([0x15, 0, 0, 0]) + struct.pack("<I", 2)        # two bytes that mean something to others: bfloat16, says an attribute
_FLOATS = {2: (0x0f, struct.pack("<HHBBBBI", 0, 16, 10, 5, 0, 10, 15)), 4: (0x1f, struct.pack("<HHBBBBI", 0, 32, 23, 8, 0, 23, 127)), 8: (0x3f, struct.pack("<HHBBBBI", 0, 64, 52, 11, 0, 52, 1023))}


class Group(dict):
    """A group with attributes."""

    def __init__(self, members=(), **attributes):
        super().__init__(members)
        self.attributes = attributes


# --- writing --------------------------------------------------------------------------------------------
_TEXT = bytes([0x19, 1, 1, 0]) + struct.pack("<I", 16) + bytes([0x10, 0, 0, 0]) + struct.pack("<IHH", 1, 0, 8)    # of any length
_NO_TEXTS = bytes([0x11, 0x20, 0x3f, 0]) + struct.pack("<I", 8) + _FLOATS[8][1]      # what h5py makes of an empty list


def _padded(raw):
    return raw + b"\0" * (-len(raw) % 8)


class _Writer:
    def __init__(self, file):
        self.file, self.end = file, 96

    def place(self, size):
        """Room for so many bytes."""
        at = self.end
        self.end += size + -size % 8
        return at

    def put(self, at, data):
        self.file.seek(at)
        self.file.write(data)
        return at

    def header(self, messages):
        """An object header: (type, data) of each message."""
        body = b"".join(struct.pack("<HHBBBB", kind, len(data) + -len(data) % 8, 0, 0, 0, 0) + data + b"\0" * (-len(data) % 8)
                        for kind, data in messages)
        head = struct.pack("<BBHIII", 1, 0, len(messages), 1, len(body), 0)
        return self.put(self.place(len(head) + len(body)), head + body)

    def array(self, a):
        from snug._files import pieces
        at = self.place(a.nbytes) if a.nbytes else UNDEFINED
        if a.nbytes:
            self.file.seek(at)
            for piece in a.pieces() if hasattr(a, "pieces") else pieces(a):
                self.file.write(piece)
        space = struct.pack("<BBBBI", 1, a.ndim, 0, 0, 0) + struct.pack(f"<{a.ndim}Q", *a.shape)
        noted = [self.attribute("dtype", "bfloat16")] if a.dtype.name == "bfloat16" else []       # as Keras notes it
        return self.header([(1, space), (3, _type_of(a.dtype)), (5, bytes([2, 2, 2, 0])), (8, struct.pack("<BBQQ", 3, 1, at, a.nbytes)), *noted])

    def attribute(self, name, value):
        """The message of an attribute; its texts lie in a heap of their own."""
        texts = [v.encode() for v in ([value] if isinstance(value, str) else value)]
        kind, raw = _TEXT if texts else _NO_TEXTS, name.encode() + b"\0"
        space = struct.pack("<BBBBI", 1, 0, 0, 0, 0) if isinstance(value, str) else struct.pack("<BBBBIQ", 1, 1, 0, 0, 0, len(texts))
        head = struct.pack("<BBHHH", 1, 0, len(raw), len(kind), len(space)) + _padded(raw) + _padded(kind) + _padded(space)
        heap = self.heap(texts) if texts else UNDEFINED
        return 0x0c, head + b"".join(struct.pack("<IQI", len(t), heap, i) for i, t in enumerate(texts, 1))

    def heap(self, texts):
        body = b"".join(struct.pack("<HHIQ", i, 1, 0, len(t)) + _padded(t) for i, t in enumerate(texts, 1))
        size = max(4096, 16 + len(body) + 16)
        rest = struct.pack("<HHIQ", 0, 0, 0, size - 16 - len(body))
        return self.put(self.place(size), (b"GCOL" + struct.pack("<BBBBQ", 1, 0, 0, 0, size) + body + rest).ljust(size, b"\0"))

    def group(self, tree):
        """(header, tree, heap) of a group: its members first, then the index of their names."""
        names = sorted(tree, key=lambda n: n.encode())
        members = {n: self.group(tree[n]) if isinstance(tree[n], dict) else (self.array(tree[n]), None, None) for n in names}
        text, offsets = bytearray(8), {}
        for n in names:
            offsets[n] = len(text)
            raw = n.encode() + b"\0"
            text += raw + b"\0" * (-len(raw) % 8)
        data = self.put(self.place(len(text)), bytes(text))
        heap = self.put(self.place(32), b"HEAP" + struct.pack("<IQQQ", 0, len(text), 1, data))
        leaves = [self.leaf(names[i:i + 2 * LEAF], members, offsets) for i in range(0, len(names), 2 * LEAF)]
        index = self.index(leaves)
        attributes = [self.attribute(k, v) for k, v in getattr(tree, "attributes", {}).items()]
        return self.header([(0x11, struct.pack("<QQ", index, heap))] + attributes), index, heap

    def leaf(self, names, members, offsets):
        body = b"".join(_entry(offsets[n], *members[n]) for n in names)
        raw = b"SNOD" + struct.pack("<BBH", 1, 0, len(names)) + body
        return self.put(self.place(8 + 2 * LEAF * 40), raw.ljust(8 + 2 * LEAF * 40, b"\0")), offsets[names[-1]]

    def index(self, children, level=0):
        """The tree over leaves (address, offset of the last name)."""
        size = 24 + (2 * INNER + 1) * 8 + 2 * INNER * 8
        made, last = [], 0
        for i in range(0, max(len(children), 1), 2 * INNER):
            part = children[i:i + 2 * INNER]
            raw = b"TREE" + struct.pack("<BBHQQ", 0, level, len(part), UNDEFINED, UNDEFINED) + struct.pack("<Q", last)
            for at, name in part:
                raw += struct.pack("<QQ", at, name)
                last = name
            made.append((self.put(self.place(size), raw.ljust(size, b"\0")), last))
        return made[0][0] if len(made) == 1 else self.index(made, level + 1)


def _entry(name, header, tree, heap):
    if tree is None:
        return struct.pack("<QQII16x", name, header, 0, 0)
    return struct.pack("<QQIIQQ", name, header, 1, 0, tree, heap)


def _type_of(dtype):
    if dtype.name == "bfloat16":
        return _OPAQUE_PAIR
    if dtype.kind == "f" and dtype.itemsize in _FLOATS:
        sign, rest = _FLOATS[dtype.itemsize]
        return bytes([0x11, 0x20, sign, 0]) + struct.pack("<I", dtype.itemsize) + rest
    if dtype.kind in "iu":
        return bytes([0x10, 8 if dtype.kind == "i" else 0, 0, 0]) + struct.pack("<IHH", dtype.itemsize, 0, 8 * dtype.itemsize)
    raise ValueError(f"arrays of {dtype} are not written to HDF5")


def write(path, tree):
    """A tree of dicts and arrays as a file."""
    with create(path) as file:
        w = _Writer(file)
        header, index, heap = w.group(tree)
        w.put(0, MAGIC + bytes([0, 0, 0, 0, 0, 8, 8, 0]) + struct.pack("<HHI", LEAF, INNER, 0)
              + struct.pack("<QQQQ", 0, UNDEFINED, w.end, UNDEFINED) + _entry(0, header, index, heap))
        file.truncate(w.end)


# --- reading --------------------------------------------------------------------------------------------
MESSAGE_BYTES = 1 << 20           # of one object's header
NAME_BYTES = 6 << 20              # of the names in groups that were looked into, with what Python needs for each
EXPECTED_BYTES = 1000             # more for each variable that the model has: its layer's group and that one's
TEXT_BYTES = 32 << 20             # of attributes
_NAME_COST = 160


class Array:
    """An array of a file: shape and dtype as it is stored; read() gives it. is_bfloat16: it holds the bits of such numbers."""

    def __init__(self, reader, address, shape, dtype, is_bfloat16=False):
        self._reader, self._address, self.shape, self.dtype, self._is_bfloat16 = reader, address, shape, dtype, is_bfloat16
        self.ndim, self.nbytes = len(shape), math.prod(shape) * dtype.itemsize

    def read(self):
        import numpy as np
        made = np.empty(self.nbytes // self.dtype.itemsize, self.dtype)
        if made.size:
            self._reader.fill(self._address, made.view("u1"))
        return (of_bits(made) if self._is_bfloat16 else made).reshape(self.shape)

    def __array__(self, dtype=None, copy=None):
        return as_array(self.read(), dtype, copy)


class Found(collections.abc.Mapping):
    """A group of a file. Its members are listed when the first is asked for; an object that is neither group nor array is an empty group."""

    def __init__(self, reader, messages=(), depth=0):
        self._reader, self._messages, self._depth = reader, messages, depth
        self._members, self._attributes, self._made = None, None, {}

    def expect(self, n):
        """A model of so many variables is looked for here."""
        self._reader.names += EXPECTED_BYTES * n

    def _list(self):
        if self._members is None:
            table = dict(self._messages).get(0x11)
            self._members = {} if table is None else self._reader.members(*self._reader.two(table))
        return self._members

    def __getitem__(self, name):
        if name not in self._made:
            found = self._reader.read(self._list()[name], self._depth + 1)
            if isinstance(found, Array):
                return found
            self._made[name] = found            # groups are looked into again and again, arrays once
        return self._made[name]

    def __iter__(self):
        return iter(self._list())

    def __len__(self):
        return len(self._list())

    def arrays(self):
        """{name: array} of its arrays, read. They lie beside each other, so that together they are no larger than the file."""
        found = {name: member for name, member in self.items() if isinstance(member, Array)}
        total = sum(member.nbytes for member in found.values())
        if total > self._reader.size:
            raise self._reader.wrong(f"{len(found)} arrays of one group have {total} bytes, more than it holds: they lie over each other")
        return {name: member.read() for name, member in found.items()}

    @property
    def attributes(self):
        if self._attributes is None:
            found = (self._reader.attribute(data) for kind, data in self._messages if kind == 0x0c)
            self._attributes = dict(filter(None, found))
        return self._attributes


class _Reader:
    """Part of a file, from `first` on and `size` long, which is an HDF5 file."""

    def __init__(self, handle, path, first, size):
        self.handle, self.path, self.first, self.size = handle, path, first, size
        self.left, self.names, self.texts = 4 * size + (1 << 16), NAME_BYTES, min(TEXT_BYTES, size)
        self._heap = None, {}

    def wrong(self, why):
        return ValueError(f"'{self.path}': {why}")

    def at(self, address, n):
        """Bytes of the structure: how many are read in all is limited."""
        if address < 0 or n < 0 or address + n > self.size:
            raise self.wrong(f"{n} bytes at {address} are beyond its {self.size}: cut off or damaged")
        self.left -= n
        if self.left < 0:
            raise self.wrong(f"its objects lie over each other: more is read than its {self.size} bytes")
        found = os.pread(self.handle, n, self.first + address)
        if len(found) != n:
            raise self.wrong(f"{n} bytes at {address} cannot be read: cut off")
        return found

    def fill(self, address, to):
        if address < 0 or address + len(to) > self.size:
            raise self.wrong(f"{len(to)} bytes at {address} are beyond its {self.size}: cut off or damaged")
        to = memoryview(to)
        while len(to):
            n = os.preadv(self.handle, [to[:1 << 30]], self.first + address)
            if n <= 0:
                raise self.wrong(f"{len(to)} bytes at {address} cannot be read: cut off")
            to, address = to[n:], address + n

    def unpack(self, form, address):
        return struct.unpack(form, self.at(address, struct.calcsize(form)))

    def two(self, raw):
        if len(raw) < 16:
            raise self.wrong("a group has no place")
        return struct.unpack("<QQ", raw[:16])

    def messages(self, address):
        """(type, data) of an object's header, its continuations included."""
        version, _, count, _, length = self.unpack("<BBHII", address)
        if version != 1:
            raise self.wrong("its objects are of a newer HDF5 format; save it with h5py's default libver")
        blocks, found, room = [(address + 16, length)], [], MESSAGE_BYTES
        while blocks and len(found) < count:
            place, length = blocks.pop(0)
            room -= length
            if room < 0:
                raise self.wrong(f"an object's header has more than {MESSAGE_BYTES} bytes")
            block, at = self.at(place, length), 0
            while at + 8 <= length and len(found) < count:
                kind, size = struct.unpack_from("<HH", block, at)
                data = block[at + 8:at + 8 + size]
                found.append((kind, data))
                if kind == 0x10 and size >= 16:
                    blocks.append(struct.unpack("<QQ", data[:16]))
                at += 8 + size
        return found

    def read(self, address, depth=0):
        """An array, or a group."""
        if depth > 64:
            raise self.wrong("its groups are nested too deep")
        try:
            found = self.messages(address)
            messages = dict(found)
            if 0x11 not in messages and 1 in messages and 3 in messages and 8 in messages:
                return self.array(messages, found)
            return Found(self, found, depth)
        except (struct.error, IndexError, OverflowError):
            raise self.wrong("it is damaged") from None

    def members(self, index, heap):
        """{name: address} of a group."""
        try:
            if self.at(heap, 4) != b"HEAP":
                raise self.wrong("a group has no names")
            names, = self.unpack("<Q", heap + 24)
            made, seen = {}, set()
            for offset, header in self.entries(index, 0, seen):
                name = self.name(names + offset)
                self.names -= len(name) + _NAME_COST
                if self.names < 0:
                    raise self.wrong(f"it has more names than a model of that size: {NAME_BYTES >> 20} MiB, and {EXPECTED_BYTES} bytes for each variable")
                made[name] = header
            return made
        except (struct.error, IndexError, OverflowError):
            raise self.wrong("a group is damaged") from None

    def attribute(self, data):
        """(name, text or list of texts); None where it is neither."""
        try:
            return self._attribute(data)
        except (struct.error, IndexError, OverflowError, UnicodeError):
            raise self.wrong("an attribute is damaged") from None

    def _attribute(self, data):
        version, _, *sizes = struct.unpack("<BBHHH", data[:8])
        at, parts = 8 + (version == 3), []
        for size in sizes:
            parts.append(data[at:at + size])
            at += size + (-size % 8 if version == 1 else 0)
        name, kind, space = parts
        rank, count = space[1], 1
        for d in struct.unpack_from(f"<{rank}Q", space, 8 if space[0] == 1 else 4):
            count *= d
        size, = struct.unpack("<I", kind[4:8])
        if count and not size:
            raise self.wrong(f"an attribute has {count} texts of no bytes")
        if count * size > len(data) - at or kind[0] & 15 not in (3, 9) or kind[0] & 15 == 9 and kind[1] & 15 != 1:
            return (name.rstrip(b"\0").decode(), []) if not count else None
        cells = [data[at + i * size:at + (i + 1) * size] for i in range(count)]
        texts = [c.rstrip(b"\0").decode() if kind[0] & 15 == 3 else self.text(*struct.unpack("<IQI", c)) for c in cells]
        return name.rstrip(b"\0").decode(), texts if rank else texts[0]

    def text(self, length, heap, index):
        """One of a heap's texts."""
        if self._heap[0] != heap:
            self._heap = heap, self.heap(heap)
        at, size = self._heap[1].get(index, (0, -1))
        if length > size:
            raise self.wrong("an attribute's text is missing")
        self.texts -= length
        if self.texts < 0:
            raise self.wrong(f"its attributes have more than {min(TEXT_BYTES, self.size)} bytes")
        return self.at(at, length).decode("utf-8", "replace")

    def heap(self, heap):
        """{number: (place, size)} of the texts in a heap."""
        if self.at(heap, 4) != b"GCOL":
            raise self.wrong("an attribute has no text")
        end, at, found = heap + self.unpack("<Q", heap + 8)[0], heap + 16, {}
        while at + 16 <= end and len(found) < 1 << 16:
            number, _, _, size = self.unpack("<HHIQ", at)
            if not number:
                break
            found.setdefault(number, (at + 16, size))
            at += 16 + size + -size % 8
        return found

    def name(self, at):
        raw = self.at(at, min(64, max(0, self.size - at)))
        raw = raw if b"\0" in raw else self.at(at, min(1024, max(0, self.size - at)))
        if b"\0" not in raw:
            raise self.wrong("a name has no end")
        return raw[:raw.index(b"\0")].decode("utf-8", "replace")

    def entries(self, address, depth, seen):
        """(offset of the name, header) of all members under a tree node or leaf, each of which is met once."""
        if address in seen:
            raise self.wrong("a group's index leads back to itself")
        seen.add(address)
        mark = self.at(address, 4)
        if mark == b"SNOD":
            count, = self.unpack("<H", address + 6)
            rows = self.at(address + 8, 40 * count)
            for i in range(count):
                yield struct.unpack_from("<QQ", rows, 40 * i)
        elif mark == b"TREE" and depth < 16:
            count, = self.unpack("<H", address + 6)
            for i in range(count):
                child, = self.unpack("<Q", address + 24 + 8 + 16 * i)
                yield from self.entries(child, depth + 1, seen)
        else:
            raise self.wrong("a group's index is damaged")

    def is_bfloat16(self, kind, found):
        """As Keras writes it: an attribute says what the two bytes are."""
        noted = (self.attribute(data) for number, data in found if number == 0x0c)
        return kind[0] & 15 == 5 and kind[4:8] == _OPAQUE_PAIR[4:] and ("dtype", "bfloat16") in noted

    def array(self, messages, found):
        import numpy as np
        space, kind, layout = messages[1], messages[3], messages[8]
        rank, skip = space[1], 8 if space[0] == 1 else 4
        if rank > 32:
            raise self.wrong(f"an array has {rank} axes")
        shape = struct.unpack(f"<{rank}Q", space[skip:skip + 8 * rank])
        size, = struct.unpack("<I", kind[4:8])
        form = {1: "f", 0: "i" if kind[1] & 8 else "u"}.get(kind[0] & 15)
        pairs = self.is_bfloat16(kind, found)
        form = "u" if pairs else form
        if form is None or not pairs and kind[1] & 1 or (form, size) not in [("f", 2), ("f", 4), ("f", 8)] + [(c, n) for c in "iu" for n in (1, 2, 4, 8)]:
            raise self.wrong("it has arrays of elements that Snug does not read")
        if layout[0] != 3 or layout[1] != 1:
            raise self.wrong("it has arrays in chunks or compressed; weight files have plain ones")
        at, n = struct.unpack("<QQ", layout[2:18])
        count = math.prod(shape)
        if max(shape, default=0) >= 1 << 62 or count * size > self.size or (count and (n < count * size or at + n > self.size)):
            raise self.wrong(f"an array of shape {shape} does not fit into it")
        return Array(self, at, shape, np.dtype(f"<{form}{size}"), pairs)


@contextlib.contextmanager
def opened(path, first=0, size=None, file=None):
    """The tree of a file, or of a part of it; file: one that is open already, which stays so."""
    with contextlib.nullcontext(file) if file is not None else open_regular(path) as source:
        handle = source.fileno()
        r = _Reader(handle, path, first, os.fstat(handle).st_size if size is None else size)
        if r.size < 96 or r.at(0, 8) != MAGIC:
            raise r.wrong("it is no HDF5 file")
        if r.at(8, 1) != b"\0" or r.at(13, 2) != b"\x08\x08":
            raise r.wrong("it is of a newer HDF5 format; save it with h5py's default libver")
        yield r.read(r.unpack("<Q", 64)[0])


def _all(found, path, seen):
    """All below a group as a Group, arrays read; each object once."""
    made = Group(**found.attributes) if found.attributes else Group()
    for name, address in found._list().items():
        if address in seen:
            raise ValueError(f"'{path}': one of its objects has two names")
        seen.add(address)
        member = found._reader.read(address, found._depth + 1)
        made[name] = member.read() if isinstance(member, Array) else _all(member, path, seen)
    return made


def read(path):
    """The whole tree of a file, with its arrays."""
    with opened(path) as tree:
        return tree.read() if isinstance(tree, Array) else _all(tree, path, set())
