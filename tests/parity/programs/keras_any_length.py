"""A Sequential without an Input, on batches of different lengths; what py_function's list holds."""
import numpy as np
import tensorflow as tf
from parity import check, raises
from tensorflow import keras

layers = keras.layers
model = keras.Sequential([layers.Embedding(6, 2, embeddings_initializer="ones"),
                          layers.GRU(2, kernel_initializer="ones", recurrent_initializer="zeros"),
                          layers.Dense(1, kernel_initializer="ones")])
model.compile("sgd", "mse")
lengths = tf.data.Dataset.range(1, 6).map(lambda n: (tf.range(n) % 6, tf.cast(n, tf.float32)))
batches = lengths.padded_batch(2)
check("widths", [x.shape for x, _ in batches])
check("losses", model.fit(batches, epochs=2, shuffle=False, verbose=0).history["loss"], 1e-4)
check("predictions", model.predict(batches, verbose=0), 1e-4)
check("another length", model(tf.zeros((3, 9), tf.int32)), 1e-4)

fixed = keras.Sequential([layers.Flatten(), layers.Dense(1, kernel_initializer="ones")])
check("flat", fixed(tf.ones((2, 3, 2))))
raises(ValueError, lambda: fixed(tf.ones((2, 4, 2))))

def doubled(x):
    return np.float32(2 * x.numpy())

mapped = tf.data.Dataset.range(3).map(lambda x: tf.py_function(doubled, [x], [tf.float32])[0])
check("one result in a list", list(mapped.as_numpy_iterator()))
check("eager", tf.py_function(doubled, [tf.constant(4)], [tf.float32]))

text = tf.constant(b"bytes")
feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.numpy()]))
check("feature", feature.SerializeToString())
