"""Autoencoders: a dense one as a subclassed model, a denoising convolutional one, anomaly detection by threshold."""
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, losses
from tensorflow.keras.models import Model

r = np.random.RandomState(3)
basis = r.rand(4, 64)
x_train = (r.rand(200, 4) @ basis / 2).astype("float32")
x_test = (r.rand(40, 4) @ basis / 2).astype("float32")


class Autoencoder(Model):
    def __init__(self, latent_dim):
        super().__init__()
        self.latent_dim = latent_dim
        self.encoder = tf.keras.Sequential([layers.Dense(32, activation="relu"), layers.Dense(latent_dim, activation="relu")])
        self.decoder = tf.keras.Sequential([layers.Dense(32, activation="relu"), layers.Dense(64)])

    def call(self, x):
        encoded = self.encoder(x)
        decoded = self.decoder(encoded)
        return decoded


autoencoder = Autoencoder(8)
autoencoder(x_train[:1])
autoencoder.set_weights([r.uniform(-0.3, 0.3, w.shape).astype("float32") for w in autoencoder.get_weights()])
autoencoder.compile(optimizer=tf.keras.optimizers.Adam(0.003), loss=losses.MeanSquaredError())
history = autoencoder.fit(x_train, x_train, epochs=10, batch_size=50, shuffle=False, validation_data=(x_test, x_test), verbose=0)
print("loss", " ".join(f"{v:.3f}" for v in history.history["loss"][::3]))
print("val_loss", f"{history.history['val_loss'][-1]:.3f}")
encoded = autoencoder.encoder(x_test).numpy()
decoded = autoencoder.decoder(encoded).numpy()
print(encoded.shape, decoded.shape)
reconstructions = autoencoder.predict(x_train, verbose=0)
train_loss = tf.keras.losses.MAE(reconstructions, x_train)
threshold = np.mean(train_loss) + np.std(train_loss)
print("threshold", f"{threshold:.2f}")


def predict(model, data, threshold):
    reconstructions = model(data)
    loss = tf.keras.losses.MAE(reconstructions, data)
    return tf.math.less(loss, threshold)


anomalies = r.uniform(0, 3, (40, 64)).astype("float32")
print("anomalies found", float(tf.reduce_mean(tf.cast(tf.math.logical_not(predict(autoencoder, anomalies, threshold)), tf.float32))))

images = r.rand(20, 8, 8, 1).astype("float32")
noisy = tf.clip_by_value(images + 0.2 * tf.random.normal(shape=images.shape), clip_value_min=0.0, clip_value_max=1.0)


class Denoise(Model):
    def __init__(self):
        super().__init__()
        self.encoder = tf.keras.Sequential([
            layers.Input(shape=(8, 8, 1)),
            layers.Conv2D(8, (3, 3), activation="relu", padding="same", strides=2),
            layers.Conv2D(4, (3, 3), activation="relu", padding="same", strides=2)])
        self.decoder = tf.keras.Sequential([
            layers.Conv2DTranspose(4, kernel_size=3, strides=2, activation="relu", padding="same"),
            layers.Conv2DTranspose(8, kernel_size=3, strides=2, activation="relu", padding="same"),
            layers.Conv2D(1, kernel_size=(3, 3), activation="sigmoid", padding="same")])

    def call(self, x):
        return self.decoder(self.encoder(x))


denoise = Denoise()
denoise.compile(optimizer="adam", loss=losses.MeanSquaredError())
h = denoise.fit(noisy, images, epochs=3, verbose=0)
print("falls", h.history["loss"][-1] < h.history["loss"][0], denoise.encoder.output_shape, denoise.count_params())
