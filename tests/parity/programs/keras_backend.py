"""What custom losses in blogs use: keras.backend (K) and plain tf in losses and metrics."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import backend as K
from parity import check


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
