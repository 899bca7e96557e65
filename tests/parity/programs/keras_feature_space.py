"""keras.utils.FeatureSpace: columns by word and by settings, crosses, both output modes, models upon it; Embedding(input_length)."""
import os
import tempfile
import warnings

import numpy as np
import tensorflow as tf
from parity import check, raises

Space = tf.keras.utils.FeatureSpace
rng = np.random.default_rng(0)
table = {"age": rng.integers(20, 80, 24), "chol": rng.normal(130, 10, 24), "thal": rng.choice(["fixed", "normal", "other"], 24),
         "ca": rng.integers(0, 4, 24), "sex": rng.integers(0, 2, 24), "raw": rng.normal(size=24)}
labels = rng.integers(0, 2, 24)
data = tf.data.Dataset.from_tensor_slices((dict(table), labels)).batch(8)

space = Space({"sex": Space.integer_categorical(num_oov_indices=0), "ca": "integer_categorical",
               "thal": Space.string_categorical(num_oov_indices=0), "age": Space.float_discretized(num_bins=4),
               "chol": "float_normalized", "raw": Space.float_rescaled(scale=2.0, offset=1.0)},
              crosses=[("sex", "ca"), Space.cross(("thal", "ca"), crossing_dim=5)], crossing_dim=6)
raises(ValueError, lambda: space.get_encoded_features())
space.adapt(data.map(lambda x, y: x))
for x, y in data.take(1):
    check("concat", space(x), 1e-5)
check("one row", space({k: v[0] for k, v in table.items()}), 1e-5)
check("mapped", [list(x.shape) for x, y in data.map(lambda x, y: (space(x), y))])
check("inputs", {k: [list(v.shape), v.dtype] for k, v in space.get_inputs().items()})
encoded = space.get_encoded_features()
check("encoded", list(encoded.shape))
out = tf.keras.layers.Dense(1, activation="sigmoid", kernel_initializer="ones")(encoded)
whole = tf.keras.Model(space.get_inputs(), out)
check("whole", whole.predict({k: tf.constant(v[:2].reshape(-1, 1)) for k, v in table.items()}, verbose=0), 1e-5)
check("parts", [sorted(space.preprocessors), sorted(space.crossers)])

with tempfile.TemporaryDirectory() as folder:
    space.save(os.path.join(folder, "space.keras"))
    again = tf.keras.models.load_model(os.path.join(folder, "space.keras"))
for x, y in data.take(1):
    check("from a file", again(x), 1e-5)
check("its inputs", sorted(again.get_inputs()))

each = Space({"ca": Space.integer_categorical(output_mode="int"), "thal": Space.string_hashed(num_bins=7, output_mode="int"),
              "raw": "float", "age": "integer_hashed"}, output_mode="dict")
each.adapt({k: table[k] for k in ("ca", "thal", "raw", "age")})
found = each({k: table[k][:3] for k in ("ca", "thal", "raw", "age")})
check("dict", {k: np.asarray(v) for k, v in sorted(found.items())}, 1e-5)
raises(ValueError, lambda: Space({"a": "float"}, output_mode="other"))
raises(ValueError, lambda: Space({"a": "no_such_kind"}))
raises(ValueError, lambda: Space({}))
raises(ValueError, lambda: each([1, 2]))

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    embedding = tf.keras.layers.Embedding(20, 4, input_length=6)
    leaky = tf.keras.layers.LeakyReLU(alpha=0.1)
check("input_length", [len(told), list(embedding(np.zeros((2, 6), "int32")).shape)])
check("alpha", [leaky(np.array([-1.0, 2.0], "float32")), leaky.negative_slope])

# A class that is ignored, and a mask: the mean is over what both leave.
loss = tf.keras.losses.SparseCategoricalCrossentropy(ignore_class=0)
masked = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Embedding(9, 3, mask_zero=True, embeddings_initializer="ones"),
                              tf.keras.layers.Dense(5, "softmax", kernel_initializer="ones", bias_initializer=lambda s, dtype: tf.range(5.0))])
predicted = masked(np.array([[1, 2, 3, 0], [4, 0, 0, 0]]))
check("ignored and masked", loss(np.array([[1, 0, 2, 3], [4, 1, 0, 0]]), predicted), 1e-5)
check("ignored and weighed", loss(np.array([[1, 0, 2, 3], [4, 1, 0, 0]]), tf.identity(predicted), sample_weight=np.array([[1.0], [0.5]])), 1e-5)
