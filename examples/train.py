"""A TensorFlow program: a small network learns to tell three clouds of points apart, in a loop of its own.

Nothing here knows of Snug: `python train.py` runs it on TensorFlow, `python -m snug --budget 128MiB train.py` on Snug."""
import argparse

import numpy as np
import tensorflow as tf

options = argparse.ArgumentParser()
options.add_argument("--epochs", type=int, default=5)
epochs = options.parse_args().epochs

random = np.random.default_rng(1)
labels = random.integers(0, 3, 3000)
points = (np.array([[0, 1], [1, -0.7], [-1, -0.7]])[labels] + random.normal(0, 0.4, (3000, 2))).astype("float32")
batches = tf.data.Dataset.from_tensor_slices((points, labels)).shuffle(3000, seed=1).batch(100)

model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(3)])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(0.01)
accuracy = tf.keras.metrics.SparseCategoricalAccuracy()


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        scores = model(x, training=True)
        loss = loss_of(y, scores)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    accuracy.update_state(y, scores)
    return loss


for epoch in range(epochs):
    accuracy.reset_state()
    for x, y in batches:
        loss = step(x, y)
    print(f"epoch {epoch + 1}: loss {float(loss):.3f}, accuracy {float(accuracy.result()):.3f}")
