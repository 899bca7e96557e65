"""Custom layer, custom loss and custom metric together in fit, as in the guides."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check


class Scale(keras.layers.Layer):
    def build(self, input_shape):
        self.gain = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="gain", constraint=keras.constraints.NonNeg())

    def call(self, x, training=False):
        return x * self.gain


class MLP(keras.Model):
    def __init__(self, units):
        super().__init__()
        self.scale = Scale()
        self.hidden = [keras.layers.Dense(u, activation="tanh") for u in units]
        self.out = keras.layers.Dense(1)

    def call(self, x, training=False):
        x = self.scale(x, training=training)
        for layer in self.hidden:
            x = layer(x)
        return self.out(x)


class PinballLoss(keras.losses.Loss):
    def __init__(self, q):
        super().__init__(name="pinball")
        self.q = q

    def call(self, y_true, y_pred):
        e = y_true - y_pred
        return tf.reduce_mean(tf.maximum(self.q * e, (self.q - 1.0) * e), axis=-1)


class Coverage(keras.metrics.Metric):
    def __init__(self, name="coverage", **kw):
        super().__init__(name=name, **kw)
        self.below = self.add_weight(name="below", initializer="zeros")
        self.seen = self.add_weight(name="seen", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.below.assign_add(tf.reduce_sum(tf.cast(y_true <= y_pred, tf.float32)))
        self.seen.assign_add(tf.cast(tf.size(y_true), tf.float32))

    def result(self):
        return self.below / self.seen


r = np.random.RandomState(0)
x = r.uniform(-1, 1, (60, 3)).astype("float32")
y = (x[:, :1] - 0.5 * x[:, 1:2] ** 2).astype("float32")
model = MLP([6, 5])
model(x[:1])
model.set_weights([r.uniform(-0.7, 0.7, w.shape).astype("float32") if w.ndim > 1 else w for w in model.get_weights()])
model.compile(optimizer=keras.optimizers.Adam(0.02), loss=PinballLoss(0.9), metrics=[Coverage()])
h = model.fit(x, y, batch_size=20, epochs=5, shuffle=False, verbose=0)
check("loss", h.history["loss"], tol=1e-3)
check("coverage", h.history["coverage"], tol=0.04)
check("gain stays positive", bool(np.all(model.scale.gain.numpy() >= 0)))
check("layers", len(model.layers))
check("variables", [tuple(v.shape) for v in model.trainable_variables])
