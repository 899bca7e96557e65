"""Models whose inputs are texts: lookup layers on symbolic inputs, dicts of features, nested models; whole numbers of tf.range."""
import numpy as np
import tensorflow as tf
from parity import check
from tensorflow import keras

layers = keras.layers
inputs = {"age": keras.Input((1,), name="age"), "sex": keras.Input((1,), name="sex", dtype="string")}
lookup = layers.StringLookup(vocabulary=["male", "female"], output_mode="one_hot")
both = layers.Concatenate()([inputs["age"], lookup(inputs["sex"])])
prepare = keras.Model(inputs, both)
check("shape", prepare.output_shape)
rows = {"age": tf.constant([[2.0], [3.0], [4.0]]), "sex": tf.constant([["male"], ["female"], ["other"]])}
check("prepared", prepare(rows))
model = keras.Model(inputs, layers.Dense(1, kernel_initializer="ones")(prepare(inputs)))
model.compile(keras.optimizers.SGD(0.01), "mse")
data = tf.data.Dataset.from_tensor_slices((rows, tf.constant([[1.0], [2.0], [3.0]])))
check("losses", model.fit(data.batch(2), epochs=3, verbose=0).history["loss"], 1e-5)
check("predictions", model.predict(data.batch(2), verbose=0), 1e-5)

words = layers.TextVectorization(output_sequence_length=3)
words.adapt(["a good film", "a bad film"])
inner = keras.Sequential([layers.Embedding(10, 2, embeddings_initializer="ones"), layers.GlobalAveragePooling1D(),
                          layers.Dense(1, kernel_initializer="ones")])
whole = keras.Sequential([words, inner])
whole.compile("sgd", "mse")
check("texts", whole.predict(tf.constant(["good", "bad bad"]), verbose=0))
texts = tf.data.Dataset.from_tensor_slices((["good", "bad film", "a"], [1.0, 0.0, 1.0])).batch(2)
check("evaluated", whole.evaluate(texts, verbose=0), 1e-5)
line = keras.Input((1,), dtype="string")
ids = keras.Model(line, words(line))
check("ids", ids(tf.constant([["good film"], ["bad"]])))
check("ids' shape", ids.output_shape)

wide = tf.constant(3, tf.int64)
check("range", [tf.range(3), tf.range(wide), tf.range(1, wide), tf.range(np.int64(2)), tf.range(tf.constant(2.0, tf.float64)),
                tf.range(0, wide, 1.0), tf.range(wide, dtype=tf.float32)])
check("ranges of elements", [tf.data.Dataset.range(1, 3).map(tf.range).element_spec.dtype.name,
                             list(tf.data.Dataset.range(1, 3).map(tf.range).as_numpy_iterator())])
