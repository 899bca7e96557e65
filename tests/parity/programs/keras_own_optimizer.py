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
for often in (None, 2):
    m = model()
    m.compile(Heavy(0.02, use_ema=True, ema_momentum=0.6, ema_overwrite_frequency=often), "mse")
    m.fit(x, y, batch_size=4, shuffle=False, epochs=2, verbose=0)
    check(f"averages of one's own {often}", m.get_weights(), tol=1e-4)
    check(f"and their names {often}", [v.path.partition("/")[2] for v in m.optimizer.variables])
for make in (keras.optimizers.Adam, Heavy):
    for each in (False, True):
        m = model()
        m.compile(make(0.02, use_ema=True, ema_momentum=0.6), "mse")
        swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=each)
        seen = []
        spy = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(m.get_weights()[0]))
        h = m.fit(x, y, batch_size=4, shuffle=False, epochs=3, verbose=0, validation_data=(x, y), callbacks=[swap, spy])
        check(f"swapped {make.__name__} {each}", [h.history["loss"], h.history["val_loss"], seen, m.get_weights()], tol=1e-4)
        check(f"evaluated {make.__name__} {each}", [m.evaluate(x, y, verbose=0, callbacks=[swap]), m.get_weights()], tol=1e-4)


class Noisy(keras.optimizers.RMSprop):
    """Keras' own train_step calls this."""
    def apply_gradients(self, grads_and_vars):
        return super().apply_gradients([(g * 0.0, v) for g, v in grads_and_vars])


check("apply_gradients is what fit calls", [losses(Noisy(0.01)), Noisy(0.01, name="n").name, Noisy().name.startswith("noisy")], tol=1e-4)
m.compile("sgd", "mse")
raises(ValueError, lambda: m.evaluate(x, y, verbose=0, callbacks=[keras.callbacks.SwapEMAWeights()]))
raises(ValueError, lambda: Heavy(use_ema=True, ema_momentum=2.0))
raises(ValueError, lambda: keras.optimizers.Adam(clipnorm=1.0, clipvalue=1.0))
raises(ValueError, lambda: keras.optimizers.Adam(lr=0.1))
raises(ValueError, lambda: keras.optimizers.Adam(jit_compile=True))
check("decay is ignored", [float(keras.optimizers.SGD(decay=0.1).learning_rate), keras.optimizers.RMSprop().name])
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

# --- scaled losses ------------------------------------------------------------------------------------------------
scaling = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.1), initial_scale=8.0, dynamic_growth_steps=2)
kept = tf.Variable([1.0, 2.0])
scaling.build([kept])


@tf.function
def scaled_step(by):
    with tf.GradientTape() as t:
        loss = scaling.scale_loss(tf.reduce_sum(kept ** 2) * by)
    grads = t.gradient(loss, [kept])
    scaling.apply_gradients(zip(grads, [kept]))
    return loss, grads[0]


for by in (1.0, 1.0, 1.0, np.inf, 1.0):        # where gradients are not finite nothing moves, and the scale halves
    loss, grad = scaled_step(tf.constant(by, tf.float32))
    check(f"scaled by {by}", [loss, grad, kept.numpy(), float(scaling.dynamic_scale.numpy()), int(scaling.step_counter.numpy()),
                              int(scaling.iterations.numpy())], tol=1e-4)
check("scaled in fit", losses(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01), dynamic_growth_steps=2)))
again = keras.optimizers.deserialize(keras.optimizers.serialize(scaling))
check("scaled again", [again.initial_scale, again.dynamic_growth_steps, type(again.inner_optimizer).__name__, float(again.learning_rate)])
halved = keras.optimizers.SGD(0.1, loss_scale_factor=4.0)
check("a factor", [float(halved.scale_loss(3.0)), float(keras.optimizers.SGD().scale_loss(3.0))])
halved.apply([tf.constant([8.0, 4.0])], [kept])
check("divided by the factor", kept.numpy(), tol=1e-4)
check("a factor in fit", losses(keras.optimizers.SGD(0.01, loss_scale_factor=4.0)))
