"""A custom training loop under mixed_float16 with LossScaleOptimizer, eager and in a tf.function, with an overflow in the middle."""
import keras
import numpy as np
import tensorflow as tf
from parity import check

tf.keras.mixed_precision.set_global_policy("mixed_float16")
R = np.random.RandomState(0)
x, y = R.normal(size=(8, 4)).astype("float32"), R.normal(size=(8, 1)).astype("float32")


def make():
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(6, activation="relu")(inputs)
    outputs = keras.layers.Dense(1, dtype="float32")(hidden)
    model = keras.Model(inputs, outputs)
    rng = np.random.RandomState(3)
    model.set_weights([rng.uniform(-0.5, 0.5, size=w.shape).astype("float32") for w in model.get_weights()])
    return model


def train(wrap, growth=2):
    model, loss_fn = make(), keras.losses.MeanSquaredError()
    optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.05, momentum=0.9), initial_scale=1024.0, dynamic_growth_steps=growth)

    @wrap
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
            scaled = optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss, gradients[0]

    seen = []
    for k in range(5):
        loss, gradient = step(tf.constant(x * (1e6 if k == 2 else 1)), tf.constant(y))
        seen.append([float(optimizer.dynamic_scale.numpy()), int(optimizer.step_counter.numpy()), int(optimizer.iterations.numpy()),
                     str(gradient.dtype.name), bool(np.isfinite(loss.numpy()))])
    return seen, [w for w in model.get_weights()]


for name, wrap in (("eager", lambda f: f), ("function", tf.function)):
    seen, weights = train(wrap)
    check(name, seen)
    check(f"{name}: weights", weights, tol=4e-3)
keras.config.set_dtype_policy("float32")
