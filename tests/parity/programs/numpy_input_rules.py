"""Which arrays models and functions take: float64, integers, lists, bool; what comes out."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check, raises

model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, kernel_initializer="ones")])
check("float64 becomes float32", model(np.ones((1, 3))))
check("integers", model(np.ones((1, 3), "int64")))
check("tensor", model(tf.ones((1, 3))))
check("predict of float64", model.predict(np.ones((2, 3)), verbose=0))
check("predict type", type(model.predict(np.ones((2, 3)), verbose=0)).__name__)
model.compile("sgd", "mse")
check("fit on float64", len(model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0).history["loss"]))
check("fit on tensors", len(model.fit(tf.ones((4, 3)), tf.ones((4, 2)), verbose=0).history["loss"]))
check("history type", type(model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0).history["loss"][0]).__name__)
check("evaluate type", type(model.evaluate(np.ones((4, 3)), np.ones((4, 2)), verbose=0)).__name__)
one = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")])
check("vector gets an axis", one.predict(np.array([1.0, 2.0]), verbose=0))
one.compile("sgd", "mse")
check("targets as a vector", one.evaluate(np.array([1.0, 2.0]), np.array([1.0, 2.0]), verbose=0))
check("loss of vectors", keras.losses.MeanSquaredError()(np.array([1.0, 2.0]), np.array([1.0, 4.0])))
check("list input", tf.reduce_sum([[1, 2], [3, 4]]))
check("numpy scalar", tf.constant(np.float64(2.5)))
check("numpy bool", tf.constant(np.array([True, False])))
check("uint8 pictures", tf.cast(np.arange(6, dtype="uint8").reshape(2, 3), tf.float32) / 255.0)
check("model of variables", model(tf.Variable(tf.zeros((1, 3)))).shape)
x = np.ones((4, 3), "float32")
t = tf.constant(x)
p = model(x)
x[:] = 100.0
check("tensor was copied", t)
check("prediction as of then", bool(np.allclose(p, model(np.ones((4, 3), "float32")))))
raises((ValueError, TypeError), lambda: tf.constant(np.array(["a", 1.0], dtype=object)))
