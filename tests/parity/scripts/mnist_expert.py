"""The expert quickstart: subclassed convolutional model, tf.function steps, metrics, test steps."""
import numpy as np
import tensorflow as tf
from tensorflow.keras import Model
from tensorflow.keras.layers import Conv2D, Dense, Flatten

rng = np.random.RandomState(1)
prototypes = rng.rand(10, 12, 12)
y_train, y_test = rng.randint(0, 10, 320), rng.randint(0, 10, 64)
x_train = (prototypes[y_train] + 0.2 * rng.randn(320, 12, 12))[..., tf.newaxis].astype("float32")
x_test = (prototypes[y_test] + 0.2 * rng.randn(64, 12, 12))[..., np.newaxis].astype("float32")


class MyModel(Model):
    def __init__(self):
        super().__init__()
        self.conv1 = Conv2D(8, 3, activation="relu")
        self.flatten = Flatten()
        self.d1 = Dense(32, activation="relu")
        self.d2 = Dense(10)

    def call(self, x):
        x = self.conv1(x)
        x = self.flatten(x)
        x = self.d1(x)
        return self.d2(x)


model = MyModel()
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(3e-3)
train_loss = tf.keras.metrics.Mean(name="train_loss")
train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
test_loss = tf.keras.metrics.Mean(name="test_loss")
test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = loss_object(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss(loss)
    train_accuracy(labels, predictions)


@tf.function
def test_step(images, labels):
    predictions = model(images, training=False)
    t_loss = loss_object(labels, predictions)
    test_loss(t_loss)
    test_accuracy(labels, predictions)


losses = []
for epoch in range(5):
    train_loss.reset_state()
    train_accuracy.reset_state()
    test_loss.reset_state()
    test_accuracy.reset_state()
    for i in range(0, 320, 32):
        train_step(x_train[i:i + 32], y_train[i:i + 32])
    for i in range(0, 64, 32):
        test_step(x_test[i:i + 32], y_test[i:i + 32])
    losses.append(train_loss.result().numpy())
print("loss falls:", bool(losses[-1] < losses[0]))
print("train accuracy above 0.9:", bool(train_accuracy.result() > 0.9))
print("test accuracy above 0.8:", bool(test_accuracy.result() > 0.8))
print("steps:", int(optimizer.iterations), "variables:", len(model.trainable_variables))
