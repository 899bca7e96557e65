"""Old data files that Python's pickle wrote, read without that module: a decoder of the few opcodes that such files hold. It builds numbers, texts,
bytes, lists, tuples, dicts and arrays of numeric types, and nothing else: no name in a file is looked up, nothing is called.

A pickle is a program for a stack machine. Names that NumPy writes (_reconstruct, ndarray, dtype, ...) are words of a fixed table here; REDUCE and
BUILD know what each of them makes. Every length is checked against the bytes that are there, a shape against the bytes of its array."""
import math
import struct

LIMIT = 1 << 28                 # bytes of a file or member that is read: CIFAR-100 has 155 million
_MARK = object()


class _Name:
    """A word of the table; what it names is never touched."""

    def __init__(self, word):
        self.word = word


class _Dtype:
    """A numeric type by its letters, "f8"; "O" stands for lists of anything above."""

    def __init__(self, text):
        text = text.decode("latin1") if isinstance(text, bytes) else text
        kind = text[:1] if isinstance(text, str) else ""
        if kind not in ("b", "i", "u", "f", "O") or text[1:] not in (("8",) if kind == "O" else ("1", "2", "4", "8")):
            raise ValueError(f"an array of type {text!r}; Snug reads numbers")
        self.text, self.order = text, "<"

    def numpy(self):
        import numpy as np
        return np.dtype(self.order + self.text)


class _Array:
    """What _reconstruct begins and BUILD completes; `value` then."""
    value = None


_NAMES = {("numpy", "ndarray"): "ndarray", ("numpy", "dtype"): "dtype", ("_codecs", "encode"): "encode", ("__builtin__", "bytes"): "bytes",
          ("builtins", "bytes"): "bytes"}
for _room in ("numpy.core", "numpy._core"):
    _NAMES.update({(_room + ".multiarray", "_reconstruct"): "_reconstruct", (_room + ".multiarray", "scalar"): "scalar",
                   (_room + ".numeric", "_frombuffer"): "_frombuffer"})


def _array(m, shape, dtype, data, fortran=False):
    """An array of a checked shape."""
    import numpy as np
    if not isinstance(dtype, _Dtype) or not isinstance(shape, tuple) or len(shape) > 32 or \
            not all(isinstance(n, int) and 0 <= n <= LIMIT for n in shape):
        raise ValueError("an array without a shape or type")
    count = math.prod(shape)
    if dtype.text[0] == "O":
        if not isinstance(data, list) or len(data) != count:
            raise ValueError(f"an array of shape {shape} without its {count} objects")
        m.charge(count)
        made = np.empty(count, object)
        for i, value in enumerate(data):
            made[i] = value
        return made.reshape(shape, order="F" if fortran else "C")
    data = _encoded(m, data) if isinstance(data, str) else data
    kind = dtype.numpy()
    if not isinstance(data, (bytes, bytearray)) or len(data) != count * kind.itemsize:
        raise ValueError(f"an array of shape {shape} whose bytes are not {count * kind.itemsize}")
    m.charge(len(data))
    return np.frombuffer(data, kind).reshape(shape, order="F" if fortran else "C").astype(kind.newbyteorder("="))


def _encoded(m, text):
    m.charge(len(text))
    return text.encode("latin1")


def _reduced(m, name, args):
    """What calling a name with arguments stands for."""
    word = name.word if isinstance(name, _Name) else None
    if word == "_reconstruct" and len(args) == 3 and getattr(args[0], "word", None) == "ndarray":
        return _Array()
    if word == "dtype" and args:
        return _Dtype(args[0])
    if word == "encode" and len(args) == 2 and isinstance(args[0], str) and args[1] in ("latin1", "latin-1"):
        return _encoded(m, args[0])
    if word == "bytes" and not args:
        return b""
    if word == "_frombuffer" and len(args) == 4:
        return _array(m, args[2], args[1], args[0], args[3] == "F")
    if word == "scalar" and len(args) == 2:
        return _array(m, (), args[0], args[1])[()]
    raise ValueError("something is called that is no array")


def _built(m, made, state):
    """What BUILD does to an array or type that REDUCE began."""
    if isinstance(made, _Array) and made.value is None and isinstance(state, tuple) and len(state) == 5:
        made.value = _array(m, state[1], state[2], state[4], state[3] is True or state[3] == 1)
    elif isinstance(made, _Dtype) and isinstance(state, tuple) and len(state) >= 5 and state[2:5] == (None, None, None):
        order = state[1].decode("latin1") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "|", "="):
            raise ValueError("a type without a byte order")
        made.order = order.replace("=", "<")
    else:
        raise ValueError("an object of a kind that Snug does not read")


def _plain(value):
    return value.value if isinstance(value, _Array) else value


class _Machine:
    def __init__(self, data, encoding):
        self.data, self.at, self.encoding = data, 0, encoding
        self.stack, self.memo = [], {}
        self.containers = 1000 + len(data) // 4         # lists, dicts and tuples that may be made: they are what takes memory
        self.copies = 1000 + 2 * len(data)              # bytes of arrays, and of texts as bytes: a sound file has each of them once
        self.numbers = 1000                             # that may be keys: anybody can find many that a dict puts at one place

    # --- bytes ----------------------------------------------------------------------------------------
    def take(self, n):
        if n < 0 or n > len(self.data) - self.at:
            raise ValueError(f"{n} bytes at {self.at} of {len(self.data)}: it is cut off")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self):
        end = self.data.find(b"\n", self.at, self.at + 4096)
        if end < 0:
            raise ValueError("a line without an end")
        found, self.at = self.data[self.at:end], end + 1
        return found

    def old(self, raw):
        """A text of Python 2, which is bytes or text."""
        return raw if self.encoding == "bytes" else raw.decode(self.encoding)

    # --- the stack ------------------------------------------------------------------------------------
    def pop(self):
        if not self.stack or self.stack[-1] is _MARK:
            raise ValueError("too little on the stack")
        return self.stack.pop()

    def since_mark(self):
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is _MARK:
                found = self.stack[i + 1:]
                del self.stack[i:]
                return found
        raise ValueError("no mark on the stack")

    def top(self, kind):
        if not self.stack or type(self.stack[-1]) is not kind:
            raise ValueError(f"no {kind.__name__} on the stack")
        return self.stack[-1]

    def charge(self, n):
        """So many bytes are about to be copied, or objects of an array."""
        self.copies -= n
        if self.copies < 0:
            raise ValueError(f"more arrays than {len(self.data)} bytes of data hold")

    def fill(self, values):
        made = self.top(dict)
        if len(values) % 2 or not all(isinstance(k, (int, str, bytes)) for k in values[::2]):
            raise ValueError("a dict without keys")
        self.numbers -= sum(isinstance(k, int) for k in values[::2])
        if self.numbers < 0:
            raise ValueError("more numbers as keys of dicts than data sets have")
        made.update(zip(values[::2], map(_plain, values[1::2])))

    def run(self):
        """The value of the first pickle in the bytes."""
        data, stack, end = self.data, self.stack, len(self.data)
        while self.at < end:
            op = data[self.at]
            if op == 0x4b and self.at + 2 <= end:                # BININT1: most of what lists of words hold
                stack.append(data[self.at + 1])
                self.at += 2
                continue
            if op == 0x4d and self.at + 3 <= end:                # BININT2
                stack.append(data[self.at + 1] | data[self.at + 2] << 8)
                self.at += 3
                continue
            self.at += 1
            if op == 0x2e:                                       # STOP
                return _plain(self.pop())
            act = _OPCODES.get(op)
            if act is None:
                raise ValueError(f"opcode {op:#x} at {self.at - 1}; Snug reads arrays, numbers, texts, lists and dicts alone")
            act(self)
            self.containers -= op in _CONTAINERS
            if self.containers < 0:
                raise ValueError(f"more lists, dicts and tuples than {end} bytes of data describe")
        raise ValueError("it has no end")


def _push(read):
    return lambda m: m.stack.append(read(m))


def _global(m, module, name):
    text = [v.decode("latin1") if isinstance(v, bytes) else v for v in (module, name)]
    if tuple(text) not in _NAMES:
        raise ValueError(f"the file names {text[0]}.{text[1]}; Snug reads arrays, numbers, texts, lists and dicts alone")
    m.stack.append(_Name(_NAMES[tuple(text)]))


def _stack_global(m):
    name, module = m.pop(), m.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise ValueError("a name that is no text")
    _global(m, module, name)


def _integer(m):
    raw = m.line()
    return {b"00": False, b"01": True}[raw] if raw in (b"00", b"01") else int(raw.rstrip(b"L"))


def _quoted(m):
    raw = m.line()
    if len(raw) < 2 or raw[:1] != raw[-1:] or raw[:1] not in (b"'", b'"') or b"\\" in raw:
        raise ValueError("a text without quotes")
    return m.old(raw[1:-1])


def _tuple(n):
    def act(m):
        m.stack.append(tuple(reversed([_plain(m.pop()) for _ in range(n)])))
    return act


def _append(m):
    value = _plain(m.pop())
    m.top(list).append(value)


def _appends(m):
    values = m.since_mark()
    m.top(list).extend(map(_plain, values))


def _items(m):
    m.fill(m.since_mark())


def _item(m):
    value, key = m.pop(), m.pop()
    m.fill([key, value])


def _dict(m):
    values = m.since_mark()
    m.stack.append({})
    m.fill(values)


def _reduce(m):
    args, name = m.pop(), m.pop()
    if not isinstance(args, tuple):
        raise ValueError("arguments that are no tuple")
    m.stack.append(_reduced(m, name, args))


def _build(m):
    state = m.pop()
    if not m.stack:
        raise ValueError("too little on the stack")
    _built(m, m.stack[-1], state)


def _keep(read):
    def act(m):
        key = read(m)
        if not m.stack:
            raise ValueError("too little on the stack")
        m.memo[key] = m.stack[-1]
    return act


def _recall(read):
    def act(m):
        key = read(m)
        if key not in m.memo:
            raise ValueError("something is used before it is made")
        m.stack.append(m.memo[key])
    return act


def _counted(form, make):
    return _push(lambda m: make(m, m.take(m.number(form))))


def _bytes(m, raw):
    return raw


def _text(m, raw):
    return raw.decode("utf-8", "surrogatepass")


def _long(m, raw):
    return int.from_bytes(raw, "little", signed=True)


def _old(m, raw):
    return m.old(raw)


_OPCODES = {
    "(": lambda m: m.stack.append(_MARK), "0": lambda m: m.stack.pop() if m.stack else m.pop(), "1": lambda m: m.since_mark(),
    "N": _push(lambda m: None), 0x88: _push(lambda m: True), 0x89: _push(lambda m: False),
    "I": _push(_integer), "L": _push(_integer), "J": _push(lambda m: m.number("<i")), 0x8a: _counted("<B", _long), 0x8b: _counted("<i", _long),
    "F": _push(lambda m: float(m.line())), "G": _push(lambda m: m.number(">d")),
    "S": _push(_quoted), "T": _counted("<i", _old), "U": _counted("<B", _old),
    "V": _push(lambda m: m.line().decode("raw-unicode-escape")), "X": _counted("<I", _text), 0x8c: _counted("<B", _text), 0x8d: _counted("<Q", _text),
    "B": _counted("<I", _bytes), "C": _counted("<B", _bytes), 0x8e: _counted("<Q", _bytes), 0x96: _counted("<Q", _bytes),
    "]": _push(lambda m: []), "l": _push(lambda m: [_plain(v) for v in m.since_mark()]), "a": _append, "e": _appends,
    ")": _push(lambda m: ()), "t": _push(lambda m: tuple(_plain(v) for v in m.since_mark())), 0x85: _tuple(1), 0x86: _tuple(2), 0x87: _tuple(3),
    "}": _push(lambda m: {}), "d": _dict, "s": _item, "u": _items,
    "q": _keep(lambda m: m.number("<B")), "r": _keep(lambda m: m.number("<I")), "p": _keep(_integer), 0x94: _keep(lambda m: len(m.memo)),
    "h": _recall(lambda m: m.number("<B")), "j": _recall(lambda m: m.number("<I")), "g": _recall(_integer),
    "c": lambda m: _global(m, m.line(), m.line()), 0x93: _stack_global, "R": _reduce, "b": _build,
    0x80: lambda m: m.number("<B"), 0x95: lambda m: m.number("<Q")}
_OPCODES = {ord(k) if isinstance(k, str) else k: v for k, v in _OPCODES.items()}
_CONTAINERS = frozenset(b"]l)t}d\x85\x86\x87R\x94")


def loads(data, encoding="ASCII", where="the pickle"):
    """The value that the bytes describe; ValueError: they hold something else, or are damaged."""
    try:
        return _Machine(data, encoding).run()
    except (ValueError, OverflowError, MemoryError) as error:
        raise ValueError(f"{where} cannot be read: {error}") from None


def load(file, encoding="ASCII", where="the pickle"):
    data = file.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise ValueError(f"{where} cannot be read: it is larger than {LIMIT} bytes")
    return loads(data, encoding, where)
