"""Transfer learning: train a base, freeze it, add a head, then fine-tune the upper layers."""
import numpy as np
import tensorflow as tf
from tensorflow import keras

tf.keras.utils.set_random_seed(1)
r = np.random.RandomState(0)


def pictures(n, classes):
    y = r.randint(0, classes, n)
    x = r.rand(n, 16, 16, 3).astype("float32") * 0.3
    for i, c in enumerate(y):
        x[i, 2 * c:2 * c + 4, :, c % 3] += 0.7
    return x, y


base_model = keras.Sequential([
    keras.Input((16, 16, 3)),
    keras.layers.Rescaling(scale=2.0, offset=-1.0),
    keras.layers.Conv2D(8, 3, activation="relu"),
    keras.layers.BatchNormalization(),
    keras.layers.MaxPooling2D(),
    keras.layers.Conv2D(16, 3, activation="relu"),
    keras.layers.Flatten(),
], name="base")
x, y = pictures(128, 5)
pre = keras.Sequential([base_model, keras.layers.Dense(5)])
pre.compile(optimizer=keras.optimizers.Adam(0.005), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
h = pre.fit(x, y, epochs=6, batch_size=16, verbose=0)
print("base learns:", h.history["accuracy"][-1] > 0.8)

base_model.trainable = False
inputs = keras.Input(shape=(16, 16, 3))
features = base_model(inputs, training=False)
features = keras.layers.Dropout(0.2)(features)
outputs = keras.layers.Dense(1)(features)
model = keras.Model(inputs, outputs)
print("trainable:", len(model.trainable_variables), "of", len(model.variables))
model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.005), loss=keras.losses.BinaryCrossentropy(from_logits=True),
              metrics=[keras.metrics.BinaryAccuracy(threshold=0.0, name="accuracy")])
x2, y2 = pictures(96, 2)
frozen = [w.copy() for w in base_model.get_weights()]
loss0, accuracy0 = model.evaluate(x2, y2, verbose=0)
history = model.fit(x2, y2, epochs=6, batch_size=16, verbose=0, validation_split=0.2)
print("frozen:", all(np.array_equal(a, b) for a, b in zip(frozen, base_model.get_weights())))
print("better:", history.history["loss"][-1] < loss0)
base_model.trainable = True
for layer in base_model.layers[:3]:
    layer.trainable = False
model.compile(loss=keras.losses.BinaryCrossentropy(from_logits=True), optimizer=keras.optimizers.RMSprop(learning_rate=1e-4), metrics=["accuracy"])
print("now trainable:", len(model.trainable_variables))
history_fine = model.fit(x2, y2, epochs=3, initial_epoch=history.epoch[-1] - 3, batch_size=16, verbose=0)
moved = [not np.array_equal(a, b) for a, b in zip(frozen, base_model.get_weights())]
print("moved:", moved[0], moved[-1], "epochs:", len(history_fine.epoch))
predictions = tf.where(tf.nn.sigmoid(model.predict_on_batch(x2[:8]).flatten()) < 0.5, 0, 1)
print(predictions.shape, set(predictions.numpy().tolist()) <= {0, 1})
