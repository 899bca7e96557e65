"""A small convolutional network with fit on synthetic pictures."""
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers
from parity import check

r = np.random.RandomState(4)
y = np.arange(40) % 4
x = r.uniform(0, 0.3, (40, 8, 8, 1)).astype("float32")
for i, c in enumerate(y):
    x[i, (c // 2) * 4:(c // 2) * 4 + 4, (c % 2) * 4:(c % 2) * 4 + 4] += 0.6
model = keras.Sequential([
    layers.Conv2D(6, (3, 3), activation="relu", input_shape=(8, 8, 1)),
    layers.BatchNormalization(),
    layers.MaxPooling2D((2, 2)),
    layers.Conv2D(8, 2, padding="same", activation="relu", kernel_regularizer="l2"),
    layers.Flatten(),
    layers.Dense(4),
])
model.set_weights([r.uniform(0.05, 0.4, w.shape).astype("float32") * (1 if w.ndim < 2 else r.choice([-1, 1], w.shape))
                   for w in model.get_weights()])
model.compile(optimizer=keras.optimizers.Adam(0.01), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
h = model.fit(x, y, batch_size=10, epochs=4, shuffle=False, verbose=0, validation_data=(x[:12], y[:12]))
check("loss", h.history["loss"], tol=2e-3)
check("val_loss", h.history["val_loss"], tol=5e-3)
check("moving statistics", model.layers[1].get_weights()[2:], tol=5e-3)
check("channel axis is added", model.predict(x[:2, :, :, 0], verbose=0).shape)
