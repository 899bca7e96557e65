"""Frozen layers: trainable flags before and after compile, weights that do not move, fine tuning."""
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers
from parity import check

r = np.random.RandomState(0)
base = keras.Sequential([keras.Input((5,)), layers.Dense(6, activation="relu", name="b1"), layers.BatchNormalization(name="bn"),
                         layers.Dense(4, activation="relu", name="b2")], name="base")
base.set_weights([r.uniform(0.1, 0.6, w.shape).astype("float32") for w in base.get_weights()])
base.trainable = False
inputs = keras.Input((5,))
x = base(inputs, training=False)
outputs = layers.Dense(1, kernel_initializer="ones", name="head")(x)
model = keras.Model(inputs, outputs)
check("trainable weights", [len(model.trainable_weights), len(model.non_trainable_weights)])
model.compile(keras.optimizers.SGD(0.01), "mse")
before = base.get_weights()
xs, ys = r.rand(16, 5).astype("float32"), r.rand(16, 1).astype("float32")
h1 = model.fit(xs, ys, epochs=2, batch_size=8, shuffle=False, verbose=0).history["loss"]
check("frozen loss", h1, tol=1e-4)
check("base did not move", all(np.array_equal(a, b) for a, b in zip(before, base.get_weights())))
base.trainable = True
base.get_layer("b1").trainable = False
check("partly", [w.shape for w in model.trainable_weights])
model.compile(keras.optimizers.SGD(0.001), "mse")
h2 = model.fit(xs, ys, epochs=2, batch_size=8, shuffle=False, verbose=0).history["loss"]
check("fine tuning loss", h2, tol=1e-4)
check("b1 stays", bool(np.array_equal(before[0], base.get_weights()[0])))
check("b2 moves", bool(np.array_equal(before[6], base.get_weights()[6])))
features = keras.Model(model.input, model.layers[1].output)
check("features", features(xs[:1]).shape)
