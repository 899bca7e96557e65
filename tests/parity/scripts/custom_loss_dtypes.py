"""What functions given as loss and metric are handed: NumPy's float64 as float32, whole labels in losses as floats."""
import numpy as np
import tensorflow as tf
from tensorflow import keras


def loss(y_true, y_pred):
    return tf.reduce_mean((y_true - y_pred) ** 2)


class Scaled(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return tf.reduce_mean(tf.abs(y_true * 2 - y_pred), axis=-1)


x = np.arange(8.0).reshape(4, 2) / 8
y = x.sum(1) * 2 + 1
for targets in (y, y[:, None], np.arange(4)[:, None]):
    for given in (dict(loss=loss), dict(loss=loss, metrics=["mae"]), dict(loss=loss, metrics=[lambda a, b: tf.reduce_mean(tf.cast(a, "float32") - b)]), dict(loss=Scaled())):
        for name in ("fit", "evaluate"):
            model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, kernel_initializer="ones")])
            model.compile("sgd", **given)
            got = getattr(model, name)(x, targets, verbose=0)
            print(name, np.round(sorted(v[0] for v in got.history.values()) if name == "fit" else np.sort(np.ravel(got)), 4))
print(float(Scaled()(np.array([[1], [2]]), np.array([[1.0], [2.0]]))))
