"""Models whose inputs and outputs are given as lists of one."""
import numpy as np
from tensorflow import keras
from parity import check

i = keras.Input((3,))
m = keras.Model(inputs=[i], outputs=[keras.layers.Dense(2, kernel_initializer="ones")(i)])
x = np.ones((2, 3), "float32")
check("call", m(x))
check("list", m([x]))
check("predict", m.predict(x, verbose=0))
check("shapes", [m.input_shape, m.output_shape])
m.compile("sgd", "mse", metrics=["mae"])
check("fit", m.fit(x, np.ones((2, 2)), epochs=2, verbose=0).history["loss"], tol=1e-4)
check("evaluate", m.evaluate([x], [np.ones((2, 2))], verbose=0), tol=1e-4)
