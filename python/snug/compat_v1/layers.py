"""tf.compat.v1.layers over get_variable, and TensorFlow 1's initializers."""
from snug import _graph
from snug._lazy import tf


class _Initializer:
    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, {k: v for k, v in kwargs.items() if k not in ("dtype", "seed", "verify_shape")}

    def __call__(self, shape, dtype=None, partition_info=None):
        return self.make(list(shape), dtype or tf.float32, *self.args, **self.kwargs)


class zeros_initializer(_Initializer):
    def make(self, shape, dtype):
        return tf.zeros(shape, dtype)


class ones_initializer(_Initializer):
    def make(self, shape, dtype):
        return tf.ones(shape, dtype)


class constant_initializer(_Initializer):
    def make(self, shape, dtype, value=0.0):
        return tf.constant(value, dtype=dtype, shape=shape)


class random_normal_initializer(_Initializer):
    def make(self, shape, dtype, mean=0.0, stddev=1.0):
        return tf.random.normal(shape, mean, stddev, dtype)


class truncated_normal_initializer(_Initializer):
    def make(self, shape, dtype, mean=0.0, stddev=1.0):
        return tf.random.truncated_normal(shape, mean, stddev, dtype)


class random_uniform_initializer(_Initializer):
    def make(self, shape, dtype, minval=0.0, maxval=1.0):
        return tf.random.uniform(shape, minval, maxval, dtype)


class glorot_uniform_initializer(_Initializer):
    def make(self, shape, dtype):
        return _graph._glorot(shape, dtype)


class glorot_normal_initializer(_Initializer):
    def make(self, shape, dtype):
        return tf.random.truncated_normal(shape, 0.0, (2.0 / (shape[0] + shape[-1])) ** 0.5, dtype)


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
    n = 1
    for d in inputs.shape[1:]:
        n *= d
    return tf.reshape(inputs, [-1, n])


def dropout(inputs, rate=0.5, noise_shape=None, seed=None, training=False, name=None):
    if isinstance(training, _graph.Symbolic):
        return _graph.cond(training, lambda: tf.nn.dropout(inputs, rate), lambda: tf.identity(inputs))
    return tf.nn.dropout(inputs, rate) if training else tf.identity(inputs)
