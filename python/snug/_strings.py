"""Tensors of text: an array of bytes objects behind a tensor's face. They are values, not recorded; tf.strings are functions of
the data table."""
import codecs

from snug import _C, _nest
from snug._given import as_array
from snug._lazy import tf
from snug._types import BY_NAME, Peek, TensorShape


def _bytes(value):
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise ValueError(f"Can't convert Python sequence with mixed types to Tensor: {value!r}")


def _array(value):
    import numpy as np
    if isinstance(value, StringTensor):
        return value._array
    lists, first = _nest.leading(value.tolist() if isinstance(value, np.ndarray) else value)
    shape = [len(v) for v in lists] + [0] * isinstance(first, (list, tuple))
    flat = [_bytes(v._array.item() if isinstance(v, StringTensor) else v)
            for v in _nest.flatten(value.tolist() if isinstance(value, np.ndarray) else value)]
    out = np.empty(len(flat), object)
    out[:] = flat
    return out.reshape(shape)


def is_text(value):
    """A list of texts, nested or not."""
    return isinstance(_nest.leading(value)[1], (str, bytes))


class StringTensor:
    """tf.constant("text")."""
    dtype = BY_NAME["string"]
    device = "/job:localhost/replica:0/task:0/device:CPU:0"
    __array_priority__ = 100

    def __init__(self, value, shape=None):
        self._array = _array(value)
        if shape is not None:
            self._array = self._array.reshape(tuple(TensorShape(shape)))

    # --- what the extension asks: parts of elements
    @staticmethod
    def _flat(value):
        """([bytes], dims) of any value of texts."""
        array = _array(value.tolist() if hasattr(value, "tolist") else value)
        return array.ravel().tolist(), array.shape

    @staticmethod
    def _is_text(value):
        kind = getattr(getattr(value, "dtype", None), "kind", None)
        if kind == "O" and not hasattr(value, "flat"):          # a column of a table
            import numpy as np
            value = np.asarray(value)
        return kind in ("U", "S") or (kind == "O" and value.size > 0 and isinstance(value.flat[0], (bytes, str)))

    @classmethod
    def _made(cls, flat, dims):
        import numpy as np
        made = cls.__new__(cls)
        made._array = np.empty(len(flat), object)
        made._array[:] = flat
        made._array = made._array.reshape(dims)
        return made

    @classmethod
    def _values(cls, flat, dims):
        return flat[0] if not dims else cls._made(flat, dims)._array

    shape = property(lambda self: TensorShape(self._array.shape))
    ndim = property(lambda self: self._array.ndim)

    def get_shape(self):
        return self.shape

    def numpy(self):
        return self._array.item() if self._array.ndim == 0 else self._array.copy()

    def __array__(self, dtype=None, copy=None):
        return self._array if copy is False and dtype is None else as_array(self._array, dtype, copy)

    def __getitem__(self, key):
        def index(k):
            return int(k) if _C.is_tensor(k) else k
        return _of(self._array[tuple(map(index, key)) if isinstance(key, tuple) else index(key)])

    def __len__(self):
        if self._array.ndim == 0:
            raise TypeError("Scalar tensor has no `len()`")
        return len(self._array)

    def __iter__(self):
        return iter([_of(v) for v in self._array])

    def __add__(self, other):
        return tf.strings.join([self, other])

    def __radd__(self, other):
        return tf.strings.join([other, self])

    def _compare(self, other):
        import numpy as np
        return np.asarray(np.equal(self._array, _array(other)), bool)

    def __eq__(self, other):
        return False if other is None else tf.constant(self._compare(other))

    def __ne__(self, other):
        return True if other is None else tf.constant(~self._compare(other))

    def __hash__(self):
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def ref(self):
        from snug._text import Reference
        return Reference(self)

    def __bool__(self):
        return bool(self._array.item())

    def __repr__(self):
        text = repr(self._array.item() if self._array.ndim == 0 else self._array)
        text = "\n" + text if "\n" in text else text
        return f"<tf.Tensor: shape={self.shape}, dtype=string, numpy={text}>"

    def __str__(self):
        text = str(self._array.item() if self._array.ndim == 0 else self._array)
        text = "\n" + text if "\n" in text else text
        return f"tf.Tensor({text}, shape={self.shape}, dtype=string)"

    def __format__(self, spec):
        return (self._array.item() if self._array.ndim == 0 else self._array).__format__(spec)

    def __snug_function__(self, function, args, kwargs):
        """Functions of the table that only move elements."""
        import numpy as np
        name = getattr(function, "__name__", "")
        if name in _MOVES:
            plain = lambda v: _array(v) if isinstance(v, (StringTensor, str, bytes)) else v.numpy() if _C.is_tensor(v) else v
            if kwargs.pop("batch_dims", 0):
                raise tf.errors.UnimplementedError(None, None, f"{name} of tensors of text has no batch_dims in Snug")
            listed = lambda v: v if is_text(v) else [plain(p) for p in v] if isinstance(v, (list, tuple)) else plain(v)
            return _of(_MOVES[name](np, *map(listed, args), **{k: listed(v) for k, v in kwargs.items() if k != "name"}))
        if name == "rank":
            return tf.constant(self._array.ndim)
        if name in ("zeros_like", "stop_gradient"):
            return _of(np.full(self._array.shape, b"", object)) if name == "zeros_like" else self
        if name == "identity":
            return self
        if name in ("equal", "not_equal"):
            return self == args[1] if name == "equal" else self != args[1]
        if name == "shape":
            return tf.constant(list(self._array.shape), dtype=tf.int32)
        if name == "size":
            return tf.constant(self._array.size)
        raise tf.errors.UnimplementedError(None, None, f"{name} of tensors of text is not in Snug")


def _where(np, condition, x=None, y=None):
    return np.where(condition, _array(x), _array(y))


# What tf does with texts is what NumPy does with objects.
_MOVES = {
    "gather": lambda np, params, indices, validate_indices=None, axis=None: np.take(params, np.asarray(indices), 0 if axis is None else int(axis)),
    "gather_nd": lambda np, params, indices: params[tuple(np.moveaxis(np.asarray(indices), -1, 0))],
    "reshape": lambda np, tensor, shape: tensor.reshape([int(d) for d in shape]),
    "expand_dims": lambda np, input, axis: np.expand_dims(input, int(axis)),
    "squeeze": lambda np, input, axis=None: np.squeeze(input, None if axis is None else tuple(np.atleast_1d(axis).tolist())),
    "concat": lambda np, values, axis: np.concatenate([_array(v) for v in values], int(axis)),
    "stack": lambda np, values, axis=0: np.stack([_array(v) for v in values], axis),
    "tile": lambda np, input, multiples: np.tile(input, tuple(int(n) for n in multiples)),
    "transpose": lambda np, a, perm=None, conjugate=False: np.transpose(a, perm),
    "reverse": lambda np, tensor, axis: np.flip(tensor, tuple(int(a) for a in np.atleast_1d(axis))),
    "boolean_mask": lambda np, tensor, mask, axis=None: tensor[(slice(None),) * int(axis or 0) + (np.asarray(mask),)],
    "fill": lambda np, dims, value: np.full([int(d) for d in dims], value.item(), object),
    "broadcast_to": lambda np, input, shape: np.broadcast_to(input, [int(d) for d in shape]),
    "slice": lambda np, input_, begin, size: input_[tuple(slice(int(b), None if int(n) < 0 else int(b) + int(n)) for b, n in zip(begin, size))],
    "where": _where, "tensor_scatter_nd_update": lambda np, tensor, indices, updates: _updated(np, tensor, indices, updates),
}


def _updated(np, tensor, indices, updates):
    made = tensor.copy()
    made[tuple(np.moveaxis(np.asarray(indices), -1, 0))] = _array(updates)
    return made


class StringVariable:
    """tf.Variable("text"): a place for a tensor of text."""
    trainable = False

    def __init__(self, value, name=None):
        self._value, self.name = _of(value), f"{name or 'Variable'}:0"

    dtype = property(lambda self: self._value.dtype)
    shape = property(lambda self: self._value.shape)

    def assign(self, value, use_locking=False, name=None, read_value=True):
        self._value = _of(value)
        return self

    def value(self):
        return self._value

    read_value = value

    def numpy(self):
        return self._value.numpy()

    def __repr__(self):
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype=string, numpy={self.numpy()!r}>"

    def __snug_function__(self, function, args, kwargs):
        plain = lambda v: v._value if isinstance(v, StringVariable) else v
        return function(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})


def _of(value):
    return value if isinstance(value, StringTensor) else StringTensor(value)


def format(template, inputs, placeholder="{}", summarize=3, name=None):  # noqa: A001
    from snug._misc import _written
    inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    if any(hasattr(x, "_slot") for x in inputs):
        raise Peek
    for value in inputs:
        template = template.replace(placeholder, _written(value, summarize), 1)
    return _of(template)


_WRONG = "\ud800"         # where bytes are no character: a mark that no right text has
codecs.register_error("snug.wrong", lambda error: (_WRONG, error.end))


def _decoded(data, errors, replacement_char, replace_control_characters=False):
    text = data.decode("utf-8", "snug.wrong")
    text = "".join(_WRONG if ord(c) < 32 else c for c in text) if replace_control_characters else text
    return _instead(text, errors, replacement_char)


def _instead(text, errors, replacement_char):
    """What `errors` says of marked places."""
    if errors not in ("strict", "replace", "ignore"):
        raise ValueError(f"errors={errors!r} is none of strict, replace, ignore")
    if errors == "strict" and _WRONG in text:
        raise tf.errors.InvalidArgumentError(None, None, "Invalid formatting on input string")
    return text.replace(_WRONG, chr(replacement_char) if errors == "replace" else "")


def unicode_split(input, input_encoding, errors="replace", replacement_char=65533, name=None):  # noqa: A002
    """The characters of one text; of several, rows of several lengths."""
    rows = _rows_of_texts(input, lambda t: unicode_split(t, input_encoding, errors, replacement_char), tf.string)
    if rows is not None:
        return rows
    characters = _decoded(_single(input, "unicode_split", input_encoding), errors, replacement_char)
    return StringTensor([c.encode() for c in characters], (len(characters),))


def _rows_of_texts(input, one, dtype):  # noqa: A002
    """Of several texts a ragged tensor of what one gives; None: it is a single text."""
    if hasattr(input, "_slot"):
        raise Peek
    text = _of(input)
    if not text.ndim:
        return None
    from snug._ragged import _list, constant
    return constant([_list(one(t)) for t in text._array.ravel()], dtype)


def _single(input, what, encoding="UTF-8"):  # noqa: A002
    """The bytes of one text."""
    if hasattr(input, "_slot"):
        raise Peek
    text = _of(input)
    if text.ndim:
        raise tf.errors.UnimplementedError(None, None, f"{what} of several texts is not in Snug; take one at a time")
    if encoding.upper() not in ("UTF-8", "UTF8"):
        raise tf.errors.UnimplementedError(None, None, f"{what} from or to {encoding} is not in Snug; UTF-8 is")
    return text.numpy()


def _each(input, change):  # noqa: A002
    """A function of bytes on each text."""
    if hasattr(input, "_slot"):
        raise Peek
    texts = _array(input)
    return StringTensor([change(t) for t in texts.ravel().tolist()], texts.shape)


def encode_base64(input, pad=False, name=None):  # noqa: A002
    import base64
    return _each(input, lambda t: base64.urlsafe_b64encode(t).rstrip(b"" if pad else b"="))


def decode_base64(input, name=None):  # noqa: A002
    import base64
    import binascii
    try:
        return _each(input, lambda t: base64.b64decode(t + b"=" * (-len(t) % 4), altchars=b"-_", validate=True))
    except binascii.Error as error:
        raise tf.errors.InvalidArgumentError(None, None, f"Invalid base64: {error}") from None


def decode_compressed(bytes, compression_type="", name=None):  # noqa: A002
    import zlib
    if compression_type not in ("", "ZLIB", "GZIP"):
        raise tf.errors.InvalidArgumentError(None, None, f"Value for attr 'compression_type' of {compression_type!r} is none of '', ZLIB, GZIP")
    try:
        return _each(bytes, (lambda t: t) if not compression_type else lambda t: zlib.decompress(t, 47))
    except zlib.error as error:
        raise tf.errors.DataLossError(None, None, f"decode_compressed: {error}") from None


def bytes_split(input, name=None):  # noqa: A002
    rows = _rows_of_texts(input, bytes_split, tf.string)
    if rows is not None:
        return rows
    data = _single(input, "bytes_split")
    return StringTensor([bytes([b]) for b in data], (len(data),))


def unicode_decode(input, input_encoding, errors="replace", replacement_char=65533, replace_control_characters=False, name=None):  # noqa: A002
    rows = _rows_of_texts(input, lambda t: unicode_decode(t, input_encoding, errors, replacement_char, replace_control_characters), tf.int32)
    if rows is not None:
        return rows
    text = _decoded(_single(input, "unicode_decode", input_encoding), errors, replacement_char, replace_control_characters)
    return tf.constant([ord(c) for c in text], dtype=tf.int32, shape=(len(text),))


def unicode_encode(input, output_encoding, errors="replace", replacement_char=65533, name=None):  # noqa: A002
    if hasattr(input, "_slot"):
        raise Peek
    if output_encoding.upper() not in ("UTF-8", "UTF8"):
        raise tf.errors.UnimplementedError(None, None, f"unicode_encode to {output_encoding} is not in Snug; UTF-8 is")
    rows = tf.convert_to_tensor(input).numpy()
    known = lambda c: 0 <= c < 0xd800 or 0xdfff < c <= 0x10ffff
    texts = [_instead("".join(chr(c) if known(c) else _WRONG for c in row), errors, replacement_char).encode()
             for row in (rows if rows.ndim == 2 else [rows])]
    return _of(texts if rows.ndim == 2 else texts[0])


def unicode_transcode(input, input_encoding, output_encoding, errors="replace", replacement_char=65533, replace_control_characters=False,  # noqa: A002
                      name=None):
    text = _decoded(_single(input, "unicode_transcode", input_encoding), errors, replacement_char, replace_control_characters)
    _single("", "unicode_transcode", output_encoding)
    return _of(text.encode())


def ngrams(data, ngram_width, separator=" ", pad_values=None, padding_width=None, preserve_short_sequences=False, name=None):
    """Neighbours joined; of rows that are as long."""
    import numpy as np
    if hasattr(data, "_slot"):
        raise Peek
    rows = _array(data)
    made = []
    left, right = (None, None) if pad_values is None else (pad_values, pad_values) if isinstance(pad_values, str) else pad_values
    for row in rows.reshape(-1, rows.shape[-1]).tolist():
        one = []
        for width in [ngram_width] if isinstance(ngram_width, int) else ngram_width:
            pad = 0 if left is None else width - 1 if padding_width is None else min(width - 1, padding_width)
            words = [(left or "").encode()] * pad + row + [(right or "").encode()] * pad
            found = [separator.encode().join(words[i:i + width]) for i in range(len(words) - width + 1)]
            one += found or ([separator.encode().join(words)] if preserve_short_sequences and words else [])
        made.append(one)
    out = np.empty((len(made), len(made[0]) if made else 0), object)
    out[...] = made
    return StringTensor(out.reshape(*rows.shape[:-1], -1))


def as_string(input, precision=-1, scientific=False, shortest=False, width=-1, fill="", name=None):
    return tf.strings.as_string(input, precision, scientific, shortest, width, fill, name)
