"""Tables of words made from and used in a pipeline of lines."""
import numpy as np
import tensorflow as tf
from parity import check

L = tf.keras.layers
lines = ["The quick, brown fox!", "the lazy dog.", "Fox and dog and fox"]
few = L.StringLookup(max_tokens=3)
few.adapt(tf.data.Dataset.from_tensor_slices(["x", "y", "x", "z", "y", "x"]).batch(2))
check("few", [str(w) for w in few.get_vocabulary()])
fixed = L.TextVectorization(max_tokens=6, output_sequence_length=4)
fixed.adapt(tf.data.Dataset.from_tensor_slices(lines).batch(2))
pairs = tf.data.Dataset.from_tensor_slices((lines, [0, 1, 0])).batch(3).map(lambda x, y: (fixed(x), y))
for x, y in pairs:
    check("mapped", [x, y])
model = tf.keras.Sequential([tf.keras.Input((4,), dtype="int64"), L.Embedding(6, 3), L.GlobalAveragePooling1D(), L.Dense(1)])
model.set_weights([np.linspace(-1, 1, w.size, dtype="float32").reshape(w.shape) for w in model.get_weights()])
model.compile("sgd", "mse")
check("fit", model.fit(pairs, epochs=2, verbose=0).history["loss"], 1e-5)
