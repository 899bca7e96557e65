"""class_weight, sample_weight, validation_data, several outputs, train_on_batch."""
import numpy as np
from tensorflow import keras
from parity import check

r = np.random.RandomState(0)
x = r.uniform(-1, 1, (32, 4)).astype("float32")
y = r.randint(0, 3, 32)


def build():
    m = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="softmax")])
    m.set_weights([np.linspace(-0.5, 0.5, 12).reshape(4, 3), np.zeros(3)])
    m.compile(keras.optimizers.SGD(0.2), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return m


m = build()
check("class_weight", m.fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0, class_weight={0: 1.0, 1: 5.0, 2: 0.5}).history["loss"], tol=1e-4)
m = build()
sw = np.linspace(0.0, 2.0, 32)
check("sample_weight", m.fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0, sample_weight=sw).history["loss"], tol=1e-4)
m = build()
h = m.fit(x[:24], y[:24], epochs=3, batch_size=8, shuffle=False, verbose=0, validation_data=(x[24:], y[24:]))
check("keys", sorted(h.history))
check("val_loss", h.history["val_loss"], tol=1e-4)
check("val_accuracy", h.history["val_accuracy"], tol=1e-4)
m = build()
check("train_on_batch", [float(v) for v in m.train_on_batch(x[:8], y[:8])], tol=1e-4)
check("running", [float(v) for v in m.train_on_batch(x[8:16], y[8:16])], tol=1e-4)
check("as dict", {k: float(v) for k, v in m.train_on_batch(x[:8], y[:8], return_dict=True).items()}, tol=1e-4)
check("test_on_batch", [float(v) for v in m.test_on_batch(x, y)], tol=1e-3)
check("evaluate weighted", m.evaluate(x, y, sample_weight=sw, verbose=0, batch_size=32)[0], tol=1e-4)
i = keras.Input((4,))
o1, o2 = keras.layers.Dense(1, name="value", kernel_initializer="ones")(i), keras.layers.Dense(3, name="kind", kernel_initializer="ones")(i)
two = keras.Model(i, {"value": o1, "kind": o2})
two.compile("sgd", loss={"value": "mse", "kind": keras.losses.SparseCategoricalCrossentropy(from_logits=True)},
            loss_weights={"value": 0.5, "kind": 2.0}, metrics={"kind": ["accuracy"]})
h = two.fit(x, {"value": x[:, :1], "kind": y}, epochs=2, batch_size=16, shuffle=False, verbose=0)
check("two outputs", sorted(h.history))
check("two losses", h.history["loss"], tol=1e-4)
check("steps_per_epoch", len(build().fit(x, y, epochs=2, steps_per_epoch=2, batch_size=8, verbose=0).history["loss"]))
check("initial_epoch", build().fit(x, y, epochs=5, initial_epoch=3, verbose=0).epoch)
# Losses of single outputs are means over batches, the last of which is smaller.
rows = np.arange(24.0).reshape(8, 3).astype("float32") / 24.0
entry = keras.Input((3,))
both = keras.Model(entry, [keras.layers.Dense(n, name=f"of_{n}", kernel_initializer="ones")(entry) for n in (1, 2)])
both.compile("sgd", ["mse", "mse"], loss_weights=[1.0, 0.5])
history = both.fit(rows, [rows[:, :1], rows[:, 1:]], batch_size=3, epochs=2, shuffle=False, verbose=0).history
check("of outputs", [history[k] for k in sorted(history)], tol=1e-4)
check("on a batch", both.train_on_batch(rows, [rows[:, :1], rows[:, 1:]]), tol=1e-4)
