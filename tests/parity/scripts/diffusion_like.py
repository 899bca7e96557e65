"""A denoising model in the style of diffusion tutorials: time embedding, U-Net-like layers, EMA of the weights."""
import math
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

r = np.random.RandomState(0)
steps, size = 20, 8
betas = np.linspace(1e-3, 0.1, steps, dtype="float32")
alpha_bar = np.cumprod(1.0 - betas)
print("alpha_bar", np.round(alpha_bar[[0, 10, 19]], 3))


def time_embedding(t, dim):
    half = dim // 2
    freqs = tf.exp(-math.log(10000.0) * tf.range(half, dtype=tf.float32) / half)
    args = tf.cast(t, tf.float32)[:, None] * freqs[None]
    return tf.concat([tf.sin(args), tf.cos(args)], axis=-1)


print(time_embedding(tf.constant([0, 1]), 4).numpy().round(3))


class Block(layers.Layer):
    def __init__(self, channels):
        super().__init__()
        self.norm = layers.GroupNormalization(groups=2)
        self.conv1 = layers.Conv2D(channels, 3, padding="same")
        self.conv2 = layers.Conv2D(channels, 3, padding="same")
        self.shift = layers.Dense(channels)
        self.skip = layers.Conv2D(channels, 1)

    def call(self, x, t):
        h = self.conv1(tf.nn.silu(self.norm(x)))
        h = h + self.shift(t)[:, None, None, :]
        h = self.conv2(tf.nn.silu(h))
        return h + self.skip(x)


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.inp = layers.Conv2D(4, 3, padding="same")
        self.down, self.mid, self.up = Block(8), Block(8), Block(4)
        self.pool, self.big = layers.AveragePooling2D(2), layers.UpSampling2D(2)
        self.out = layers.Conv2D(1, 3, padding="same")

    def call(self, inputs, training=False):
        x, t = inputs
        emb = time_embedding(t, 8)
        x0 = self.inp(x)
        x1 = self.down(self.pool(x0), emb)
        x2 = self.mid(x1, emb)
        x3 = self.up(tf.concat([self.big(x2), x0], axis=-1), emb)
        return self.out(x3)


net = Net()
net((tf.zeros((1, size, size, 1)), tf.zeros((1,), tf.int32)))
net.set_weights([(r.uniform(-0.2, 0.2, w.shape) + (w.ndim == 1) * 0.1).astype("float32") for w in net.get_weights()])
print("parameters", net.count_params(), len(net.trainable_variables))
ema = [tf.Variable(v, trainable=False) for v in net.trainable_variables]
optimizer = keras.optimizers.Adam(1e-2)
images = np.zeros((8, size, size, 1), "float32")
images[:, 2:6, 2:6] = 1.0


@tf.function
def train_step(x, t, noise):
    a = tf.gather(tf.constant(alpha_bar), t)[:, None, None, None]
    noisy = tf.sqrt(a) * x + tf.sqrt(1.0 - a) * noise
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(net((noisy, t), training=True) - noise))
    grads = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(grads, net.trainable_variables))
    return loss


losses = []
for i in range(6):
    t = tf.constant(r.randint(0, steps, 8), tf.int32)
    noise = tf.constant(r.randn(*images.shape), tf.float32)
    losses.append(float(train_step(tf.constant(images), t, noise)))
    for e, v in zip(ema, net.trainable_variables):
        e.assign(0.9 * e + 0.1 * v)
print("losses", " ".join(f"{v:.2f}" for v in losses))
x = tf.constant(r.randn(1, size, size, 1), tf.float32)
for s in reversed(range(steps)):
    eps = net((x, tf.fill((1,), s)))
    x = (x - betas[s] / np.sqrt(1.0 - alpha_bar[s]) * eps) / np.sqrt(1.0 - betas[s])
print(x.shape, bool(tf.reduce_all(tf.math.is_finite(x))))
