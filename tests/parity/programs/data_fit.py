"""Datasets in fit, evaluate and predict."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

from tensorflow import keras

keras.utils.set_random_seed(1)
x = np.linspace(-1, 1, 40, dtype=np.float32).reshape(20, 2)
y = (x @ np.array([[1.0], [-2.0]], np.float32) + 0.5).astype(np.float32)
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, kernel_initializer="ones")])
model.compile(keras.optimizers.SGD(0.1), "mse")
train = Dataset.from_tensor_slices((x, y)).batch(5)
history = model.fit(train, epochs=3, verbose=0)
check("loss", history.history["loss"], 1e-4)
check("weights", model.get_weights(), 1e-4)
check("evaluate", model.evaluate(train, verbose=0), 1e-4)
check("predict", model.predict(Dataset.from_tensor_slices(x).batch(7), verbose=0), 1e-4)
mapped = train.map(lambda a, b: (a * 2.0, b)).prefetch(2)
check("mapped", model.fit(mapped, epochs=2, verbose=0).history["loss"], 1e-4)
check("steps", model.fit(train.repeat(), epochs=2, steps_per_epoch=2, verbose=0).history["loss"], 1e-4)
check("validation", model.fit(train, validation_data=train, verbose=0).history["val_loss"], 1e-4)
weighted = Dataset.from_tensor_slices((x, y, np.linspace(0, 1, 20, dtype=np.float32))).batch(10)
check("weights given", model.fit(weighted, verbose=0).history["loss"], 1e-4)
check("cached", model.fit(train.cache().shuffle(10, seed=1).map(lambda a, b: (a, b)), verbose=0, epochs=1).epoch)
named = Dataset.from_tensor_slices(({"a": x}, y)).batch(5)
inner = keras.Input((2,), name="a")
functional = keras.Model({"a": inner}, keras.layers.Dense(1, kernel_initializer="ones")(inner))
functional.compile("sgd", "mse")
check("named", functional.evaluate(named, verbose=0), 1e-4)
