"""Text classification with Embedding and LSTM on fixed integers."""
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers
from parity import check

r = np.random.RandomState(5)
x = r.randint(1, 20, (32, 8))
x[::3, 5:] = 0
y = (x[:, 0] > 10).astype("float32")
model = keras.Sequential([
    keras.Input((8,), dtype="int32"),
    layers.Embedding(20, 6, mask_zero=True),
    layers.LSTM(7),
    layers.Dense(1, activation="sigmoid"),
])
model.set_weights([r.uniform(-0.5, 0.5, w.shape).astype("float32") for w in model.get_weights()])
model.compile(loss="binary_crossentropy", optimizer=keras.optimizers.Adam(0.02), metrics=["accuracy"])
h = model.fit(x, y, epochs=4, batch_size=8, shuffle=False, verbose=0)
check("loss", h.history["loss"], tol=5e-4)
check("accuracy", h.history["accuracy"], tol=0.07)
check("predict", model.predict(x[:4], verbose=0), tol=2e-3)
check("params", model.count_params())
check("shapes", [w.shape for w in model.get_weights()])
