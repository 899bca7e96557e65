"""Several inputs and outputs by name, losses with weights."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
num_tags, num_words, num_departments = 12, 100, 4
title_input = keras.Input(shape=(None,), name="title")
body_input = keras.Input(shape=(None,), name="body")
tags_input = keras.Input(shape=(num_tags,), name="tags")
title_features = layers.Embedding(num_words, 16)(title_input)
body_features = layers.Embedding(num_words, 16)(body_input)
title_features = layers.LSTM(16)(title_features)
body_features = layers.LSTM(8)(body_features)
x = layers.concatenate([title_features, body_features, tags_input])
priority_pred = layers.Dense(1, name="priority")(x)
department_pred = layers.Dense(num_departments, name="department")(x)
model = keras.Model(inputs=[title_input, body_input, tags_input], outputs={"priority": priority_pred, "department": department_pred})
r = np.random.RandomState(0)
model.set_weights([r.randn(*w.shape) * 0.1 for w in model.get_weights()])
model.compile(optimizer=keras.optimizers.RMSprop(1e-3),
    loss={"priority": keras.losses.BinaryCrossentropy(from_logits=True), "department": keras.losses.CategoricalCrossentropy(from_logits=True)},
    loss_weights={"priority": 1.0, "department": 0.2}, metrics={"department": ["accuracy"], "priority": "mae"})
title_data = r.randint(num_words, size=(128, 10)); body_data = r.randint(num_words, size=(128, 20))
tags_data = r.randint(2, size=(128, num_tags)).astype("float32")
priority_targets = r.random_sample(size=(128, 1)); dept_targets = np.eye(4)[r.randint(4, size=128)]
h = model.fit({"title": title_data, "body": body_data, "tags": tags_data}, {"priority": priority_targets, "department": dept_targets}, epochs=2, batch_size=32, shuffle=False, verbose=0)
for k in sorted(h.history): print(k, np.round(h.history[k], 4))
ev = model.evaluate({"title": title_data, "body": body_data, "tags": tags_data}, {"priority": priority_targets, "department": dept_targets}, verbose=0)
print(np.round(sorted(ev), 4))
p = model.predict([title_data[:2], body_data[:2], tags_data[:2]], verbose=0)
print({k: v.shape for k, v in p.items()})
# two outputs as list
inp = keras.Input((4,)); a = layers.Dense(3, name="a", activation="relu")(inp); b = layers.Dense(1, name="b")(a); c = layers.Dense(2, name="c", activation="softmax")(a)
m = keras.Model(inp, [b, c]); m.set_weights([np.full(w.shape, 0.3) for w in m.get_weights()])
m.compile("sgd", loss=["mse", "sparse_categorical_crossentropy"], loss_weights=[1., 0.5], metrics=[["mae"], ["accuracy"]])
X = r.rand(16, 4); h = m.fit(X, [X.sum(1), (X[:, 0] > .5).astype(int)], epochs=2, verbose=0, shuffle=False)
for k in sorted(h.history): print(k, np.round(h.history[k], 4))
print(m.layers[1].output.shape, m.get_layer("a").units, len(m.outputs), m.input_shape, m.output_shape)
