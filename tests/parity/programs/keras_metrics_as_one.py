"""compile()'s metrics are one metric of the model: its name, its order, what loops of one's own see."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check

x = np.linspace(-1, 1, 48).reshape(12, 4).astype("float32")
y = x.sum(axis=1, keepdims=True)


class Own(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=pred)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, pred)
        return {m.name: m.result() for m in self.metrics}


inputs = keras.Input((4,))
model = Own(inputs, keras.layers.Dense(1, kernel_initializer="ones", bias_initializer="ones")(inputs))
model.compile("sgd", "mse", metrics=["mae", keras.metrics.RootMeanSquaredError(name="rmse")])
h = model.fit(x, y, epochs=2, batch_size=6, shuffle=False, verbose=0)
check("history", h.history)
check("metrics", [m.name for m in model.metrics])
check("names", model.metrics_names)
check("evaluate", model.evaluate(x, y, verbose=0))

shared = keras.layers.Dense(3, kernel_initializer="ones")(inputs)
a = keras.layers.Dense(1, kernel_initializer="ones", name="a")(shared)
b = keras.layers.Dense(2, kernel_initializer="ones", activation="softmax", name="b")(shared)
two = keras.Model(inputs, [a, b])
labels = (np.arange(12) % 2)
two.compile("sgd", {"a": "mse", "b": "sparse_categorical_crossentropy"}, metrics={"b": ["accuracy", "SparseCategoricalAccuracy"], "a": "mae"},
            loss_weights={"a": 0.5, "b": 2.0})
h = two.fit(x, {"b": labels, "a": y}, batch_size=6, shuffle=False, verbose=0)
check("two", h.history)
check("two names", two.metrics_names)
check("two evaluate", two.evaluate(x, {"a": y, "b": labels}, verbose=0))
two.compile("sgd", ["mse", None])
check("metrics stay", sorted(two.fit(x, [y, labels], verbose=0).history))
one = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones")])
one.compile("sgd", "mse", metrics=["mae"], weighted_metrics=["mae", "mse"])
h = one.fit(x, y, sample_weight=np.linspace(0, 1, 12), shuffle=False, verbose=0)
check("weighted", h.history)


class Pair(keras.Model):
    def __init__(self):
        super().__init__()
        self.one, self.two = (keras.layers.Dense(1, kernel_initializer="ones") for _ in range(2))

    def call(self, x):
        return self.one(x), self.two(x)


pair = Pair()
pair.compile("sgd", ["mse", keras.losses.MeanAbsoluteError()], metrics=[["mae"], ["mae"]])
check("without names", pair.fit(x, [y, y], shuffle=False, verbose=0).history)
p = [keras.metrics.Precision().name for _ in range(2)] + [keras.metrics.AUC().name for _ in range(2)] + [keras.metrics.Mean().name] * 2
check("numbers", p)
f = keras.metrics.F1Score(threshold=0.5)
f.update_state([[1, 1, 1], [1, 0, 0], [1, 1, 0]], [[0.2, 0.6, 0.7], [0.2, 0.6, 0.6], [0.6, 0.8, 0.0]])
check("f1 per class", f.result())
for average in ("micro", "macro", "weighted"):
    f = keras.metrics.FBetaScore(beta=2.0, average=average)
    f.update_state([[0.0, 1, 0], [1, 0, 0]], [[0.2, 0.6, 0.2], [0.1, 0.6, 0.3]], sample_weight=[1.0, 0.5])
    check(average, f.result())
