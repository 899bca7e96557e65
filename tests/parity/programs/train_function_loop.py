"""The training step as a tf.function, with metrics."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check

r = np.random.RandomState(4)
x = r.uniform(-1, 1, (40, 6)).astype("float32")
y = r.randint(0, 3, 40)
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(12, activation="gelu"), keras.layers.Dense(3)])
model.set_weights([r.uniform(-0.6, 0.6, w.shape).astype("float32") for w in model.get_weights()])
optimizer = keras.optimizers.RMSprop(0.005)
loss_object = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
train_loss = keras.metrics.Mean(name="train_loss")
train_accuracy = keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
traced = []


@tf.function
def train_step(images, labels):
    traced.append(1)
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = loss_object(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss(loss)
    train_accuracy(labels, predictions)


results = []
for epoch in range(4):
    train_loss.reset_state()
    train_accuracy.reset_state()
    for i in range(0, 40, 10):
        train_step(tf.constant(x[i:i + 10]), tf.constant(y[i:i + 10]))
    results.append([float(train_loss.result()), float(train_accuracy.result())])
check("losses", [a for a, _ in results], tol=2e-4)
check("accuracies", [b for _, b in results], tol=0.03)
check("traced at most twice", len(traced) <= 2)
check("weights", model.get_weights()[0], tol=5e-4)
