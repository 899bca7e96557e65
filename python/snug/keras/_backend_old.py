"""Functions of tf.keras.backend (`K.`) that Keras 3 keeps for old scripts, where TensorFlow's of the same meaning has another name,
other arguments or other defaults. Those that are the same are taken from TensorFlow's by backend.py."""
from snug import _C
from snug._lazy import tf


def _floatx(dtype):
    from snug.keras import backend
    return dtype or backend.floatx()


# --- values ---------------------------------------------------------------------------------------------
def constant(value, dtype=None, shape=None, name=None):
    return tf.constant(value, dtype=_floatx(dtype), shape=shape)


def variable(value, dtype=None, name=None, constraint=None):
    return tf.Variable(tf.cast(tf.convert_to_tensor(value), _floatx(dtype)), name=name, constraint=constraint)


def zeros(shape, dtype=None, name=None):
    return variable(tf.zeros(shape, _floatx(dtype)), dtype, name)


def ones(shape, dtype=None, name=None):
    return variable(tf.ones(shape, _floatx(dtype)), dtype, name)


def eye(size, dtype=None, name=None):
    return variable(tf.eye(size, dtype=_floatx(dtype)), dtype, name)


def random_normal_variable(shape, mean, scale, dtype=None, name=None, seed=None):
    return variable(tf.random.normal(shape, mean, scale, _floatx(dtype), seed=seed), dtype, name)


def random_uniform_variable(shape, low, high, dtype=None, name=None, seed=None):
    return variable(tf.random.uniform(shape, low, high, _floatx(dtype), seed=seed), dtype, name)


def random_bernoulli(shape, p=0.0, dtype=None, seed=None):
    return tf.cast(tf.random.uniform(shape, seed=seed) <= p, _floatx(dtype))


def cast_to_floatx(x):
    import numpy as np
    return tf.cast(x, _floatx(None)) if _C.is_tensor(x) else np.asarray(x, dtype=_floatx(None))


def dtype(x):
    return getattr(x.dtype, "name", x.dtype)


def eval(x):
    return x.numpy() if hasattr(x, "numpy") else x


def batch_get_value(tensors):
    return [x.numpy() for x in tensors]


def batch_set_value(tuples):
    for x, value in tuples:
        x.assign(value)


def is_sparse(tensor):
    return hasattr(tensor, "dense_shape")


def to_dense(tensor):
    return tf.sparse.to_dense(tensor) if is_sparse(tensor) else tensor


def update(x, new_x):
    return x.assign(new_x)


def update_add(x, increment):
    return x.assign_add(increment)


def update_sub(x, decrement):
    return x.assign_sub(decrement)


def moving_average_update(x, value, momentum):
    return x.assign_sub((x - tf.cast(value, x.dtype)) * (1 - momentum))


# --- arithmetic -----------------------------------------------------------------------------------------
def dot(x, y):
    """Over the last axis of x and the last but one of y."""
    return tf.matmul(x, y) if len(y.shape) == 2 else tf.tensordot(x, y, [[-1], [len(y.shape) - 2]])


def batch_dot(x, y, axes=None):
    """The product of each row's tensors over one axis of each."""
    ranks = len(x.shape), len(y.shape)
    if min(ranks) < 2:
        raise ValueError(f"Cannot do batch_dot on inputs with rank < 2. Received inputs with tf.shapes {x.shape} and {y.shape}.")
    axes = (ranks[0] - 1, ranks[1] - (1 if ranks[1] == 2 else 2)) if axes is None else (axes, axes) if isinstance(axes, int) else axes
    axes = [a % rank for a, rank in zip(axes, ranks)]
    if 0 in axes:
        raise ValueError("Cannot perform batch_dot over axis 0. If your inputs are not batched, add a dummy batch dimension to your inputs"
                         " using K.expand_dims(x, 0)")
    left, right = list("abcdefg"[:ranks[0]]), list("ahijklm"[:ranks[1]])
    left[axes[0]] = right[axes[1]] = "z"
    kept = [c for c in left if c != "z"] + [c for c in right[1:] if c != "z"]
    made = tf.einsum(f"{''.join(left)},{''.join(right)}->{''.join(kept)}", x, y)
    return tf.expand_dims(made, -1) if ranks == (2, 2) else made


def clip(x, min_value, max_value):
    x = tf.convert_to_tensor(x)
    if isinstance(min_value, (int, float)) and isinstance(max_value, (int, float)):
        max_value = max(min_value, max_value)
    x = x if min_value is None else tf.maximum(x, tf.cast(min_value, x.dtype))
    return x if max_value is None else tf.minimum(x, tf.cast(max_value, x.dtype))


def in_top_k(predictions, targets, k):
    return tf.math.in_top_k(targets, predictions, k)


def batch_normalization(x, mean, var, beta, gamma, axis=-1, epsilon=1e-3):
    """Means and their like of one axis lie along the one that is named; others are broadcast as they are."""
    rank, last = len(x.shape), axis in (-1, len(x.shape) - 1)
    along = lambda v: v if v is None or last or len(v.shape) != 1 else tf.reshape(v, [-1 if k == axis % rank else 1 for k in range(rank)])
    mean, var, beta, gamma = (along(v) for v in (mean, var, beta, gamma))
    return tf.nn.batch_normalization(x, mean, var, beta, gamma, epsilon)


def dropout(x, level, noise_shape=None, seed=None):
    return tf.nn.dropout(x, level, noise_shape=noise_shape, seed=seed)


def arange(start, stop=None, step=1, dtype="int32"):
    start = 0 if stop is None and start < 0 else start
    made = tf.range(start, delta=step) if stop is None else tf.range(start, stop, step)
    return made if dtype == "int32" else tf.cast(made, dtype)


def hard_sigmoid(x):
    """The older slope of a fifth; the layers' own has a sixth."""
    return tf.clip_by_value(0.2 * tf.convert_to_tensor(x) + 0.5, 0.0, 1.0)


def relu(x, alpha=0.0, max_value=None, threshold=0.0):
    from snug.keras import activations
    return activations.relu(x, negative_slope=alpha, max_value=max_value, threshold=threshold)


def binary_focal_crossentropy(target, output, apply_class_balancing=False, alpha=0.25, gamma=2.0, from_logits=False):
    """Of each element; the loss would take the mean of the last axis."""
    from snug.keras import losses
    return losses.binary_focal_crossentropy(tf.expand_dims(target, -1), tf.expand_dims(output, -1), gamma=gamma, alpha=alpha,
                                            apply_class_balancing=apply_class_balancing, from_logits=from_logits)


def switch(condition, then_expression, else_expression):
    condition = tf.cast(condition, "bool")
    if len(condition.shape) == 0:
        return tf.cond(condition, *[e if callable(e) else (lambda e=e: e) for e in (then_expression, else_expression)])
    then_expression, else_expression = (e() if callable(e) else e for e in (then_expression, else_expression))
    more = len(then_expression.shape) - len(condition.shape)
    return tf.where(tf.reshape(condition, list(condition.shape) + [1] * more), then_expression, else_expression)


# --- shapes ---------------------------------------------------------------------------------------------
def batch_flatten(x):
    return tf.reshape(x, (-1, _size(x.shape[1:])))


def _size(extents):
    n = 1
    for extent in extents:
        n *= extent
    return n


def repeat(x, n):
    if len(x.shape) != 2:
        raise ValueError(f"Expected input `x` to have rank 2. Received: rank(x)={len(x.shape)}")
    return tf.tile(tf.expand_dims(x, 1), (1, n, 1))


def repeat_elements(x, rep, axis):
    return tf.repeat(x, rep, axis=axis)


def reverse(x, axes):
    return tf.reverse(x, [axes] if isinstance(axes, int) else axes)


def bias_add(x, bias, data_format=None):
    if data_format == "channels_first" and len(x.shape) > 2:
        bias = tf.reshape(bias, (-1,) + (1,) * (len(x.shape) - 2))
    return x + bias


def temporal_padding(x, padding=(1, 1)):
    return tf.pad(x, ((0, 0), tuple(padding), (0, 0)))


def spatial_2d_padding(x, padding=((1, 1), (1, 1)), data_format=None):
    inner = [tuple(p) for p in padding]
    return tf.pad(x, [(0, 0), (0, 0), *inner] if data_format == "channels_first" else [(0, 0), *inner, (0, 0)])


def resize_images(x, height_factor, width_factor, data_format, interpolation="nearest"):
    if data_format == "channels_first":
        x = tf.transpose(x, (0, 2, 3, 1))
    made = tf.image.resize(x, (x.shape[1] * height_factor, x.shape[2] * width_factor), method=interpolation)
    return tf.transpose(made, (0, 3, 1, 2)) if data_format == "channels_first" else made


# --- windows --------------------------------------------------------------------------------------------
def conv1d(x, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    if padding == "causal":
        x, padding = temporal_padding(x, (dilation_rate * (kernel.shape[0] - 1), 0)), "valid"
    return _ops().conv(x, kernel, strides, padding, data_format, dilation_rate)


def conv2d(x, kernel, strides=(1, 1), padding="valid", data_format=None, dilation_rate=(1, 1)):
    return _ops().conv(x, kernel, strides, padding, data_format, dilation_rate)


def conv3d(x, kernel, strides=(1, 1, 1), padding="valid", data_format=None, dilation_rate=(1, 1, 1)):
    return _ops().conv(x, kernel, strides, padding, data_format, dilation_rate)


def depthwise_conv2d(x, depthwise_kernel, strides=(1, 1), padding="valid", data_format=None, dilation_rate=(1, 1)):
    return _ops().depthwise_conv(x, depthwise_kernel, strides, padding, data_format, dilation_rate)


def pool2d(x, pool_size, strides=(1, 1), padding="valid", data_format=None, pool_mode="max"):
    if pool_mode not in ("max", "avg"):
        raise ValueError(f"Invalid pooling mode: {pool_mode}")
    return getattr(_ops(), "max_pool" if pool_mode == "max" else "average_pool")(x, pool_size, strides, padding, data_format)


def _ops():
    from snug.keras import ops
    return ops


# --- sequences of labels --------------------------------------------------------------------------------
def _log(y_pred):
    from snug.keras import backend
    return tf.math.log(tf.transpose(y_pred, (1, 0, 2)) + backend.epsilon())


def ctc_batch_cost(y_true, y_pred, input_length, label_length):
    lengths = [tf.cast(tf.squeeze(n, axis=-1), "int32") for n in (label_length, input_length)]
    return tf.expand_dims(tf.nn.ctc_loss(tf.cast(y_true, "int32"), _log(y_pred), *lengths, blank_index=-1), 1)


def ctc_decode(y_pred, input_length, greedy=True, beam_width=100, top_paths=1):
    rows, steps = y_pred.shape[:2]
    if greedy:
        found, score = tf.nn.ctc_greedy_decoder(_log(y_pred), tf.cast(input_length, "int32"))
    else:
        found, score = tf.nn.ctc_beam_search_decoder(_log(y_pred), tf.cast(input_length, "int32"), beam_width, top_paths)
    return [tf.sparse.to_dense(tf.SparseTensor(s.indices, s.values, (rows, steps)), default_value=-1) for s in found], score


# --- loops ----------------------------------------------------------------------------------------------
def rnn(step_function, inputs, initial_states, go_backwards=False, mask=None, constants=None, unroll=False, input_length=None,
        time_major=False, zero_output_for_mask=False, return_all_outputs=True):
    """The last output, all of them, and the last states; where a mask says no, output and states stay what they were."""
    from snug import _nest
    in_time = lambda x: x if time_major else tf.transpose(x, [1, 0, *range(2, len(x.shape))])
    steps = [_nest.pack_sequence_as(inputs, row) if _nest.is_nested(inputs) else row[0]
             for row in zip(*(tf.unstack(in_time(tf.convert_to_tensor(x))) for x in _nest.flatten(inputs)))]
    kept = [None] * len(steps) if mask is None else tf.unstack(in_time(tf.cast(mask, "bool"))[..., 0] if len(mask.shape) == 3 else
                                                               in_time(tf.cast(mask, "bool")))
    if go_backwards:
        steps, kept = steps[::-1], kept[::-1]
    states, outputs, last = list(initial_states), [], None
    for x, keep in zip(steps, kept):
        output, new = step_function(x, [*states, *(constants or ())])
        if keep is not None:
            old = tf.zeros_like(output) if last is None or zero_output_for_mask else last
            output = _where_rows(keep, output, old)
            new = [_where_rows(keep, a, b) for a, b in zip(new, states)]
        states, last = list(new), output
        outputs.append(output)
    stacked = tf.stack(outputs if return_all_outputs else outputs[-1:])
    return last, stacked if time_major else tf.transpose(stacked, [1, 0, *range(2, len(stacked.shape))]), \
        states if unroll else tuple(states)


def _where_rows(keep, yes, no):
    return tf.where(tf.reshape(keep, [-1] + [1] * (len(yes.shape) - 1)), yes, no)
