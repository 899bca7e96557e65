"""Losses that calls add: those of the last call, as often as they are asked for; lookups by numbers of two dtypes."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from parity import check

x = np.linspace(-1, 1, 12).reshape(4, 3).astype("float32")
model = keras.Sequential([keras.Input((3,)), layers.Dense(2, kernel_initializer="ones", activity_regularizer=keras.regularizers.L2(0.1),
                                                          kernel_regularizer=keras.regularizers.L1(0.01)),
                          layers.ActivityRegularization(l1=0.5), layers.Dense(1, kernel_initializer="ones")])
for _ in range(3):
    model(x)
check("of the last call", model.losses)
check("again", model.losses)
model(x[:2])
check("of another", sum(model.losses))
model.compile("sgd", "mse")
check("in fit", model.fit(x, x[:, :1], epochs=2, shuffle=False, verbose=0).history["loss"])
check("after it", model.evaluate(x, x[:, :1], verbose=0))
table = layers.Embedding(4, 2, embeddings_initializer="ones")
with tf.GradientTape() as tape:
    y = tf.reduce_sum(table(tf.constant([[1, 2]]))) + tf.reduce_sum(table(tf.constant([[2, 3]], dtype=tf.int64)) * 2.0)
check("two dtypes", tf.convert_to_tensor(tape.gradient(y, table.trainable_variables)[0]))
