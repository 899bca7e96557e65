"""WGAN-GP: a critic trained twice a step, its penalty the gradient of a gradient."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
r = np.random.RandomState(0)
critic = keras.Sequential([keras.Input((8, 8, 1)), layers.Conv2D(8, 3, strides=2, padding="same"), layers.LeakyReLU(0.2), layers.Conv2D(8, 3, strides=2, padding="same"), layers.LeakyReLU(0.2), layers.Flatten(), layers.Dense(1)])
gen = keras.Sequential([keras.Input((4,)), layers.Dense(4*4*4, activation="relu"), layers.Reshape((4, 4, 4)), layers.UpSampling2D(), layers.Conv2D(1, 3, padding="same", activation="tanh")])
for m in (critic, gen):
    m.set_weights([r.randn(*w.shape) * 0.2 for w in m.get_weights()])

class WGAN(keras.Model):
    def __init__(self, discriminator, generator, latent_dim, discriminator_extra_steps=2, gp_weight=10.0):
        super().__init__()
        self.discriminator = discriminator
        self.generator = generator
        self.latent_dim = latent_dim
        self.d_steps = discriminator_extra_steps
        self.gp_weight = gp_weight

    def compile(self, d_optimizer, g_optimizer, d_loss_fn, g_loss_fn):
        super().compile()
        self.d_optimizer = d_optimizer
        self.g_optimizer = g_optimizer
        self.d_loss_fn = d_loss_fn
        self.g_loss_fn = g_loss_fn

    def gradient_penalty(self, batch_size, real_images, fake_images):
        alpha = tf.fill([batch_size, 1, 1, 1], 0.3)
        diff = fake_images - real_images
        interpolated = real_images + alpha * diff
        with tf.GradientTape() as gp_tape:
            gp_tape.watch(interpolated)
            pred = self.discriminator(interpolated, training=True)
        grads = gp_tape.gradient(pred, [interpolated])[0]
        norm = tf.sqrt(tf.reduce_sum(tf.square(grads), axis=[1, 2, 3]))
        gp = tf.reduce_mean((norm - 1.0) ** 2)
        return gp

    def train_step(self, real_images):
        if isinstance(real_images, tuple):
            real_images = real_images[0]
        batch_size = tf.shape(real_images)[0]
        for i in range(self.d_steps):
            random_latent_vectors = tf.ones(shape=(batch_size, self.latent_dim)) * (i + 1.0) / 3
            with tf.GradientTape() as tape:
                fake_images = self.generator(random_latent_vectors, training=True)
                fake_logits = self.discriminator(fake_images, training=True)
                real_logits = self.discriminator(real_images, training=True)
                d_cost = self.d_loss_fn(real_img=real_logits, fake_img=fake_logits)
                gp = self.gradient_penalty(batch_size, real_images, fake_images)
                d_loss = d_cost + gp * self.gp_weight
            d_gradient = tape.gradient(d_loss, self.discriminator.trainable_variables)
            self.d_optimizer.apply_gradients(zip(d_gradient, self.discriminator.trainable_variables))
        random_latent_vectors = tf.ones(shape=(batch_size, self.latent_dim))
        with tf.GradientTape() as tape:
            generated_images = self.generator(random_latent_vectors, training=True)
            gen_img_logits = self.discriminator(generated_images, training=True)
            g_loss = self.g_loss_fn(gen_img_logits)
        gen_gradient = tape.gradient(g_loss, self.generator.trainable_variables)
        self.g_optimizer.apply_gradients(zip(gen_gradient, self.generator.trainable_variables))
        return {"d_loss": d_loss, "g_loss": g_loss}

class GANMonitor(keras.callbacks.Callback):
    def __init__(self, num_img=6, latent_dim=4):
        self.num_img = num_img
        self.latent_dim = latent_dim
    def on_epoch_end(self, epoch, logs=None):
        z = tf.random.normal(shape=(self.num_img, self.latent_dim))
        generated_images = self.model.generator(z)
        generated_images = (generated_images * 127.5) + 127.5
        img = generated_images[0].numpy()
        print("monitor", epoch, img.shape)

def discriminator_loss(real_img, fake_img):
    return tf.reduce_mean(fake_img) - tf.reduce_mean(real_img)
def generator_loss(fake_img):
    return -tf.reduce_mean(fake_img)
w = WGAN(critic, gen, 4)
w.compile(d_optimizer=keras.optimizers.Adam(learning_rate=0.002, beta_1=0.5, beta_2=0.9), g_optimizer=keras.optimizers.Adam(learning_rate=0.002, beta_1=0.5, beta_2=0.9),
          g_loss_fn=generator_loss, d_loss_fn=discriminator_loss)
x = r.rand(32, 8, 8, 1).astype("float32")
h = w.fit(x, batch_size=8, epochs=3, callbacks=[GANMonitor()], shuffle=False, verbose=0)
for k in sorted(h.history):
    print(k, np.round(np.asarray(h.history[k], "float64"), 3))
