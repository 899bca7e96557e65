"""keras.layers.Normalization: less the mean, by the spread; both are given, or weights that adapt() finds, batch by batch."""
from snug import _C
from snug._lazy import tf
from snug.keras._layer import Layer


class Normalization(Layer):
    """(x - mean) / sqrt(variance), with numbers that are given or that adapt() finds."""
    _keras_module = "keras.layers"

    def __init__(self, axis=-1, mean=None, variance=None, invert=False, **kwargs):
        super().__init__(**kwargs)
        if (mean is None) != (variance is None):
            raise ValueError(f"When setting values directly, both `mean` and `variance` must be set. Received: mean={mean} and"
                             f" variance={variance}")
        self.axis = () if axis is None else tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
        self.input_mean, self.input_variance, self.invert = mean, variance, invert
        self.supports_masking = True
        self.__dict__["_broadcast"] = None          # the shape in which both meet an input

    def build(self, input_shape=None):
        if input_shape is None or self.built:
            return
        rank = len(input_shape)
        kept = sorted(a + rank if a < 0 else a for a in self.axis)
        for a in kept:
            if a >= rank or a < 0:
                raise ValueError(f"All `axis` values must be in the range [-ndim, ndim). Received inputs with ndim={rank}, while"
                                 f" axis={self.axis}")
            if input_shape[a] is None:
                raise ValueError(f"All `axis` values to be kept must have a known shape. Received axis={self.axis}, inputs.shape="
                                 f"{tuple(input_shape)}, with unknown axis at index {a}")
        self.__dict__.update(_kept=kept, _broadcast=[input_shape[a] if a in kept else 1 for a in range(rank)])
        self.__dict__["_build_shape"] = tuple(input_shape)
        if self.input_mean is None:
            shape = tuple(input_shape[a] for a in kept)
            self.adapt_mean = self.add_weight(name="mean", shape=shape, initializer="zeros", trainable=False)
            self.adapt_variance = self.add_weight(name="variance", shape=shape, initializer="ones", trainable=False)
            self.count = self.add_weight(name="count", shape=(), dtype="int64", initializer="zeros", trainable=False)
        self.built = True

    def _moment(self, given, variable):
        if given is None and not self.built:
            return None
        value = variable.read_value() if given is None else tf.cast(tf.convert_to_tensor(given), self.compute_dtype)
        if self._broadcast is None or not self._broadcast[1:] and not self._kept:
            return value
        return tf.broadcast_to(value, self._broadcast) if given is not None and not len(value.shape) else tf.reshape(value, self._broadcast)

    @property
    def mean(self):
        return self._moment(self.input_mean, self.__dict__.get("adapt_mean"))

    @property
    def variance(self):
        return self._moment(self.input_variance, self.__dict__.get("adapt_variance"))

    def adapt(self, data):
        """The moments of all data, of which one batch at a time is held."""
        if self.input_mean is not None:
            raise ValueError("Cannot `adapt()` a Normalization layer that is initialized with static `mean` and `variance`.")
        batches = [data] if hasattr(data, "shape") or isinstance(data, list) else \
            (b[0] if isinstance(b, tuple) else b for b in data)
        seen = 0
        for batch in batches:
            x = tf.cast(_C.convert_to_tensor(batch), self.compute_dtype)
            if len(x.shape) == 1 and self.axis:
                x = tf.expand_dims(x, -1)
            self.build(tuple(x.shape))
            over = [a for a in range(len(x.shape)) if a not in self._kept]
            mean, variance = tf.nn.moments(x, over)
            n = x.shape[0]
            if seen:
                old, part = self.adapt_mean.read_value(), n / (seen + n)
                both = old * (1.0 - part) + mean * part
                variance = (self.adapt_variance + (old - both) ** 2) * (1.0 - part) + (variance + (mean - both) ** 2) * part
                mean = both
            self.adapt_mean.assign(mean)
            self.adapt_variance.assign(variance)
            seen += n
        _C.boundary()           # the count stays 0, as Keras leaves it

    def update_state(self, data):
        raise NotImplementedError("Normalization.update_state is not in Snug; adapt() takes all data, or a dataset of batches")

    def call(self, inputs):
        x = tf.cast(inputs, self.compute_dtype)
        spread = tf.maximum(tf.sqrt(self.variance), 1e-7)
        return self.mean + x * spread if self.invert else (x - self.mean) / spread

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def get_config(self):
        return {**Layer.get_config(self), "axis": list(self.axis), "invert": self.invert, "mean": _plain(self.input_mean),
                "variance": _plain(self.input_variance)}


def _plain(value):
    """As a configuration holds it."""
    return value.numpy().tolist() if _C.is_tensor(value) else value.tolist() if hasattr(value, "tolist") else value
