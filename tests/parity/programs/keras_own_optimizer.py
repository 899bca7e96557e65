"""Optimizers whose update is Python's; Muon; averages; what training refuses."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check, raises

x = np.linspace(-1, 1, 48).reshape(12, 4).astype("float32")
y = x.sum(axis=1, keepdims=True)


class Heavy(keras.optimizers.Optimizer):
    def __init__(self, learning_rate=0.1, momentum=0.5, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum

    def build(self, variables):
        super().build(variables)
        self.ball = [self.add_variable_from_reference(v, "ball") for v in variables]

    def update_step(self, gradient, variable, learning_rate):
        ball = self.ball[self._get_variable_index(variable)]
        self.assign(ball, self.momentum * ball - learning_rate * gradient)
        self.assign_add(variable, ball)

    def get_config(self):
        return {**super().get_config(), "momentum": self.momentum}


def model():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, kernel_initializer="ones"),
                             keras.layers.Dense(1, kernel_initializer="ones")], name="net")


def losses(optimizer, **kwargs):
    m = model()
    m.compile(optimizer, "mse", **kwargs)
    return m.fit(x, y, epochs=3, batch_size=4, shuffle=False, verbose=0).history["loss"]


check("heavy", losses(Heavy(0.01)))
check("by schedule", losses(Heavy(keras.optimizers.schedules.ExponentialDecay(0.02, 3, 0.5))))
check("clipped", losses(Heavy(0.1, global_clipnorm=0.5, weight_decay=0.01)))
o = Heavy(0.01, name="heavy")
losses(o)
check("variables", [v.path for v in o.variables])
check("steps", [int(o.iterations), float(o.learning_rate)])
check("config", o.get_config())
v = tf.Variable([1.0, 2.0])
o = keras.optimizers.SGD(0.5)
check("muon", losses(keras.optimizers.Muon(0.01)), tol=1e-3)
check("muon's config", sorted(keras.optimizers.Muon().get_config()))
check("adam's config", list(keras.optimizers.Adam().get_config()))
m = model()
m.compile(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5), "mse")
m.fit(x, y, batch_size=4, shuffle=False, verbose=0)
check("averages when fit ends", m.get_weights(), tol=1e-4)
m.optimizer.finalize_variable_values(m.trainable_variables)
check("averages", m.get_weights(), tol=1e-4)
o = keras.optimizers.Adam(gradient_accumulation_steps=2)
losses(o)
check("accumulated", int(o.iterations))
scheduled = keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5))
raises(TypeError, lambda: setattr(scheduled, "learning_rate", 0.5))
m = model()
raises(ValueError, lambda: m.fit(x, y, verbose=0))
m.compile("sgd", "mse")
raises(ValueError, lambda: m.fit(x, y[:5], verbose=0))
raises(ValueError, lambda: m.fit(x[:, :3], y, verbose=0))
raises(ValueError, lambda: m.compile("sgd", "mse", metrics="mae"))
raises(ValueError, lambda: keras.callbacks.ModelCheckpoint("a.h5", save_weights_only=True))
raises(ValueError, lambda: keras.callbacks.ModelCheckpoint("a"))
m.compile("sgd", "mse")
raises(ValueError, lambda: m.fit(x, y, verbose=0, callbacks=[keras.callbacks.EarlyStopping(monitor="val_acc")]))
wide = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
wide.compile("sgd", "categorical_crossentropy")
raises(ValueError, lambda: wide.fit(x, y, verbose=0))
bins = keras.layers.Discretization(num_bins=4)
bins.adapt(np.arange(40.0) ** 2)
check("quantiles", [bins.bin_boundaries, bins(np.array([[0.0, 300.0, 5000.0]]))], tol=1e-4)
check("numbers in a list", keras.layers.CategoryEncoding(num_tokens=4, output_mode="one_hot")([3, 0, 1]))
