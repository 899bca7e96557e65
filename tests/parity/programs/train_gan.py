"""A GAN with two optimizers and fixed noise."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from parity import check

r = np.random.RandomState(0)


def fixed(model):
    model.set_weights([r.uniform(-0.4, 0.4, w.shape).astype("float32") for w in model.get_weights()])
    return model


generator = fixed(keras.Sequential([keras.Input((4,)), layers.Dense(8, activation="relu"), layers.Dense(2)]))
discriminator = fixed(keras.Sequential([keras.Input((2,)), layers.Dense(8), layers.LeakyReLU(negative_slope=0.2), layers.Dense(1)]))
cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)
g_opt, d_opt = keras.optimizers.Adam(1e-2), keras.optimizers.Adam(1e-2, beta_1=0.5)


@tf.function
def train_step(real, noise):
    with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
        fake = generator(noise, training=True)
        real_output = discriminator(real, training=True)
        fake_output = discriminator(fake, training=True)
        gen_loss = cross_entropy(tf.ones_like(fake_output), fake_output)
        disc_loss = cross_entropy(tf.ones_like(real_output), real_output) + cross_entropy(tf.zeros_like(fake_output), fake_output)
    g = gen_tape.gradient(gen_loss, generator.trainable_variables)
    d = disc_tape.gradient(disc_loss, discriminator.trainable_variables)
    g_opt.apply_gradients(zip(g, generator.trainable_variables))
    d_opt.apply_gradients(zip(d, discriminator.trainable_variables))
    return gen_loss, disc_loss


losses = []
for step in range(6):
    real = (r.rand(16, 2) * 2 + 1).astype("float32")
    noise = r.uniform(-1, 1, (16, 4)).astype("float32")
    losses.append([float(v) for v in train_step(tf.constant(real), tf.constant(noise))])
check("losses", losses, tol=2e-4)
check("sample", generator(np.ones((2, 4), "float32")), tol=1e-3)
check("steps", [int(g_opt.iterations), int(d_opt.iterations)])
