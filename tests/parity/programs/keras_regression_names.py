"""What older scripts write: input_dim-less Sequential, string optimizers and losses, metrics by name, keyword spellings."""
import numpy as np
import tensorflow as tf
from parity import check

model = tf.keras.models.Sequential()
model.add(tf.keras.layers.Flatten(input_shape=(2, 2)))
model.add(tf.keras.layers.Dense(units=3, activation=tf.nn.relu, kernel_initializer=tf.keras.initializers.Ones()))
model.add(tf.keras.layers.Dense(2, activation=tf.nn.softmax, kernel_initializer="ones"))
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
x = np.arange(16, dtype="float32").reshape(4, 2, 2) / 16
y = np.array([0, 1, 0, 1])
check("evaluate", model.evaluate(x, y, verbose=0))
check("predict", model.predict(x, verbose=0))
for optimizer in ("sgd", "adam", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "ftrl"):
    model.compile(optimizer=optimizer, loss=tf.keras.losses.SparseCategoricalCrossentropy(), metrics=["acc"])
    check(optimizer, float(model.optimizer.learning_rate))
for loss in ("mse", "mae", "mean_squared_error", "binary_crossentropy", "huber", "kl_divergence", "mean_absolute_error", "poisson"):
    m = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, activation="sigmoid", kernel_initializer="ones")])
    m.compile(optimizer="sgd", loss=loss, metrics=["mae", tf.keras.metrics.RootMeanSquaredError()])
    check(loss, m.evaluate(np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[0.5], [1.0]]), verbose=0, return_dict=True), tol=1e-4)
h = m.fit(np.ones((4, 2)), np.ones((4, 1)), epochs=1, verbose=0)
check("metrics", sorted(h.history))
check("probability model", tf.keras.Sequential([m, tf.keras.layers.Softmax()])(np.ones((1, 2), "float32")))
check("argmax", np.argmax(model.predict(x, verbose=0), axis=1).shape)
check("layers", [l.output.shape for l in model.layers])
