"""Custom losses (function and class) and metrics in compile and by hand."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check


def huber(y_true, y_pred):
    error = y_true - y_pred
    small = tf.abs(error) < 1.0
    return tf.reduce_mean(tf.where(small, 0.5 * tf.square(error), tf.abs(error) - 0.5), axis=-1)


class Weighted(keras.losses.Loss):
    def __init__(self, factor=2.0, name="weighted"):
        super().__init__(name=name)
        self.factor = factor

    def call(self, y_true, y_pred):
        return self.factor * tf.reduce_mean(tf.square(y_true - y_pred), axis=-1)


class CountClose(keras.metrics.Metric):
    def __init__(self, limit=0.5, name="close", **kwargs):
        super().__init__(name=name, **kwargs)
        self.limit = limit
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        near = tf.cast(tf.abs(tf.cast(y_true, tf.float32) - y_pred) < self.limit, tf.float32)
        self.total.assign_add(tf.reduce_sum(near))

    def result(self):
        return self.total

    def reset_state(self):
        self.total.assign(0.0)


def mean_pred(y_true, y_pred):
    return tf.reduce_mean(y_pred)


r = np.random.RandomState(1)
x = r.uniform(-1, 1, (24, 3)).astype("float32")
y = (x.sum(axis=1, keepdims=True) * 2).astype("float32")
for loss in (huber, Weighted(3.0), lambda a, b: keras.ops.mean(keras.ops.abs(a - b), axis=-1)):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss, metrics=[CountClose(), mean_pred])
    history = model.fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0).history
    check("keys", sorted(history))
    check("loss", history["loss"], tol=1e-4)
    check("close", history["close"])
    check("mean_pred", history["mean_pred"], tol=1e-4)
w = Weighted(2.0)
check("call", w(y[:4], y[:4] * 0.5))
check("sample_weight", w(y[:2], y[:2] * 0.5, sample_weight=[1.0, 0.0]))
m = CountClose()
m.update_state(y[:4], y[:4] + 0.1)
check("metric", m.result())
m.reset_state()
check("reset", float(m.result()))
