"""Models of one's own under policies: dtype=, layers within, train_step with a loss scale, build and summary of types."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)
R = np.random.RandomState(0)
x, y = R.normal(size=(8, 4)).astype("float32"), R.normal(size=(8, 1)).astype("float32")


class Net(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.hidden = L.Dense(6, activation="relu", kernel_initializer=keras.initializers.Constant(0.1))
        self.out = L.Dense(1, dtype="float32", kernel_initializer=keras.initializers.Constant(0.2))

    def call(self, inputs, training=False):
        self.seen = [name(inputs), name(self.hidden(inputs))]
        return self.out(self.hidden(inputs))


class Stepped(Net):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            prediction = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=prediction)
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        for metric in self.metrics:
            metric.update_state(loss) if metric.name == "loss" else metric.update_state(y, prediction)
        return {m.name: m.result() for m in self.metrics}


for policy in ("mixed_float16", "mixed_bfloat16", "float32"):
    keras.config.set_dtype_policy(policy)
    for kind in (Net, Stepped):
        model = kind()
        model(x)
        check(f"{policy} {kind.__name__}", [model.seen, model.compute_dtype, [str(v.dtype) for v in model.weights]])
        model.compile(keras.optimizers.SGD(0.05), "mse", metrics=["mae"])
        history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history
        check(f"{policy} {kind.__name__}: fitted", [float(v) for v in history["loss"] + history["mae"]], tol=2e-2)
        check(f"{policy} {kind.__name__}: optimizer", [type(model.optimizer).__name__, int(model.optimizer.iterations.numpy())])
    keras.config.set_dtype_policy("float32")
    given = Net(dtype=policy)
    given(x)
    check(f"{policy} by dtype=", [given.seen, given.dtype_policy.name, given.hidden.dtype_policy.name, given.out.dtype_policy.name])
