"""Snug's public C interface through ctypes: graphs by operator name, run once on given arrays."""
import ctypes as C

DTYPES = ["f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64", "bool", "i16", "u16", "u32"]  # the order of SNUG_DTYPE_MAP
CODES = {"f32": "f", "f64": "d", "i8": "b", "u8": "B", "i32": "i", "i64": "q", "bool": "B"}


class Type(C.Structure):
    _fields_ = [("dtype", C.c_int), ("rank", C.c_int), ("dims", C.c_int64 * 8)]


class View(C.Structure):
    _fields_ = [("data", C.c_void_p), ("bytes", C.c_size_t), ("type", Type)]


class Error(C.Structure):
    _fields_ = [("code", C.c_int), ("text", C.c_char * 512)]


class Handle(C.Structure):
    _fields_ = [("id", C.c_uint32)]


class Refused(Exception):
    """What a call of the library says when it fails."""


class Library:
    def __init__(self, path):
        self.lib = C.CDLL(path)
        self.engine = C.c_void_p()
        self.call("snug_engine_create", None, C.byref(self.engine))

    def call(self, name, *args):
        error = Error()
        if getattr(self.lib, name)(*args, C.byref(error)) != 0:
            raise Refused(error.text.decode())

    def close(self):
        self.lib.snug_engine_destroy(self.engine)


def make_type(dtype, shape):
    return Type(DTYPES.index(dtype), len(shape), (C.c_int64 * 8)(*shape))


class Value:
    """A value of a graph, or a tensor that becomes an input of it when somebody computes with it."""

    def __init__(self, graph, handle=None, tensor=None):
        self.graph, self.made, self.tensor = graph, handle, tensor

    @property
    def handle(self):
        if self.made is None:
            self.made = self.graph.feed(self.tensor)
        return self.made

    def look(self):
        if self.tensor is not None:
            return self.tensor.dtype, list(self.tensor.shape)
        t = Type()
        self.graph.lib.call("snug_graph_type", self.graph.graph, self.made, C.byref(t))
        return DTYPES[t.dtype], list(t.dims[:t.rank])

    dtype = property(lambda self: self.look()[0])
    shape = property(lambda self: self.look()[1])
    rank = property(lambda self: len(self.look()[1]))


class Graph:
    def __init__(self, lib):
        self.lib, self.graph, self.inputs, self.n_outputs = lib, C.c_void_p(), [], 0
        lib.call("snug_graph_create", lib.engine, C.byref(self.graph))

    def feed(self, tensor):
        """A new input; scalars arrive as one row."""
        name, handle = f"x{len(self.inputs)}".encode(), Handle()
        rows = make_type(tensor.dtype, tensor.shape or [1])
        self.lib.call("snug_graph_input", self.graph, name, C.byref(rows), C.byref(handle))
        self.inputs.append((name, rows, tensor.data))
        return handle if tensor.shape else self.op("reshape", Value(self, handle)).made

    def op(self, name, *values, n_out=1, **attributes):
        text = " ".join(f"{k}={','.join(map(repr, v)) if isinstance(v, (list, tuple)) else v}" for k, v in attributes.items()
                        if v != [] and v != ())
        ins, outs = (Handle * max(1, len(values)))(*[v.handle for v in values]), (Handle * n_out)()
        self.lib.call("snug_graph_op", self.graph, name.encode(), text.encode(), ins, len(values), outs, n_out)
        made = [Value(self, Handle(o.id)) for o in outs]
        return made[0] if n_out == 1 else made

    def run(self, outputs):
        """The outputs as lists of numbers, in order."""
        lib, session, feeds, first = self.lib, C.c_void_p(), [], self.n_outputs
        for v in outputs:
            lib.call("snug_graph_output", self.graph, f"y{self.n_outputs}".encode(), v.handle)
            self.n_outputs += 1
        lib.call("snug_session_create", lib.engine, self.graph, None, C.byref(session))
        try:
            for name, rows, data in self.inputs:
                feed, address = C.c_void_p(), data.buffer_info()[0] if len(data) else C.addressof(C.c_int64())
                lib.call("snug_feed_from_memory", lib.engine, C.byref(rows), C.c_void_p(address), None, None, C.byref(feed))
                feeds.append(feed)
                lib.call("snug_session_feed", session, name, feed, C.c_int64(0))
            lib.call("snug_session_run", session)
            return [self.read(session, first + i) for i in range(len(outputs))]
        finally:
            lib.lib.snug_session_destroy(session)
            for feed in feeds:
                lib.lib.snug_feed_destroy(feed)

    def read(self, session, i):
        view = View()
        self.lib.call("snug_session_output", session, f"y{i}".encode(), C.byref(view))
        dtype = DTYPES[view.type.dtype]
        return memoryview(C.string_at(view.data, view.bytes)).cast(CODES[dtype]).tolist() if view.bytes else []

    def close(self):
        self.lib.lib.snug_graph_destroy(self.graph)
