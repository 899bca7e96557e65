"""compile, fit, evaluate, predict on arrays; the history."""
import numpy as np
from tensorflow import keras
from parity import check

r = np.random.RandomState(0)
x = r.uniform(-1, 1, (64, 4)).astype("float32")
y = (x @ np.array([[1.0], [-2.0], [0.5], [0.0]], "float32") + 0.3).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)])
model.set_weights([r.uniform(-0.5, 0.5, w.shape).astype("float32") for w in model.get_weights()])
model.compile(optimizer=keras.optimizers.SGD(learning_rate=0.1), loss="mse", metrics=["mae"])
check("before", model.evaluate(x, y, verbose=0))
history = model.fit(x, y, epochs=4, batch_size=16, shuffle=False, verbose=0)
check("keys", sorted(history.history))
check("loss", history.history["loss"], tol=1e-4)
check("mae", history.history["mae"], tol=1e-4)
check("epochs", history.epoch)
check("after", model.evaluate(x, y, verbose=0), tol=1e-4)
check("as dict", model.evaluate(x, y, verbose=0, return_dict=True), tol=1e-4)
check("predict", model.predict(x[:3], verbose=0), tol=1e-4)
check("weights", model.get_weights(), tol=1e-4)
check("partial batch", model.fit(x[:50], y[:50], batch_size=16, shuffle=False, verbose=0).history["loss"], tol=1e-4)
check("validation_split", sorted(model.fit(x, y, validation_split=0.25, shuffle=False, verbose=0).history))
