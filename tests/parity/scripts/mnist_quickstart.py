"""The beginner's quickstart on synthetic digits."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
prototypes = rng.randint(0, 256, (10, 28, 28))
y_train, y_test = rng.randint(0, 10, 600), rng.randint(0, 10, 100)
x_train = np.clip(prototypes[y_train] + rng.randint(-60, 60, (600, 28, 28)), 0, 255).astype("uint8")
x_test = np.clip(prototypes[y_test] + rng.randint(-60, 60, (100, 28, 28)), 0, 255).astype("uint8")
x_train, x_test = x_train / 255.0, x_test / 255.0

model = tf.keras.models.Sequential([
    tf.keras.layers.Flatten(input_shape=(28, 28)),
    tf.keras.layers.Dense(128, activation="relu"),
    tf.keras.layers.Dropout(0.2),
    tf.keras.layers.Dense(10),
])
predictions = model(x_train[:1]).numpy()
print(predictions.shape, predictions.dtype)
print("probabilities sum to", round(float(tf.nn.softmax(predictions).numpy().sum()), 3))
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
initial = loss_fn(y_train[:1], predictions).numpy()
print("initial loss is near log(10):", abs(loss_fn(y_train, model(x_train)).numpy() - np.log(10)) < 1.5)
model.compile(optimizer="adam", loss=loss_fn, metrics=["accuracy"])
model.fit(x_train, y_train, epochs=5, verbose=0)
loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
print("accuracy above 0.9:", accuracy > 0.9)
probability_model = tf.keras.Sequential([model, tf.keras.layers.Softmax()])
p = probability_model(x_test[:5])
print(p.shape, np.round(p.numpy().sum(axis=1), 3))
print("first five right:", np.array_equal(np.argmax(p, axis=1), y_test[:5]))
print("parameters:", model.count_params())
