"""Hashing and HashedCrossing: values to bins by TensorFlow's hash of their texts."""
from snug import _dataops
from snug._given import default_only
from snug._lazy import tf
from snug.keras._layer import Layer
from snug.keras._symbolic import KerasTensor, Node

_MODES = ("int", "one_hot", "multi_hot", "count")


class _Hashed(Layer):
    _keras_module = "keras.layers"

    @default_only("sparse")
    def __init__(self, num_bins, output_mode="int", sparse=False, dtype=None, **kwargs):
        super().__init__(**kwargs)
        if num_bins is None or num_bins <= 0:
            raise ValueError(f"The `num_bins` for `{type(self).__name__}` cannot be `None` or non-positive values. Received:"
                             f" num_bins={num_bins}.")
        if output_mode not in _MODES:
            raise ValueError(f"Invalid value for argument `output_mode`. Expected one of {_MODES}. Received: output_mode={output_mode}")
        name = getattr(dtype, "name", dtype) or ("int64" if output_mode == "int" else "float32")
        if output_mode == "int" and name not in ("int32", "int64"):
            raise ValueError(f'When `output_mode="int"`, `dtype` should be an integer type, "int32" or "int64". Received: dtype={dtype}')
        self.num_bins, self.output_mode, self.built, self._kind = num_bins, output_mode, True, name

    def __call__(self, inputs, training=None, mask=None):
        first = inputs[0] if isinstance(inputs, (list, tuple)) and inputs else inputs
        return self._symbolic_call((inputs,), {}) if isinstance(first, KerasTensor) else self.call(inputs)

    def _symbolic_call(self, args, kwargs):
        first = args[0][0] if isinstance(args[0], (list, tuple)) else args[0]
        outputs = KerasTensor(self.compute_output_shape(tuple(first.shape)), self._kind)
        self._nodes.append(Node(self, args, kwargs, outputs))
        return outputs

    def compute_output_shape(self, input_shape):
        return tuple(input_shape) if self.output_mode == "int" else (*input_shape[:-1], self.num_bins)

    def _written(self, bins):
        return tf.cast(self._in_mode(bins), self._kind)

    def _in_mode(self, bins):
        if self.output_mode == "int":
            return bins
        if self.output_mode == "one_hot":
            bins = tf.squeeze(bins, -1) if bins.shape and bins.shape[-1] == 1 else bins
            return tf.one_hot(bins, self.num_bins)
        counts = tf.reduce_sum(tf.one_hot(bins, self.num_bins), -2)
        return counts if self.output_mode == "count" else tf.cast(counts > 0, "float32")

    def _texts(self, values):
        values = tf.convert_to_tensor(values)
        return values if values.dtype == tf.string else tf.as_string(tf.cast(values, "int64") if values.dtype.is_floating else values)

    def get_config(self):
        return {**super().get_config(), "num_bins": self.num_bins, "output_mode": self.output_mode, "dtype": self._kind}


class Hashing(_Hashed):
    def __init__(self, num_bins, mask_value=None, salt=None, output_mode="int", sparse=False, **kwargs):
        super().__init__(num_bins, output_mode, sparse, **kwargs)
        if salt is not None and not isinstance(salt, int) and not (isinstance(salt, (tuple, list)) and len(salt) == 2):
            raise ValueError("The `salt` argument for `Hashing` can only be a tuple of size 2 integers, or a single integer. Received:"
                             f" salt={salt}.")
        self.mask_value = mask_value
        self.salt = [salt, salt] if isinstance(salt, int) else salt and list(salt)

    def call(self, inputs):
        texts, masked = self._texts(inputs), self.mask_value is not None and self.num_bins > 1
        if self.salt is None:
            bins = tf.strings.to_hash_bucket_fast(texts, self.num_bins - masked)
        else:
            bins = tf.strings.to_hash_bucket_strong(texts, self.num_bins - masked, key=self.salt)
        if masked:
            bins = tf.where(tf.equal(texts, str(self.mask_value)), tf.zeros_like(bins), bins + 1)
        return self._written(bins)

    def get_config(self):
        return {**super().get_config(), "mask_value": self.mask_value, "salt": self.salt}


class HashedCrossing(_Hashed):
    """Features of one example together: a bin for each pair, triple, ..."""

    def __init__(self, num_bins, output_mode="int", sparse=False, name=None, dtype=None, **kwargs):
        if output_mode not in ("int", "one_hot"):
            raise ValueError(f"Invalid value for argument `output_mode`. Expected one of ('int', 'one_hot'). Received:"
                             f" output_mode={output_mode}")
        super().__init__(num_bins, output_mode, sparse, dtype, name=name, **kwargs)

    def call(self, inputs):
        if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
            raise ValueError(f"`HashedCrossing` should be called on a list or tuple of at least two inputs. Received: inputs={inputs}")
        inputs = [tf.convert_to_tensor(x) for x in inputs]
        shape = tuple(inputs[0].shape)
        if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1) or any(tuple(x.shape) != shape for x in inputs):
            raise ValueError("All `HashedCrossing` inputs should have equal shape, `()`, `(batch_size)` or `(batch_size, 1)`. Received:"
                             f" inputs={inputs}")
        if any(x.dtype != tf.string and not x.dtype.is_integer for x in inputs):
            raise ValueError(f"`inputs` should have an integer or string dtype. Received: inputs={inputs}")
        columns = [x if x.dtype == tf.string else tf.cast(x, tf.int64) for x in inputs]
        return self._written(_dataops.function("snug.hash_cross")(columns, self.num_bins))
