"""What custom losses in blogs use: keras.backend (K) and plain tf in losses and metrics."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import backend as K
from parity import check, raises


def dice_coef(y_true, y_pred, smooth=1.0):
    y_true_f = K.flatten(y_true)
    y_pred_f = K.flatten(y_pred)
    intersection = K.sum(y_true_f * y_pred_f)
    return (2.0 * intersection + smooth) / (K.sum(y_true_f) + K.sum(y_pred_f) + smooth)


def dice_loss(y_true, y_pred):
    return 1.0 - dice_coef(y_true, y_pred)


def rmse(y_true, y_pred):
    return K.sqrt(K.mean(K.square(y_pred - y_true)))


def recall_m(y_true, y_pred):
    true_positives = K.sum(K.round(K.clip(y_true * y_pred, 0, 1)))
    possible_positives = K.sum(K.round(K.clip(y_true, 0, 1)))
    return true_positives / (possible_positives + K.epsilon())


def focal(gamma=2.0, alpha=0.25):
    def loss(y_true, y_pred):
        p = tf.clip_by_value(y_pred, K.epsilon(), 1 - K.epsilon())
        ce = -y_true * tf.math.log(p)
        return tf.reduce_sum(alpha * tf.pow(1 - p, gamma) * ce, axis=-1)
    return loss


a = tf.constant([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
b = tf.constant([[0.8, 0.2, 0.6], [0.3, 0.9, 0.4]])
check("dice", dice_coef(a, b))
check("rmse", rmse(a, b))
check("recall", recall_m(a, b))
check("focal", focal()(a, b))
for name in ("abs", "exp", "log", "sqrt", "square", "sum", "mean", "max", "min", "softmax", "sigmoid", "tanh", "relu"):
    check(name, getattr(K, name)(b))
check("dot", K.dot(a, tf.transpose(b)))
check("concatenate", K.concatenate([a, b], axis=0))
check("expand_dims", K.expand_dims(a).shape)
check("cast", K.cast(a, "int32"))
check("int_shape", K.int_shape(a))
check("ndim", K.ndim(a))
check("constant", K.constant([1.0, 2.0]))
check("binary_crossentropy", K.binary_crossentropy(a, b))
check("argmax", K.argmax(b))
check("equal", K.equal(a, b))
check("epsilon", K.epsilon())
m = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, activation="sigmoid", kernel_initializer="ones")])
m.compile("sgd", loss=dice_loss, metrics=[dice_coef, recall_m, rmse])
check("in fit", {k: v for k, v in sorted(m.fit(b, a, epochs=2, verbose=0, shuffle=False).history.items())}, tol=1e-4)

# Functions of old scripts whose arguments or defaults are not TensorFlow's.
t = tf.constant(np.arange(1, 13, dtype="float32").reshape(3, 4) / 10)
b = tf.constant(np.arange(24, dtype="float32").reshape(2, 3, 4) / 10)
pictures = tf.constant(np.arange(16, dtype="float32").reshape(1, 4, 4, 1))
for name, value in {
        "batch_dot": K.batch_dot(b, b, axes=2), "batch_dot of matrices": K.batch_dot(t, t), "batch_dot mixed": K.batch_dot(t[:2], b, (1, 2)),
        "batch_flatten": K.batch_flatten(b), "bias_add": K.bias_add(t, tf.constant([1.0, 2.0, 3.0, 4.0])), "constant": K.constant([1, 2]),
        "focal": K.binary_focal_crossentropy(tf.constant([0.0, 1.0]), tf.constant([0.2, 0.7])), "clip": K.clip(t, None, 0.5),
        "conv1d": K.conv1d(b, tf.ones((2, 4, 2)), padding="causal"), "conv2d": K.conv2d(pictures, tf.ones((3, 3, 1, 2)), padding="same"),
        "depthwise": K.depthwise_conv2d(pictures, tf.ones((3, 3, 1, 2))), "pool2d": K.pool2d(pictures, (2, 2), (2, 2), pool_mode="avg"),
        "dot": K.dot(b, tf.transpose(t)), "dot of tensors": K.dot(t, tf.transpose(b, (0, 2, 1))), "hard_sigmoid": K.hard_sigmoid(t),
        "relu": K.relu(t - 0.5, alpha=0.1), "repeat": K.repeat(t, 2), "repeat_elements": K.repeat_elements(t, 2, axis=1),
        "reverse": K.reverse(t, axes=0), "resize": K.resize_images(pictures, 2, 2, "channels_last"), "eye": K.eye(2),
        "padding": K.spatial_2d_padding(pictures), "temporal": K.temporal_padding(b), "switch": K.switch(tf.constant(True), t, t * 0),
        "switch rows": K.switch(tf.constant([[True], [False], [True]]), t, -t), "zeros": K.zeros((2, 2)), "floatx": K.cast_to_floatx([1, 2]),
        "update": K.update_add(tf.Variable(1.0), 3.0), "foldl": K.foldl(lambda a, c: a + c, t[0]), "eval": K.eval(t * 2),
        "ctc": K.ctc_batch_cost(tf.constant([[1, 2]]), tf.ones((1, 5, 4)) / 4, tf.constant([[5]]), tf.constant([[2]])),
        "decode": K.ctc_decode(tf.nn.softmax(tf.one_hot([[0, 0, 3, 1, 1]], 4) * 3), tf.constant([5]))[0][0]}.items():
    check("K." + name, value, 1e-5)
check("K.dtype", [K.dtype(t), K.is_sparse(t), K.int_shape(b)])
raises(AttributeError, lambda: K.function)
raises(AttributeError, lambda: K.placeholder)
model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
raises(TypeError, lambda: model.fit(np.ones((2, 2)), np.ones((2, 1)), nb_epoch=3, verbose=0))
raises(TypeError, lambda: model.compile("sgd", "mse", sample_mode=1))
scores = tf.constant([[1.0, 2.0, 3.0], [3.0, 1.0, 0.0]])
check("K.in_top_k", K.in_top_k(scores, tf.constant([2, 1]), 1))
check("K.batch_normalization", [K.batch_normalization(scores, tf.ones(3), 2 * tf.ones(3), tf.zeros(3), tf.ones(3)),
                                K.batch_normalization(scores, tf.ones(3), tf.ones(3), None, None, axis=-1, epsilon=0.1)], 1e-5)
check("K.clip", K.clip(scores, 3, 1))
check("K.arange", [K.arange(1.5), K.arange(1, 5, 2), K.arange(3, dtype="float32")])
check("K.dropout", K.dropout(x=scores, level=0.0))
check("a threshold", [K.relu(scores, threshold=2.0), tf.keras.activations.relu(scores, negative_slope=0.1, threshold=2.0)])


def leaky(x, states):
    output = x + 0.5 * states[0]
    return output, [output]


series, begin = tf.constant(np.arange(12, dtype="float32").reshape(2, 3, 2) * 0.1), [tf.zeros((2, 2))]
seen = tf.constant([[True, True, False], [True, False, False]])
last, every, states = K.rnn(leaky, series, begin)
check("K.rnn", [last, every, *states])
check("K.rnn, backwards", [K.rnn(leaky, series, begin, go_backwards=True)[i] for i in range(2)])
check("K.rnn, masked", [K.rnn(leaky, series, begin, mask=seen)[i] for i in range(2)])
check("K.rnn, zeros where masked", K.rnn(leaky, series, begin, mask=seen, zero_output_for_mask=True)[1])
check("K.rnn, the last", K.rnn(leaky, series, begin, return_all_outputs=False)[1])
check("K.rnn, constants", K.rnn(lambda x, s: (x + s[0] * s[1], [x]), series, begin, constants=[tf.constant(2.0)], unroll=True)[1])
