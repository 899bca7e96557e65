"""Two models and two optimizers in one tf.function, as GANs are written, under mixed_bfloat16 and with loss scales under mixed_float16."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

R = np.random.RandomState(0)
noise, real = R.normal(size=(8, 3)).astype("float32"), R.normal(1.0, 0.5, size=(8, 2)).astype("float32")
cross = keras.losses.BinaryCrossentropy(from_logits=True)


def filled(model):
    rng = np.random.RandomState(len(model.weights))
    model.set_weights([rng.uniform(-0.4, 0.4, size=w.shape).astype("float32") for w in model.get_weights()])
    return model


for policy in ("mixed_bfloat16", "mixed_float16"):
    keras.config.set_dtype_policy(policy)
    maker = filled(keras.Sequential([L.Input((3,)), L.Dense(6, activation="leaky_relu"), L.Dense(2, dtype="float32")]))
    judge = filled(keras.Sequential([L.Input((2,)), L.Dense(6, activation="relu"), L.Dense(4, activation="relu"), L.Dense(1, dtype="float32")]))
    optimizers = [keras.optimizers.Adam(0.01), keras.optimizers.Adam(0.01)]
    if policy == "mixed_float16":
        optimizers = [keras.mixed_precision.LossScaleOptimizer(o) for o in optimizers]

    @tf.function
    def step(noise, real):
        with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:
            fake = maker(noise, training=True)
            on_real, on_fake = judge(real, training=True), judge(fake, training=True)
            g_loss = cross(tf.ones_like(on_fake), on_fake)
            d_loss = cross(tf.ones_like(on_real), on_real) + cross(tf.zeros_like(on_fake), on_fake)
            g_scaled, d_scaled = optimizers[0].scale_loss(g_loss), optimizers[1].scale_loss(d_loss)
        optimizers[0].apply_gradients(zip(g_tape.gradient(g_scaled, maker.trainable_variables), maker.trainable_variables))
        optimizers[1].apply_gradients(zip(d_tape.gradient(d_scaled, judge.trainable_variables), judge.trainable_variables))
        return g_loss, d_loss

    check(f"{policy}: losses", [[float(v) for v in step(tf.constant(noise), tf.constant(real))] for _ in range(4)], tol=3e-2)
    check(f"{policy}: types", [[str(v.dtype) for v in maker.weights + judge.weights], [str(layer.compute_dtype) for layer in judge.layers]])
    check(f"{policy}: steps", [int(o.iterations.numpy()) for o in optimizers])
keras.config.set_dtype_policy("float32")
