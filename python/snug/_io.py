"""tf.io: features of Examples, records, tensors as texts; tf.train.Example."""
import struct
from collections import namedtuple

from snug import _C, _dataops
from snug._lazy import tf
from snug._sparse import SparseTensor
from snug._types import TensorShape, as_dtype

FixedLenFeature = namedtuple("FixedLenFeature", ["shape", "dtype", "default_value"], defaults=[None])
VarLenFeature = namedtuple("VarLenFeature", ["dtype"])
FixedLenSequenceFeature = namedtuple("FixedLenSequenceFeature", ["shape", "dtype", "allow_missing", "default_value"],
                                     defaults=[False, None])


# --- features ---------------------------------------------------------------------------------------------
_KINDS = {"float32": "f32", "int64": "i64", "string": "text"}


def _default(kind, value):
    if value is None:
        return "-"
    flat = value.numpy() if hasattr(value, "numpy") else value
    flat = flat.ravel().tolist() if hasattr(flat, "ravel") else flat if isinstance(flat, (list, tuple)) else [flat]
    if kind == "text":
        return ",".join("x" + (v if isinstance(v, bytes) else str(v).encode()).hex() for v in flat)
    return ",".join(repr(int(v) if kind == "i64" else float(v)) for v in flat)


def _dims(shape):
    dims = TensorShape(shape).as_list()
    return "[" + ",".join(str(-1 if n is None else n) for n in dims) + "]"


def _line(name, feature):
    kind = _KINDS.get(as_dtype(feature.dtype).name)
    if kind is None:
        raise ValueError(f"Invalid dtype {as_dtype(feature.dtype).name} of feature {name}: float32, int64 and string exist")
    if isinstance(feature, VarLenFeature):
        return f"var {kind} [] - {name}"
    word = "sequence" if isinstance(feature, FixedLenSequenceFeature) else "fixed"
    return f"{word} {kind} {_dims(feature.shape)} {_default(kind, feature.default_value)} {name}"


def _parse(row, serialized, features):
    if not features:
        raise ValueError("Argument `features` cannot be None.")
    names = sorted(features)
    text = "\n".join(_line(n, features[n]) for n in names)
    parts = iter(_dataops.run(row, {"features": text.encode()}, [serialized]))
    made = {n: SparseTensor(next(parts), next(parts), next(parts)) if isinstance(features[n], VarLenFeature) else next(parts)
            for n in names}
    return {n: made[n] for n in names}


def parse_single_example(serialized, features, example_names=None, name=None):
    return _parse("tf.io.parse_single_example", serialized, features)


def parse_example(serialized, features, example_names=None, name=None):
    return _parse("tf.io.parse_example", serialized, features)


def parse_single_sequence_example(serialized, context_features=None, sequence_features=None, example_name=None, name=None):
    """The context is read as an Example is; each list as a batch of Examples, one for each of its steps."""
    if not context_features and not sequence_features:
        raise ValueError("Missing features. Both `context_features` and `sequence_features` are None.")
    context = _parse("tf.io.parse_single_example", serialized, context_features) if context_features else {}
    lists = {}
    for key in sorted(sequence_features or {}):
        feature = sequence_features[key]
        if not isinstance(feature, (FixedLenSequenceFeature, VarLenFeature)):
            raise ValueError(f"Unsupported feature type of list {key}: {type(feature).__name__}")
        missing = isinstance(feature, VarLenFeature) or feature.allow_missing
        steps = _dataops.run("snug.sequence_steps", {"key": key.encode(), "missing": b"True" if missing else b"False"}, [serialized])
        step = feature if isinstance(feature, VarLenFeature) else FixedLenFeature(feature.shape, feature.dtype)
        lists[key] = _parse("tf.io.parse_example", steps[0], {key: step})[key]
    return context, lists


_COLUMNS = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "string": "text"}


def _column(default):
    """A line of record_defaults: a list with the value, a dtype where there is none."""
    if hasattr(default, "as_numpy_dtype"):
        return _COLUMNS[default.name] + " -"
    value = default if isinstance(default, (list, tuple)) else default.numpy() if hasattr(default, "numpy") else default
    flat = value.ravel().tolist() if hasattr(value, "ravel") else list(value) if isinstance(value, (list, tuple)) else [value]
    kind = as_dtype(default.dtype).name if hasattr(default, "dtype") else (
        "string" if flat and isinstance(flat[0], (str, bytes)) else "int32" if flat and isinstance(flat[0], int) else "float32")
    if not flat:
        return _COLUMNS[kind] + " -"
    return f"{_COLUMNS[kind]} " + (_default("text", flat) if kind == "string" else repr(flat[0]))


def decode_csv(records, record_defaults, field_delim=",", use_quote_delim=True, na_value="", select_cols=None, name=None):
    attributes = {"record_defaults": "\n".join(map(_column, record_defaults)).encode(), "field_delim": field_delim.encode(),
                  "use_quote_delim": b"True" if use_quote_delim else b"False", "na_value": na_value.encode()}
    if select_cols is not None:
        attributes["select_cols"] = ("[" + ",".join(str(int(c)) for c in select_cols) + "]").encode()
    return _dataops.run("tf.io.decode_csv", attributes, [records])


# --- Examples: as much of protocol buffers as they need ---------------------------------------------------
_VARINT, _FIXED_64, _BYTES, _GROUP, _GROUP_END, _FIXED_32 = range(6)


def _varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _field(number, payload):
    return bytes([number << 3 | _BYTES]) + _varint(len(payload)) + payload


def _damaged(why):
    from snug.errors import DataLossError
    return DataLossError(None, None, f"no message of protocol buffers: {why}")


def _read_varint(data, at):
    """A number of at most ten bytes, of which 64 bits count."""
    if at < len(data) and data[at] < 128:
        return data[at], at + 1
    value = 0
    for i, byte in enumerate(data[at:at + 10]):
        value |= (byte & 127) << 7 * i
        if byte < 128:
            return value & (1 << 64) - 1, at + i + 1
    raise _damaged(f"a number at byte {at} has no end")


def _read_value(data, at, wire):
    """What stands behind a key: a number or bytes; groups have none."""
    if wire == _VARINT:
        return _read_varint(data, at)
    if wire in (_GROUP, _GROUP_END):
        return None, at
    if wire == _BYTES:
        n, at = _read_varint(data, at)
    elif wire in (_FIXED_64, _FIXED_32):
        n = 8 if wire == _FIXED_64 else 4
    else:
        raise _damaged(f"a field of kind {wire} before byte {at}")
    if n > len(data) - at:
        raise _damaged(f"{n} bytes at byte {at} of {len(data)}: it is cut off")
    return data[at:at + n], at + n


def _fields(data):
    """(number, wire type, payload) of a message's fields; groups, which none of these has, are skipped with what is in them."""
    at, groups = 0, []
    while at < len(data):
        key, at = _read_varint(data, at)
        number, wire = key >> 3, key & 7
        if not 0 < number < 1 << 29:
            raise _damaged(f"a field {number} before byte {at}")
        value, at = _read_value(data, at, wire)
        if wire == _GROUP:
            groups.append(number)
        elif wire == _GROUP_END:
            if not groups or groups.pop() != number:
                raise _damaged(f"a group {number} ends before byte {at} and did not begin")
        elif not groups:
            yield number, wire, value
    if groups:
        raise _damaged(f"group {groups[-1]} has no end")


def _entry(data, value):
    """The key of a map's entry; its value goes into `value`."""
    key = b""
    for number, wire, payload in _fields(data):
        if (number, wire) == (1, _BYTES):
            key = payload
        elif (number, wire) == (2, _BYTES):
            value.MergeFromString(payload)
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise _damaged("a name that is not in UTF-8") from None


def _quoted(text):
    """As protocol buffers print texts."""
    text = text.encode() if isinstance(text, str) else text
    known = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}
    return '"' + "".join(known.get(b, chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in text) + '"'


def _shown(value):
    if isinstance(value, (bytes, str)):
        return _quoted(value)
    if isinstance(value, float):
        import numpy as np
        short = f"{np.float32(value):.6g}"
        return short if np.float32(short) == np.float32(value) else f"{np.float32(value):.9g}"
    return str(int(value))


def _indented(name, lines):
    return [name + " {", *("  " + line for line in lines), "}"]


class _Message:
    def __str__(self):
        return "".join(line + "\n" for line in self._lines())

    __repr__ = __str__

    def __eq__(self, other):
        return type(self) is type(other) and self.SerializeToString() == other.SerializeToString()

    __hash__ = object.__hash__

    def MergeFromString(self, serialized):
        """What the bytes hold is added, the way protocol buffers do it: unknown fields are skipped. DataLossError: they are no message."""
        for number, wire, payload in _fields(serialized):
            self._take(number, wire, payload)
        return len(serialized)

    def ParseFromString(self, serialized):
        self.__init__()
        return self.MergeFromString(serialized)

    @classmethod
    def FromString(cls, s):
        made = cls()
        made.MergeFromString(s)
        return made


class _List(_Message):
    def __init__(self, value=()):
        self.value = list(value)

    def _lines(self):
        return ["value: " + _shown(v.numpy() if hasattr(v, "numpy") else v) for v in self.value]


class BytesList(_List):
    def SerializeToString(self):
        return b"".join(_field(1, bytes(v.numpy() if hasattr(v, "numpy") else v)) for v in self.value)

    def _take(self, number, wire, payload):
        if (number, wire) == (1, _BYTES):
            self.value.append(payload)


class FloatList(_List):
    def SerializeToString(self):
        values = [float(v) for v in self.value]
        return _field(1, struct.pack(f"<{len(values)}f", *values)) if values else b""

    def _take(self, number, wire, payload):
        if number == 1 and wire in (_BYTES, _FIXED_32):
            if len(payload) % 4:
                raise _damaged(f"{len(payload)} bytes of numbers that have 4 each")
            self.value += struct.unpack(f"<{len(payload) // 4}f", payload)


class Int64List(_List):
    def SerializeToString(self):
        return _field(1, b"".join(_varint(int(v)) for v in self.value)) if self.value else b""

    def _take(self, number, wire, payload):
        if (number, wire) == (1, _VARINT):
            self._add(payload)
        elif (number, wire) == (1, _BYTES):
            at = 0
            while at < len(payload):
                n, at = _read_varint(payload, at)
                self._add(n)

    def _add(self, n):
        self.value.append(n - (1 << 64) if n >> 63 else n)


class Feature(_Message):
    _KINDS = (("bytes_list", BytesList), ("float_list", FloatList), ("int64_list", Int64List))

    def __init__(self, bytes_list=None, float_list=None, int64_list=None):
        self.bytes_list, self.float_list, self.int64_list = bytes_list or BytesList(), float_list or FloatList(), int64_list or Int64List()
        self._which = next((k for k, v in (("bytes_list", bytes_list), ("float_list", float_list), ("int64_list", int64_list)) if v), None)

    def _lines(self):
        which = self.WhichOneof("kind")
        return [] if which is None else _indented(which, getattr(self, which)._lines())

    def WhichOneof(self, name):
        return self._which or next((k for k, _ in self._KINDS if getattr(self, k).value), None)

    def SerializeToString(self):
        which = self.WhichOneof("kind")
        return b"" if which is None else _field([k for k, _ in self._KINDS].index(which) + 1, getattr(self, which).SerializeToString())

    def _take(self, number, wire, payload):
        if wire == _BYTES and number <= len(self._KINDS):
            which = self._KINDS[number - 1][0]
            if self._which != which:                # one kind alone: the last
                self.__init__()
                self._which = which
            getattr(self, which).MergeFromString(payload)


class Features(_Message):
    def __init__(self, feature=None):
        self.feature = dict(feature or {})

    def _lines(self):
        return [line for key in sorted(self.feature)
                for line in _indented("feature", [f"key: {_quoted(key)}", *_indented("value", self.feature[key]._lines())])]

    def SerializeToString(self):
        return b"".join(_field(1, _field(1, k.encode()) + _field(2, self.feature[k].SerializeToString())) for k in sorted(self.feature))

    def _take(self, number, wire, payload):
        if (number, wire) == (1, _BYTES):
            value = Feature()
            self.feature[_entry(payload, value)] = value


class Example(_Message):
    def __init__(self, features=None):
        self.features = features or Features()

    def _lines(self):
        return _indented("features", self.features._lines())

    def SerializeToString(self):
        return _field(1, self.features.SerializeToString())

    def _take(self, number, wire, payload):
        if (number, wire) == (1, _BYTES):
            self.features.MergeFromString(payload)


class FeatureList(_Message):
    def __init__(self, feature=()):
        self.feature = list(feature)

    def _lines(self):
        return [line for f in self.feature for line in _indented("feature", f._lines())]

    def SerializeToString(self):
        return b"".join(_field(1, f.SerializeToString()) for f in self.feature)

    def _take(self, number, wire, payload):
        if (number, wire) == (1, _BYTES):
            self.feature.append(Feature.FromString(payload))


class FeatureLists(_Message):
    def __init__(self, feature_list=None):
        self.feature_list = dict(feature_list or {})

    def _lines(self):
        return [line for key in sorted(self.feature_list)
                for line in _indented("feature_list", [f"key: {_quoted(key)}", *_indented("value", self.feature_list[key]._lines())])]

    def SerializeToString(self):
        return b"".join(_field(1, _field(1, k.encode()) + _field(2, self.feature_list[k].SerializeToString()))
                        for k in sorted(self.feature_list))

    def _take(self, number, wire, payload):
        if (number, wire) == (1, _BYTES):
            value = FeatureList()
            self.feature_list[_entry(payload, value)] = value


class SequenceExample(_Message):
    def __init__(self, context=None, feature_lists=None):
        self.context, self.feature_lists = context or Features(), feature_lists or FeatureLists()

    def _lines(self):
        return _indented("context", self.context._lines()) + _indented("feature_lists", self.feature_lists._lines())

    def SerializeToString(self):
        return _field(1, self.context.SerializeToString()) + _field(2, self.feature_lists.SerializeToString())

    def _take(self, number, wire, payload):
        if (number, wire) == (1, _BYTES):
            self.context.MergeFromString(payload)
        elif (number, wire) == (2, _BYTES):
            self.feature_lists.MergeFromString(payload)


# --- records ----------------------------------------------------------------------------------------------
class TFRecordOptions:
    def __init__(self, compression_type=None, flush_mode=None, input_buffer_size=None, output_buffer_size=None, window_bits=None,
                 compression_level=None, compression_method=None, mem_level=None, compression_strategy=None):
        if compression_type not in (None, "", "GZIP", "ZLIB"):
            raise ValueError(f"{compression_type!r} is no compression type: '', 'GZIP', 'ZLIB'")
        self.compression_type = compression_type or ""


class TFRecordWriter:
    """Records with their checks, one file, which is there when it is closed."""

    def __init__(self, path, options=None):
        kind = options if isinstance(options, str) else getattr(options, "compression_type", "") or ""
        self._writer = _C.RecordWriter(path.decode() if isinstance(path, bytes) else str(path), {"": 0, "GZIP": 1, "ZLIB": 2}[kind])

    def write(self, record):
        record = record.numpy() if hasattr(record, "numpy") else record
        self._writer.write(record.encode() if isinstance(record, str) else record)

    def flush(self):
        pass

    def close(self):
        self._writer.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def matching_files(pattern, name=None):
    from snug.data import _texts
    made = _C.dataset_of_files(_texts(pattern))
    found = [parts[0].numpy() for parts in _C.Iterator(made, 2, list)]
    return tf.constant(found) if found else tf.constant([""], dtype=tf.string)[:0]


def tf_record_iterator(path, options=None):
    """The records of a file, as TensorFlow 1 gave them: bytes."""
    from snug.data import TFRecordDataset
    for record in TFRecordDataset(path, compression_type=getattr(options, "compression_type", None)):
        yield record.numpy()
