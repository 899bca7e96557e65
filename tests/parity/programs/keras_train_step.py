"""Custom train_step and test_step, run_eagerly, compute_loss, metrics property."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check

loss_tracker = keras.metrics.Mean(name="loss")
mae_metric = keras.metrics.MeanAbsoluteError(name="mae")


class CustomModel(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = keras.losses.MSE(y, y_pred)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
        loss_tracker.update_state(loss)
        mae_metric.update_state(y, y_pred)
        return {"loss": loss_tracker.result(), "mae": mae_metric.result()}

    @property
    def metrics(self):
        return [loss_tracker, mae_metric]


class Standard(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        x, y = data
        y_pred = self(x, training=False)
        return {"distance": tf.reduce_max(tf.abs(y - y_pred))}


r = np.random.RandomState(0)
x, y = r.rand(32, 4).astype("float32"), r.rand(32, 1).astype("float32")
for cls in (CustomModel, Standard):
    for eagerly in (False, True):
        i = keras.Input((4,))
        model = cls(i, keras.layers.Dense(1, kernel_initializer="ones")(i))
        model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse", metrics=["mae"], run_eagerly=eagerly)
        h = model.fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0).history
        check(cls.__name__, {k: h[k] for k in sorted(h)}, tol=1e-4)
        if cls is Standard:
            check("test_step", model.evaluate(x, y, verbose=0, batch_size=32, return_dict=True), tol=1e-4)
calls = []


class Seen(keras.Model):
    def __init__(self):
        super().__init__()
        self.d = keras.layers.Dense(1)

    def call(self, inputs):
        calls.append(1)
        return self.d(inputs)


m = Seen()
m.compile("sgd", "mse", run_eagerly=True)
m.fit(x, y, batch_size=8, verbose=0)
check("run eagerly: at each step", len(calls) >= 4)

# --- a weight's value is the variable that tapes know ---------------------------------------------------------------
dense = keras.layers.Dense(1, kernel_initializer="ones")
dense.build((None, 2))
with tf.GradientTape() as tape:
    total = tf.reduce_sum(dense(tf.constant([[1.0, 2.0], [3.0, 4.0]])))
check("by value", tape.gradient(total, [v.value for v in dense.trainable_weights]))
held = dense.kernel.value
dense.kernel.assign(dense.kernel * 2.0)
check("held", held.numpy())
