"""Customizing what happens in fit(): a GAN class with its own compile and train_step."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

discriminator = keras.Sequential([
    keras.Input((8, 8, 1)),
    layers.Conv2D(8, (3, 3), strides=(2, 2), padding="same"),
    layers.LeakyReLU(negative_slope=0.2),
    layers.Conv2D(16, (3, 3), strides=(2, 2), padding="same"),
    layers.LeakyReLU(negative_slope=0.2),
    layers.GlobalMaxPooling2D(),
    layers.Dense(1),
], name="discriminator")
latent_dim = 6
generator = keras.Sequential([
    keras.Input(shape=(latent_dim,)),
    layers.Dense(4 * 4 * 8),
    layers.LeakyReLU(negative_slope=0.2),
    layers.Reshape((4, 4, 8)),
    layers.Conv2DTranspose(8, (4, 4), strides=(2, 2), padding="same"),
    layers.LeakyReLU(negative_slope=0.2),
    layers.Conv2D(1, (3, 3), padding="same", activation="sigmoid"),
], name="generator")


class GAN(keras.Model):
    def __init__(self, discriminator, generator, latent_dim):
        super().__init__()
        self.discriminator = discriminator
        self.generator = generator
        self.latent_dim = latent_dim
        self.d_loss_tracker = keras.metrics.Mean(name="d_loss")
        self.g_loss_tracker = keras.metrics.Mean(name="g_loss")
        self.seed_generator = keras.random.SeedGenerator(1337)

    @property
    def metrics(self):
        return [self.d_loss_tracker, self.g_loss_tracker]

    def compile(self, d_optimizer, g_optimizer, loss_fn):
        super().compile()
        self.d_optimizer = d_optimizer
        self.g_optimizer = g_optimizer
        self.loss_fn = loss_fn

    def train_step(self, real_images):
        if isinstance(real_images, tuple):
            real_images = real_images[0]
        batch_size = tf.shape(real_images)[0]
        random_latent_vectors = keras.random.normal(shape=(batch_size, self.latent_dim), seed=self.seed_generator)
        generated_images = self.generator(random_latent_vectors)
        combined_images = tf.concat([generated_images, real_images], axis=0)
        labels = tf.concat([tf.ones((batch_size, 1)), tf.zeros((batch_size, 1))], axis=0)
        labels += 0.05 * keras.random.uniform(tf.shape(labels), seed=self.seed_generator)
        with tf.GradientTape() as tape:
            predictions = self.discriminator(combined_images)
            d_loss = self.loss_fn(labels, predictions)
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))
        random_latent_vectors = keras.random.normal(shape=(batch_size, self.latent_dim), seed=self.seed_generator)
        misleading_labels = tf.zeros((batch_size, 1))
        with tf.GradientTape() as tape:
            predictions = self.discriminator(self.generator(random_latent_vectors))
            g_loss = self.loss_fn(misleading_labels, predictions)
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
        self.d_loss_tracker.update_state(d_loss)
        self.g_loss_tracker.update_state(g_loss)
        return {"d_loss": self.d_loss_tracker.result(), "g_loss": self.g_loss_tracker.result()}


r = np.random.RandomState(0)
images = (r.rand(64, 8, 8, 1) > 0.7).astype("float32")
gan = GAN(discriminator=discriminator, generator=generator, latent_dim=latent_dim)
gan.compile(d_optimizer=keras.optimizers.Adam(learning_rate=0.0003), g_optimizer=keras.optimizers.Adam(learning_rate=0.0003),
            loss_fn=keras.losses.BinaryCrossentropy(from_logits=True))
before = [w.copy() for w in generator.get_weights()]
history = gan.fit(images, epochs=2, batch_size=16, verbose=0).history
print(sorted(history), len(history["d_loss"]))
print("d_loss near log 2:", 0.2 < history["d_loss"][-1] < 1.5, "g_loss:", 0.1 < history["g_loss"][-1] < 3.0)
print("generator moved:", any(not np.array_equal(a, b) for a, b in zip(before, generator.get_weights())))
print(generator.predict(np.zeros((2, latent_dim)), verbose=0).shape, generator.count_params(), discriminator.count_params())
