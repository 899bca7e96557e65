"""Models inside models, dictionaries of inputs, lists of outputs, losses per output."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from parity import check

r = np.random.RandomState(0)


def fixed(m):
    m.set_weights([r.uniform(-0.5, 0.5, w.shape).astype("float32") for w in m.get_weights()])
    return m


encoder = keras.Sequential([keras.Input((6,)), layers.Dense(4, activation="relu"), layers.Dense(2)], name="encoder")
decoder = keras.Sequential([keras.Input((2,)), layers.Dense(4, activation="relu"), layers.Dense(6)], name="decoder")
i = keras.Input((6,))
auto = fixed(keras.Model(i, decoder(encoder(i)), name="auto"))
x = r.rand(12, 6).astype("float32")
check("autoencoder", auto(x[:2]))
check("same as parts", bool(np.allclose(auto(x), decoder(encoder(x)), atol=1e-6)))
check("layers", [l.name for l in auto.layers][1:])
auto.compile("adam", "mse")
check("fit", auto.fit(x, x, epochs=3, batch_size=4, shuffle=False, verbose=0).history["loss"], tol=1e-4)
title = keras.Input((3,), name="title")
body = keras.Input((4,), name="body")
z = layers.concatenate([layers.Dense(2, name="t")(title), layers.Dense(2, name="b")(body)])
priority = layers.Dense(1, name="priority")(z)
department = layers.Dense(2, name="department")(z)
m = fixed(keras.Model(inputs=[title, body], outputs=[priority, department]))
losses = [keras.losses.BinaryCrossentropy(from_logits=True), keras.losses.CategoricalCrossentropy(from_logits=True)]
m.compile(optimizer=keras.optimizers.RMSprop(1e-2), loss=losses, loss_weights=[1.0, 0.2])
t, b = r.rand(10, 3).astype("float32"), r.rand(10, 4).astype("float32")
p, d = (r.rand(10, 1) > 0.5).astype("float32"), np.eye(2, dtype="float32")[r.randint(0, 2, 10)]
h = m.fit({"title": t, "body": b}, [p, d], epochs=2, batch_size=5, shuffle=False, verbose=0)
check("loss", h.history["loss"], tol=1e-4)
check("evaluate", m.evaluate([t, b], [p, d], verbose=0)[0], tol=1e-4)
check("predict", [o.shape for o in m.predict([t, b], verbose=0)])
shared = layers.Embedding(10, 3)
a1, a2 = keras.Input((2,), dtype="int32"), keras.Input((4,), dtype="int32")
s = fixed(keras.Model([a1, a2], [shared(a1), shared(a2)]))
check("shared", s([np.array([[1, 2]]), np.array([[2, 1, 0, 9]])]))
check("one set of weights", len(s.weights))
