"""tf.compat.v1.layers over get_variable, and TensorFlow 1's initializers."""
from snug import _graph
from snug._given import refuse
from snug._lazy import tf


class _Initializer:
    """`make` gives the values of a shape; a dtype of the initializer's own is that of variables which name none."""

    def __init__(self, dtype=None):
        self.dtype = dtype

    def __call__(self, shape, dtype=None, partition_info=None):
        refuse(type(self).__name__, "partition_info", partition_info, None)
        return self.make(list(shape), dtype or self.dtype or tf.float32)


class zeros_initializer(_Initializer):
    def make(self, shape, dtype):
        return tf.zeros(shape, dtype)


class ones_initializer(_Initializer):
    def make(self, shape, dtype):
        return tf.ones(shape, dtype)


class constant_initializer(_Initializer):
    def __init__(self, value=0, dtype=None, verify_shape=False):
        super().__init__(dtype)
        self.value, self.verify_shape = value, verify_shape

    def make(self, shape, dtype):
        made = tf.constant(self.value, dtype=dtype)
        if self.verify_shape and list(made.shape) != shape:
            raise TypeError(f"Expected Tensor's shape: {tuple(shape)}, got {tuple(made.shape)}.")
        return tf.constant(self.value, dtype=dtype, shape=shape)


class _Drawn(_Initializer):
    def __init__(self, first, second, seed, dtype):
        super().__init__(dtype)
        self.first, self.second, self.seed = first, 1.0 if second is None else second, seed


class random_normal_initializer(_Drawn):
    def __init__(self, mean=0.0, stddev=1.0, seed=None, dtype=None):
        super().__init__(mean, stddev, seed, dtype)

    def make(self, shape, dtype):
        return tf.random.normal(shape, self.first, self.second, dtype, self.seed)


class truncated_normal_initializer(random_normal_initializer):
    def make(self, shape, dtype):
        return tf.random.truncated_normal(shape, self.first, self.second, dtype, self.seed)


class random_uniform_initializer(_Drawn):
    def __init__(self, minval=0, maxval=None, seed=None, dtype=None):
        super().__init__(minval, maxval, seed, dtype)

    def make(self, shape, dtype):
        return tf.random.uniform(shape, self.first, self.second, dtype, self.seed)


class _Glorot(_Initializer):
    def __init__(self, seed=None, dtype=None):
        super().__init__(dtype)
        self.seed = seed


class glorot_uniform_initializer(_Glorot):
    def make(self, shape, dtype):
        return _graph._glorot(shape, dtype, self.seed)


class glorot_normal_initializer(_Glorot):
    def make(self, shape, dtype):
        deviation = (2.0 / sum(_graph._fans(shape))) ** 0.5
        return tf.random.truncated_normal(shape, 0.0, deviation / 0.87962566103423978, dtype, self.seed)


def _named(name, default):
    graph = _graph.get_default_graph()
    if name:
        return name
    key = _graph.layers_in(graph) + default
    n = graph.names.get(key, 0)
    graph.names[key] = n + 1
    return default if n == 0 else f"{default}_{n}"


def _no_other(layer, **settings):
    """What these layers have not is refused, not left out."""
    for key, value in settings.items():
        if value is not None:
            raise NotImplementedError(f"tf.compat.v1.layers.{layer}({key}=...) is not in Snug; use tf.keras.layers")


def _layout(data_format):
    return {"channels_last": "NHWC", "channels_first": "NCHW"}[data_format]


def dense(inputs, units, activation=None, use_bias=True, kernel_initializer=None, bias_initializer=None, kernel_regularizer=None,
          bias_regularizer=None, activity_regularizer=None, kernel_constraint=None, bias_constraint=None, trainable=True, name=None,
          reuse=None):
    _no_other("dense", activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint, bias_constraint=bias_constraint)
    with _graph.variable_scope(_named(name, "dense"), reuse=reuse):
        kernel = _graph.get_variable("kernel", [inputs.shape[-1], units], None, kernel_initializer, kernel_regularizer, trainable)
        out = tf.tensordot(inputs, kernel, 1) if inputs.shape.rank > 2 else tf.matmul(inputs, kernel)
        if use_bias:
            out = out + _graph.get_variable("bias", [units], None, bias_initializer or zeros_initializer(), bias_regularizer, trainable)
    return activation(out) if activation else out


def conv2d(inputs, filters, kernel_size, strides=(1, 1), padding="valid", data_format="channels_last", dilation_rate=(1, 1), activation=None,
           use_bias=True, kernel_initializer=None, bias_initializer=None, kernel_regularizer=None, bias_regularizer=None,
           activity_regularizer=None, kernel_constraint=None, bias_constraint=None, trainable=True, name=None, reuse=None):
    _no_other("conv2d", activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint, bias_constraint=bias_constraint)
    k, s, d = ((v, v) if isinstance(v, int) else tuple(v) for v in (kernel_size, strides, dilation_rate))
    layout = _layout(data_format)
    channels = layout.index("C")
    with _graph.variable_scope(_named(name, "conv2d"), reuse=reuse):
        kernel = _graph.get_variable("kernel", [*k, inputs.shape[channels], filters], None, kernel_initializer, kernel_regularizer, trainable)
        out = tf.nn.conv2d(inputs, kernel, s, padding.upper(), data_format=layout, dilations=d)
        if use_bias:
            bias = _graph.get_variable("bias", [filters], None, bias_initializer or zeros_initializer(), bias_regularizer, trainable)
            out = out + (bias if layout == "NHWC" else tf.reshape(bias, [-1, 1, 1]))
    return activation(out) if activation else out


def max_pooling2d(inputs, pool_size, strides, padding="valid", data_format="channels_last", name=None):
    return tf.nn.max_pool2d(inputs, pool_size, strides, padding.upper(), data_format=_layout(data_format))


def average_pooling2d(inputs, pool_size, strides, padding="valid", data_format="channels_last", name=None):
    return tf.nn.avg_pool2d(inputs, pool_size, strides, padding.upper(), data_format=_layout(data_format))


def flatten(inputs, name=None, data_format="channels_last"):
    n, rank = 1, inputs.shape.rank
    if _layout(data_format) == "NCHW" and rank > 2:
        inputs = tf.transpose(inputs, [0, *range(2, rank), 1])
    for d in inputs.shape[1:]:
        n *= d
    return tf.reshape(inputs, [-1, n])


def dropout(inputs, rate=0.5, noise_shape=None, seed=None, training=False, name=None):
    if isinstance(training, _graph.Symbolic):
        return _graph.cond(training, lambda: tf.nn.dropout(inputs, rate, noise_shape, seed), lambda: tf.identity(inputs))
    return tf.nn.dropout(inputs, rate, noise_shape, seed) if training else tf.identity(inputs)
