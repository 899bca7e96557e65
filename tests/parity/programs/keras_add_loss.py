"""add_loss, add_metric-like tracking, activity regularizers, losses in a custom loop."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from parity import check


class ActivityRegularizer(layers.Layer):
    def __init__(self, rate=1e-2):
        super().__init__()
        self.rate = rate

    def call(self, inputs):
        self.add_loss(self.rate * tf.reduce_mean(tf.square(inputs)))
        return inputs


r = np.random.RandomState(0)
x, y = r.rand(16, 3).astype("float32"), r.rand(16, 1).astype("float32")
model = keras.Sequential([keras.Input((3,)), layers.Dense(4, kernel_initializer="ones", kernel_regularizer=keras.regularizers.l1_l2(0.01, 0.02)),
                          ActivityRegularizer(), layers.Dense(1, kernel_initializer="ones", bias_regularizer="l2")])
model(x)
check("losses", model.losses)
model.compile(keras.optimizers.SGD(0.01), "mse", metrics=["mse"])
h = model.fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0).history
check("loss", h["loss"], tol=1e-4)
check("mse", h["mse"], tol=1e-4)
opt = keras.optimizers.SGD(0.01)
with tf.GradientTape() as tape:
    out = model(x, training=True)
    loss = tf.reduce_mean((out - y) ** 2) + sum(model.losses)
grads = tape.gradient(loss, model.trainable_weights)
opt.apply_gradients(zip(grads, model.trainable_weights))
check("loop loss", loss, tol=1e-4)
check("gradients", grads[0], tol=1e-4)
check("l1", keras.regularizers.L1(0.5)(tf.constant([1.0, -2.0])))
check("l2", keras.regularizers.L2(0.5)(tf.constant([1.0, -2.0])))
check("orthogonal", keras.regularizers.OrthogonalRegularizer(0.1)(tf.constant([[1.0, 0.5], [0.5, 1.0]])))
d = layers.Dense(2, activity_regularizer="l2", kernel_initializer="ones")
d(tf.ones((2, 3)))
check("activity", d.losses)
c = layers.Dense(2, kernel_constraint=keras.constraints.MaxNorm(1.0), kernel_initializer="ones")
m = keras.Sequential([keras.Input((3,)), c])
m.compile("sgd", "mse")
m.fit(x, np.ones((16, 2)), verbose=0)
check("constraint", bool(np.all(np.linalg.norm(c.kernel.numpy(), axis=0) <= 1.0 + 1e-5)))
check("unit norm", keras.constraints.UnitNorm()(tf.constant([[3.0], [4.0]])))
