"""Layers between text and numbers: StringLookup, IntegerLookup, TextVectorization. They are tables of the host, not recorded: what comes out
are whole numbers (or counts), which are. A table is made by adapt(), or given as a vocabulary."""
import re

from snug import _C, _arrays
from snug._files import open_regular
from snug._given import default_only
from snug._lazy import tf
from snug.keras import _symbolic
from snug.keras._layer import Layer
from snug.keras._symbolic import KerasTensor, Node

_PUNCTUATION = re.compile(r"""[!"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~']""")
_MODES = ("int", "one_hot", "multi_hot", "count", "tf_idf")


def _array(inputs):
    """An array of Python values: bytes for text, numbers otherwise."""
    import numpy as np
    from snug._strings import StringTensor
    if isinstance(inputs, StringTensor):
        return inputs._array
    if _C.is_tensor(inputs):
        return inputs.numpy()
    inputs = _arrays.of(inputs)
    a = np.asarray(inputs)
    return StringTensor(inputs)._array if a.dtype.kind in "UOS" else a


def _values(tensor):
    return tensor.numpy().tolist()


def _batches(data):
    """The arrays of a data set, a list or one array; of pairs, the first."""
    if hasattr(data, "as_numpy_iterator") or hasattr(data, "__next__"):
        for element in data:
            yield _array(element[0] if isinstance(element, tuple) else element)
    else:
        yield _array(data)


def _check_form(kind, sparse, encoding="utf-8"):
    if sparse:
        raise NotImplementedError(f"{kind}(sparse=True) is not in Snug: its outputs are dense")
    if str(encoding).lower().replace("_", "-") not in ("utf-8", "utf8"):
        raise NotImplementedError(f"{kind}(encoding={encoding!r}) is not in Snug: texts are utf-8")


class _Lookup(Layer):
    """What the layers share. The table: mask token (where there is one), unknown ones, then the vocabulary."""
    _reads_lines = False        # whether an example is a text of many words
    _keras_module = "keras.layers"

    def __init__(self, max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights=None, invert=False, output_mode="int",
                 pad_to_max_tokens=False, **kwargs):
        kwargs.pop("dtype", None)
        super().__init__(**kwargs)
        if output_mode not in _MODES:
            raise ValueError(f"Argument `output_mode` must be one of {list(_MODES)}. Received: output_mode={output_mode}")
        if max_tokens is not None and max_tokens <= num_oov_indices + (mask_token is not None and output_mode == "int"):
            raise ValueError(f"If set, `max_tokens` must be greater than {num_oov_indices}. Received: max_tokens={max_tokens}")
        self.max_tokens, self.num_oov_indices, self.mask_token, self.oov_token = max_tokens, num_oov_indices, mask_token, oov_token
        self.invert, self.output_mode, self.pad_to_max_tokens = invert, output_mode, pad_to_max_tokens
        self._tokens, self._index, self._idf, self._counts, self._documents = [], {}, None, {}, {}
        self._seen, self.built, self.supports_jit = 0, True, False
        if vocabulary is not None:
            self.set_vocabulary(vocabulary, idf_weights)

    # --- the table ------------------------------------------------------------------------------------
    def _special(self):
        mask = [self.mask_token] if self.mask_token is not None and self.output_mode == "int" else []
        return mask + [self.oov_token] * self.num_oov_indices

    def _token(self, value):
        return value.decode() if isinstance(value, bytes) else value

    def get_vocabulary(self, include_special_tokens=True):
        return (self._special() if include_special_tokens else []) + self._tokens

    def vocabulary_size(self):
        return len(self._special()) + len(self._tokens)

    def _width(self):
        """Of a vector of counts."""
        return self.max_tokens if self.pad_to_max_tokens and self.max_tokens else self.vocabulary_size()

    vocab_size = vocabulary_size

    def set_vocabulary(self, vocabulary, idf_weights=None):
        if isinstance(vocabulary, str):
            with open_regular(vocabulary) as file:
                vocabulary = file.read().decode().splitlines()
        tokens = [self._token(v) for v in (_array(vocabulary).tolist() if not isinstance(vocabulary, list) else vocabulary)]
        special = self._special()
        if special and tokens[:len(special)] == special:
            tokens = tokens[len(special):]
        if len(set(tokens)) != len(tokens):
            raise ValueError("The passed vocabulary has at least one repeated term. Please uniquify your dataset.")
        if self.max_tokens is not None and len(tokens) + len(special) > self.max_tokens:
            raise ValueError(f"Attempted to set a vocabulary larger than the maximum vocab size. Received vocabulary size is"
                             f" {len(tokens) + len(special)}; `max_tokens` is {self.max_tokens}.")
        self._tokens = tokens
        self._index = {t: i for i, t in enumerate(tokens, len(special))}
        if self.mask_token is not None and self.output_mode == "int":
            self._index.setdefault(self.mask_token, 0)
        if idf_weights is not None:
            import numpy as np
            weights = [float(w) for w in idf_weights]
            self._idf = np.array([sum(weights) / max(len(weights), 1)] * self.num_oov_indices + weights, "float32")

    def adapt(self, data, batch_size=None, steps=None):
        self.reset_state()
        for i, batch in enumerate(_batches(data)):
            if steps is not None and i == steps:
                break
            self.update_state(batch)
        self.finalize_state()

    def reset_state(self):
        self._counts, self._documents, self._seen = {}, {}, 0

    def _rows(self, batch):
        return [[self._token(v) for v in row.ravel()] for row in (batch.reshape(-1, 1) if batch.ndim < 2 else batch)]

    def update_state(self, data):
        rows = self._rows(_array(data))
        self._seen += len(rows)
        for row in rows:
            for token in row:
                self._counts[token] = self._counts.get(token, 0) + 1
            for token in set(row):
                self._documents[token] = self._documents.get(token, 0) + 1

    def finalize_state(self):
        """The most frequent first; of equally frequent ones the last in the alphabet."""
        import math
        drop = {self.oov_token, self.mask_token}
        found = sorted((t for t in self._counts if t not in drop), reverse=True)
        found.sort(key=lambda t: -self._counts[t])
        if self.max_tokens is not None:
            found = found[:self.max_tokens - len(self._special())]
        idf = [math.log(1 + self._seen / (1 + self._documents[t])) for t in found] if self.output_mode == "tf_idf" else None
        self.set_vocabulary(found, idf)

    # --- looking up -----------------------------------------------------------------------------------
    def _ids(self, a):
        import numpy as np
        self._require_table()
        values = [self._token(v) for v in a.ravel()]
        unknown = sorted({v for v in values if v not in self._index}, key=str)
        passed_over = self.mask_token is not None and self.output_mode != "int"
        if passed_over:
            unknown = [v for v in unknown if v != self._token(self.mask_token)]
        if unknown and _symbolic.STANDING_IN[0]:
            return np.zeros(a.shape, "int64")
        if unknown and not self.num_oov_indices:
            raise tf.errors.InvalidArgumentError(None, None, f"When `num_oov_indices=0` all inputs should be in vocabulary, found OOV"
                                                 f" values {unknown}, consider setting `num_oov_indices=1`.")
        first = self.mask_token is not None and self.output_mode == "int"
        index = {**self._index, **{v: first + n for v, n in zip(unknown, self._unknown(unknown))}} if unknown else dict(self._index)
        if passed_over:
            index[self._token(self.mask_token)] = -1        # is nobody's place
        return np.array([index[v] for v in values], "int64").reshape(a.shape)

    def _require_table(self):
        if not self._tokens:
            raise tf.errors.FailedPreconditionError(None, None, f"Table not initialized: {type(self).__name__} has no vocabulary; call adapt(),"
                                                    " or give one")

    def _unknown(self, values):
        """Which of the unknown ones each is: numbers in turn, texts by TensorFlow's hash."""
        n = self.num_oov_indices
        if n == 1:
            return [0] * len(values)
        if not isinstance(values[0], str):
            return [v % n for v in values]
        return [int(k) for k in tf.strings.to_hash_bucket_fast(values, n).numpy()]

    def _counted(self, ids):
        """Rows of ids as vectors of the vocabulary's size."""
        import numpy as np
        size = self._width()
        if self.output_mode == "one_hot":
            flat = ids[..., 0] if ids.ndim and ids.shape[-1] == 1 else ids
            return tf.constant(np.eye(size + 1, size, dtype="int64")[flat])     # -1: the last row, of zeros
        rows = ids.reshape(-1, ids.shape[-1]) if ids.ndim else ids.reshape(1, 1)
        out = np.zeros((len(rows), size), "float32" if self.output_mode == "tf_idf" else "int64")
        for row, given in zip(out, rows):
            np.add.at(row, given[given >= 0], 1)
        if self.output_mode == "multi_hot":
            out = (out > 0).astype("int64")
        if self.output_mode == "tf_idf":
            out[:, :len(self._idf)] *= self._idf
        return tf.constant(out.reshape(ids.shape[:-1] + (size,)) if ids.ndim else out[0])

    def __call__(self, inputs, training=None, mask=None):
        if hasattr(inputs, "_slot"):
            from snug.keras import _captured
            return _captured.looked_up(self, inputs)
        return self._symbolic_call((inputs,), {}) if isinstance(inputs, KerasTensor) else self.call(inputs)

    def _kind(self):
        return "string" if self.invert and isinstance(self.oov_token, str) else "float32" if self.output_mode == "tf_idf" else "int64"

    def _symbolic_call(self, args, kwargs):
        outputs = KerasTensor(self.compute_output_shape(tuple(args[0].shape)), self._kind())
        self._nodes.append(Node(self, args, kwargs, outputs))
        return outputs

    def call(self, inputs):
        from snug._ragged import RaggedTensor
        if isinstance(inputs, RaggedTensor):
            return inputs.with_flat_values(self.call(inputs.flat_values))
        if self.invert:
            return self._inverted(_array(inputs))
        ids = self._ids(_array(inputs))
        return tf.constant(ids) if self.output_mode == "int" else self._counted(ids)

    def _inverted(self, ids):
        from snug._strings import StringTensor
        table = self.get_vocabulary()
        words = [table[i] if 0 <= i < len(table) else self.oov_token for i in ids.ravel().tolist()]
        if isinstance(self.oov_token, int):
            return tf.constant(words, dtype=tf.int64, shape=ids.shape)
        return StringTensor(words, ids.shape) if ids.ndim else StringTensor(words[0])

    def compute_output_shape(self, input_shape):
        return tuple(input_shape) if self.output_mode == "int" else (*input_shape[:-1], self._width())

    def get_config(self):
        return {**super().get_config(), "max_tokens": self.max_tokens, "num_oov_indices": self.num_oov_indices,
                "mask_token": self.mask_token, "oov_token": self.oov_token, "vocabulary": list(self._tokens) or None,
                "invert": self.invert, "output_mode": self.output_mode, "pad_to_max_tokens": self.pad_to_max_tokens}

    @classmethod
    def from_config(cls, config):
        from snug.keras import _serial
        if isinstance(config.get("vocabulary"), str) and not _serial.is_trusted():
            raise ValueError(f"Requested the loading of a vocabulary file that is no part of the model: {config['vocabulary']!r}. If you trust"
                             " the source of the artifact, pass `safe_mode=False` to the loading function.")
        return super().from_config(config)


class StringLookup(_Lookup):
    @default_only("sparse encoding", "StringLookup")
    def __init__(self, max_tokens=None, num_oov_indices=1, mask_token=None, oov_token="[UNK]", vocabulary=None, idf_weights=None,
                 invert=False, output_mode="int", pad_to_max_tokens=False, sparse=False, encoding="utf-8", name=None, **kwargs):
        _check_form("StringLookup", sparse, encoding)
        super().__init__(max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, invert, output_mode,
                         pad_to_max_tokens, name=name, **kwargs)


class IntegerLookup(_Lookup):
    @default_only("sparse vocabulary_dtype", "IntegerLookup")
    def __init__(self, max_tokens=None, num_oov_indices=1, mask_token=None, oov_token=-1, vocabulary=None, vocabulary_dtype="int64",
                 idf_weights=None, invert=False, output_mode="int", sparse=False, pad_to_max_tokens=False, name=None, **kwargs):
        _check_form("IntegerLookup", sparse)
        super().__init__(max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, invert, output_mode,
                         pad_to_max_tokens, name=name, **kwargs)

    def _token(self, value):
        return int(value)


class TextVectorization(_Lookup):
    """Lines of text as rows of word numbers, or counts of words."""
    _reads_lines = True

    @default_only("sparse encoding", "TextVectorization")
    def __init__(self, max_tokens=None, standardize="lower_and_strip_punctuation", split="whitespace", ngrams=None, output_mode="int",
                 output_sequence_length=None, pad_to_max_tokens=False, vocabulary=None, idf_weights=None, sparse=False, ragged=False,
                 encoding="utf-8", name=None, **kwargs):
        if ragged and output_mode != "int":
            raise ValueError(f"`ragged` must not be true if `output_mode` is `'{output_mode}'`.")
        _check_form("TextVectorization", sparse, encoding)
        rules = (None, "lower", "strip_punctuation", "lower_and_strip_punctuation")
        if not callable(standardize) and standardize not in rules:
            raise ValueError(f"The `standardize` argument is one of {rules}, or a function. Received: standardize={standardize}")
        if not callable(split) and split not in (None, "whitespace", "character"):
            raise ValueError(f"The `split` argument is None, 'whitespace', 'character' or a function. Received: split={split}")
        super().__init__(max_tokens, 1, "", "[UNK]", None, None, False, output_mode, pad_to_max_tokens, name=name, **kwargs)
        self.standardize, self.split, self.ngrams, self.output_sequence_length = standardize, split, ngrams, output_sequence_length
        self.ragged = ragged
        if vocabulary is not None:
            self.set_vocabulary(vocabulary, idf_weights)

    def _standard(self, line):
        """Upper to lower, punctuation off; a function of the user's sees tensors of text."""
        rule = self.standardize
        if callable(rule):
            from snug._strings import StringTensor
            return rule(StringTensor(line)).numpy().decode()
        if rule in ("lower", "lower_and_strip_punctuation"):
            line = line.lower()
        return _PUNCTUATION.sub("", line) if rule in ("strip_punctuation", "lower_and_strip_punctuation") else line

    def _words(self, line):
        line = self._standard(self._token(line))
        if callable(self.split):
            from snug._strings import StringTensor
            words = [w.decode() for w in self.split(StringTensor(line)).numpy()]
        else:
            words = line.split() if self.split == "whitespace" else list(line) if self.split == "character" else [line]
        if self.ngrams is None:
            return words
        sizes = range(1, self.ngrams + 1) if isinstance(self.ngrams, int) else self.ngrams
        return [" ".join(words[i:i + n]) for n in sizes for i in range(len(words) - n + 1)]

    def _rows(self, batch):
        return [self._words(line) for line in batch.ravel()]

    def call(self, inputs):
        import numpy as np
        self._require_table()
        a = _array(inputs)
        rows = self._rows(a)
        if self.output_mode != "int":
            width = max([len(r) for r in rows] + [1])
            ids = np.full((len(rows), width), -1, "int64")
            for row, words in zip(ids, rows):
                row[:len(words)] = [self._index.get(w, 0) for w in words]
            out = self._counted(ids)
            return out[0] if a.ndim == 0 else out
        if self.ragged and a.ndim:
            from snug._ragged import constant
            return constant([[self._index.get(w, 1) for w in words[:self.output_sequence_length]] for words in rows], "int64")
        width = self.output_sequence_length or max([len(r) for r in rows] + [0])
        ids = np.zeros((len(rows), width), "int64")
        for row, words in zip(ids, rows):
            found = [self._index.get(w, 1) for w in words[:width]]
            row[:len(found)] = found
        return tf.constant(ids[0] if a.ndim == 0 else ids)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.output_sequence_length if self.output_mode == "int" else self._width())

    def get_config(self):
        return {**Layer.get_config(self), "max_tokens": self.max_tokens, "standardize": self.standardize, "split": self.split,
                "ngrams": self.ngrams, "output_mode": self.output_mode, "output_sequence_length": self.output_sequence_length,
                "pad_to_max_tokens": self.pad_to_max_tokens, "ragged": self.ragged,
                "vocabulary": self.get_vocabulary() if self._tokens else None}
