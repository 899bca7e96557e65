"""What fit and evaluate print with verbose=2 (the times are taken out)."""
import io
import re
from contextlib import redirect_stdout
import numpy as np
from tensorflow import keras
from parity import check

x = np.linspace(-1, 1, 24).reshape(12, 2).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, kernel_initializer="ones")])
model.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
out = io.StringIO()
with redirect_stdout(out):
    model.fit(x, y, epochs=2, batch_size=4, verbose=2, validation_data=(x, y), shuffle=False)
    model.evaluate(x, y, verbose=2)
    model.predict(x, verbose=2)
lines = [re.sub(r"\d+(\.\d+)?(ms|us|s)(/step|/epoch)?", "T", line) for line in out.getvalue().splitlines()]
lines = [re.sub(r"\d\.\d+e[-+]\d+|\d\.\d{4}", "N", line) for line in lines]
check("lines", lines)
