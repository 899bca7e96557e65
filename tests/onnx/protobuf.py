"""The parts of ONNX' protobuf messages that its operator tests use, decoded with the standard library alone."""
import array
import struct

DTYPES = {1: ("f32", "f"), 2: ("u8", "B"), 3: ("i8", "b"), 6: ("i32", "i"), 7: ("i64", "q"), 9: ("bool", "B"), 11: ("f64", "d")}


def fields(data):
    """(number, value) of each field: an int, or bytes; fixed-width values stay bytes."""
    at, n = 0, len(data)

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < n:
        tag = varint()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, varint()
            continue
        size = varint() if kind == 2 else {1: 8, 5: 4}[kind]
        yield tag >> 3, data[at:at + size]
        at += size


def message(data):
    """All values of each field number, in order."""
    out = {}
    for number, value in fields(data):
        out.setdefault(number, []).append(value)
    return out


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def integers(values):
    """A repeated integer field, packed or not."""
    out = []
    for v in values:
        if isinstance(v, bytes):  # packed: a message of varints without tags reads like one long field list
            at = 0
            while at < len(v):
                value = shift = 0
                while True:
                    value |= (v[at] & 127) << shift
                    shift += 7
                    at += 1
                    if v[at - 1] < 128:
                        break
                out.append(signed(value))
        else:
            out.append(signed(v))
    return out


def reals(values, code):
    return [x for v in values for x in struct.unpack(f"<{len(v) // struct.calcsize(code)}{code}", v)]


class Tensor:
    """dtype as Snug names it (None: it has none of it), shape, and data as an array of Python numbers."""

    def __init__(self, data):
        m = message(data)
        self.shape = integers(m.get(1, []))
        self.dtype, code = DTYPES.get(m[2][0], (None, None))
        if self.dtype is None:
            return
        self.data = array.array(code)
        if 9 in m:
            self.data.frombytes(m[9][0])
        elif self.dtype == "f32":
            self.data.extend(reals(m.get(4, []), "f"))
        elif self.dtype == "f64":
            self.data.extend(reals(m.get(10, []), "d"))
        else:
            self.data.extend(integers(m.get(7 if self.dtype == "i64" else 5, [])))


def attribute(data):
    m = message(data)
    kind = m[20][0]
    value = {1: lambda: reals(m[2], "f")[0], 2: lambda: signed(m[3][0]), 3: lambda: m[4][0].decode(), 4: lambda: Tensor(m[5][0]),
             6: lambda: reals(m.get(7, []), "f"), 7: lambda: integers(m.get(8, [])),
             8: lambda: [s.decode() for s in m.get(9, [])]}.get(kind, lambda: None)()
    return m[1][0].decode(), value


class Node:
    def __init__(self, data):
        m = message(data)
        self.inputs, self.outputs = ([s.decode() for s in m.get(k, [])] for k in (1, 2))
        self.op = m[4][0].decode()
        self.attributes = dict(attribute(a) for a in m.get(5, []))


class Model:
    """Nodes in order, names of inputs and outputs, constants, and the opset version of the default domain."""

    def __init__(self, data):
        m = message(data)
        graph = message(m[7][0])
        name = lambda v: message(v)[1][0].decode()
        self.nodes = [Node(n) for n in graph.get(1, [])]
        self.inputs, self.outputs = ([name(v) for v in graph.get(k, [])] for k in (11, 12))
        kinds = [message(message(v).get(2, [b""])[0]) for k in (11, 12) for v in graph.get(k, [])]
        self.has_tensors_alone = all(1 in kind for kind in kinds)  # no sequences, no optional values
        self.constants = {message(t)[8][0].decode(): Tensor(t) for t in graph.get(5, [])}
        sets = [message(s) for s in m.get(8, [])]
        self.opset = max([s[2][0] for s in sets if s.get(1, [b""])[0] in (b"", b"ai.onnx")], default=1)
