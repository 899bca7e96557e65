"""tf.lookup: tables from keys to values, held by the host. What they are asked for and what they give may be text or numbers; asking one
reads its argument."""
from snug import _C
from snug._files import open_regular
from snug._lazy import tf


_LINE_BYTES = 1 << 20       # of a file of keys and values


def _values(tensor):
    """A flat list of Python values (text as bytes), the shape, and the dtype."""
    from snug._strings import StringTensor
    if isinstance(tensor, (str, bytes)) or isinstance(tensor, (list, tuple)) and any(isinstance(v, (str, bytes)) for v in tensor):
        tensor = StringTensor(tensor)
    if not isinstance(tensor, StringTensor) and not _C.is_tensor(tensor):
        tensor = tf.convert_to_tensor(tensor)
    array = tensor._array if isinstance(tensor, StringTensor) else tensor.numpy()
    return array.ravel().tolist(), array.shape, tensor.dtype


def _tensor(values, shape, dtype):
    from snug._strings import StringTensor
    if dtype != tf.string:
        return tf.constant(values, dtype=dtype, shape=shape)
    return StringTensor(values, shape) if len(shape) else StringTensor(values[0])


class KeyValueTensorInitializer:
    def __init__(self, keys, values, key_dtype=None, value_dtype=None, name=None):
        self._keys, _, found = _values(keys)
        self.key_dtype = tf.as_dtype(key_dtype or found)
        self._values, _, found = _values(values)
        self.value_dtype = tf.as_dtype(value_dtype or found)

    def pairs(self):
        return zip(self._keys, self._values)


class TextFileIndex:
    WHOLE_LINE, LINE_NUMBER = -2, -1


class TextFileInitializer:
    """Keys and values out of the lines of a file: a column, the whole line, or its number."""

    def __init__(self, filename, key_dtype, key_index, value_dtype, value_index, vocab_size=None, delimiter="\t", name=None,
                 value_index_offset=0):
        self.key_dtype, self.value_dtype = tf.as_dtype(key_dtype), tf.as_dtype(value_dtype)
        self._settings = filename, key_index, value_index, vocab_size, delimiter.encode(), value_index_offset

    def pairs(self):
        filename, key, value, size, by, offset = self._settings
        with open_regular(filename) as file:
            for i, line in enumerate(iter(lambda: file.readline(_LINE_BYTES + 1), b"")):
                if i == size:
                    return
                if len(line) > _LINE_BYTES:
                    raise tf.errors.InvalidArgumentError(None, None, f"'{filename}': line {i + 1} has more than {_LINE_BYTES} bytes")
                line = line.rstrip(b"\n")
                try:
                    yield self._part(line, i, key, by, self.key_dtype), self._part(line, i + offset, value, by, self.value_dtype)
                except (IndexError, ValueError) as error:
                    raise tf.errors.InvalidArgumentError(None, None, f"'{filename}': line {i + 1} is none of this table: {error}") from None

    @staticmethod
    def _part(line, number, index, by, dtype):
        if index == TextFileIndex.LINE_NUMBER:
            return number
        text = line if index == TextFileIndex.WHOLE_LINE else line.split(by)[index]
        return text if dtype == tf.string else int(text) if dtype.is_integer else float(text)


class _Table:
    def __init__(self, initializer):
        self.key_dtype, self.value_dtype, self._table = initializer.key_dtype, initializer.value_dtype, {}
        for key, value in initializer.pairs():
            if self._table.setdefault(key, value) != value:
                raise tf.errors.FailedPreconditionError(None, None, f"HashTable has different value for same key. Key {key!r} has"
                                                        f" {self._table[key]!r} and trying to add value {value!r}")

    def __getitem__(self, keys):
        return self.lookup(keys)

    def size(self, name=None):
        return tf.constant(len(self._table), tf.int64)

    def lookup(self, keys, name=None):
        values, shape, dtype = _values(keys)
        if dtype != self.key_dtype and not (_C.is_tensor(keys) or hasattr(keys, "dtype")) and dtype.is_integer and self.key_dtype.is_integer:
            dtype = self.key_dtype          # plain numbers
        if dtype != self.key_dtype:
            raise TypeError(f"Signature mismatch. Keys must be dtype {self.key_dtype}, got {dtype}.")
        return _tensor([self._table.get(v, self._missing(v)) for v in values], shape, self.value_dtype)


class StaticHashTable(_Table):
    def __init__(self, initializer, default_value, name=None, experimental_is_anonymous=False):
        super().__init__(initializer)
        self._default = default_value.encode() if isinstance(default_value, str) else \
            default_value.numpy().item() if _C.is_tensor(default_value) else default_value
        self.default_value = default_value

    def _missing(self, key):
        return self._default

    def export(self, name=None):
        keys, values = list(self._table), list(self._table.values())
        return _tensor(keys, (len(keys),), self.key_dtype), _tensor(values, (len(values),), self.value_dtype)


class StaticVocabularyTable(_Table):
    """Keys without an entry go to one of the buckets behind it, by a hash of their text."""

    def __init__(self, initializer, num_oov_buckets, lookup_key_dtype=None, name=None, experimental_is_anonymous=False):
        if num_oov_buckets <= 0:
            raise ValueError("`num_oov_buckets` must be > 0; use StaticHashTable instead.")
        if initializer is None:
            self.key_dtype, self.value_dtype, self._table = tf.as_dtype(lookup_key_dtype or tf.string), tf.int64, {}
        else:
            super().__init__(initializer)
        self._buckets = int(num_oov_buckets)

    def _missing(self, key):
        text = key if isinstance(key, bytes) else str(key).encode()
        return len(self._table) + int(tf.strings.to_hash_bucket_fast([text], self._buckets)[0])

    def size(self, name=None):
        return tf.constant(len(self._table) + self._buckets, tf.int64)


class MutableHashTable(StaticHashTable):
    """A table that is written to while the program runs."""

    def __init__(self, key_dtype, value_dtype, default_value, name="MutableHashTable", checkpoint=True, experimental_is_anonymous=False):
        none = KeyValueTensorInitializer([], [], key_dtype, value_dtype)
        super().__init__(none, default_value)

    def insert(self, keys, values, name=None):
        self._table.update(zip(_values(keys)[0], _values(values)[0]))

    def remove(self, keys, name=None):
        for key in _values(keys)[0]:
            self._table.pop(key, None)

    erase = remove


class DenseHashTable(MutableHashTable):
    def __init__(self, key_dtype, value_dtype, default_value, empty_key, deleted_key, initial_num_buckets=None, name="DenseHashTable",
                 checkpoint=True, experimental_is_anonymous=False):
        super().__init__(key_dtype, value_dtype, default_value)
        self._reserved = set(_values([empty_key])[0]) | set(_values([deleted_key])[0])

    def insert(self, keys, values, name=None):
        if self._reserved & set(_values(keys)[0]):
            raise tf.errors.InvalidArgumentError(None, None, "Using the empty_key as a table key is not allowed")
        super().insert(keys, values)
