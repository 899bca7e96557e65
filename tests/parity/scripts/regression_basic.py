"""Basic regression: normalization, one and many inputs, a table of results, error histogram."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

r = np.random.RandomState(0)
horsepower = r.uniform(50, 200, 200)
weight = r.uniform(1500, 4500, 200)
mpg = 45 - 0.08 * horsepower - 0.004 * weight + r.randn(200) * 0.5
features = np.stack([horsepower, weight], axis=1).astype("float32")
train_features, test_features = features[:160], features[160:]
train_labels, test_labels = mpg[:160].astype("float32"), mpg[160:].astype("float32")

normalizer = tf.keras.layers.Normalization(axis=-1)
normalizer.adapt(np.array(train_features))
print("mean", np.round(normalizer.mean.numpy(), 1))
print("first", np.round(normalizer(train_features[:1]).numpy(), 3))

linear_model = tf.keras.Sequential([normalizer, layers.Dense(units=1, kernel_initializer="zeros")])
linear_model.compile(optimizer=tf.keras.optimizers.Adam(learning_rate=0.5), loss="mean_absolute_error")
history = linear_model.fit(train_features, train_labels, epochs=30, batch_size=32, shuffle=False, verbose=0, validation_split=0.2)
test_results = {}
test_results["linear"] = linear_model.evaluate(test_features, test_labels, verbose=0)
print("linear loss %.2f val_loss %.2f" % (history.history["loss"][-1], history.history["val_loss"][-1]))


def build_and_compile_model(norm):
    model = keras.Sequential([norm, layers.Dense(16, activation="relu"), layers.Dense(16, activation="relu"), layers.Dense(1)])
    model.compile(loss="mean_absolute_error", optimizer=tf.keras.optimizers.Adam(0.01))
    return model


dnn_model = build_and_compile_model(normalizer)
dnn_model.fit(train_features, train_labels, validation_split=0.2, verbose=0, epochs=40)
test_results["dnn"] = dnn_model.evaluate(test_features, test_labels, verbose=0)
print("linear under 3:", test_results["linear"] < 3.0, "dnn under 6:", test_results["dnn"] < 6.0)
test_predictions = dnn_model.predict(test_features, verbose=0).flatten()
error = test_predictions - test_labels
print(test_predictions.shape, bool(abs(error.mean()) < 6))
print("weights", [tuple(w.shape) for w in dnn_model.trainable_weights])
