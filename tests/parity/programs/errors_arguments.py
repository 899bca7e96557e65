"""What goes wrong in usual ways, and how it is reported."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check, raises

E = tf.errors.InvalidArgumentError
raises(E, lambda: tf.reshape(tf.range(6), (4, 2)))
raises(E, lambda: tf.ones((2, 3)) @ tf.ones((4, 5)))
raises((ValueError, E), lambda: tf.reduce_sum(tf.ones((2, 2)), axis=5))
raises(E, lambda: tf.concat([tf.ones((2, 2)), tf.ones((3, 3))], axis=0))
raises((ValueError, E), lambda: tf.transpose(tf.ones((2, 3)), perm=[0, 0]))
raises(E, lambda: tf.gather([1, 2, 3], 5))
raises(ValueError, lambda: tf.convert_to_tensor(None))
raises(TypeError, lambda: tf.constant([[1, 2], [3, 4]], shape=(3, 3)))
raises((ValueError, E), lambda: tf.expand_dims(tf.ones((2,)), axis=4))
raises(E, lambda: tf.broadcast_to(tf.ones((3,)), (2, 2)))
raises(E, lambda: tf.tile(tf.ones((2, 2)), [2]))
raises(ValueError, lambda: keras.layers.Dense(3)(tf.ones(())))
raises(ValueError, lambda: keras.layers.Dense(-1))
raises(ValueError, lambda: keras.layers.Conv2D(4, 3)(tf.ones((2, 8, 8))))
raises(ValueError, lambda: keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])(tf.ones((2, 4))))
raises(ValueError, lambda: keras.layers.Concatenate()([tf.ones((2, 3)), tf.ones((3, 3))]))
raises(ValueError, lambda: keras.activations.get("no such"))
raises(ValueError, lambda: keras.optimizers.get("no such"))
raises(ValueError, lambda: keras.layers.Dense(2, no_such_argument=1))
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
raises(ValueError, lambda: model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0))
model.compile("sgd", "mse")
raises(ValueError, lambda: model.fit(np.ones((4, 3)), np.ones((5, 2)), verbose=0))
raises(ValueError, lambda: model.set_weights([np.ones((3, 2))]))
raises(ValueError, lambda: model.set_weights([np.ones((3, 3)), np.ones(2)]))
raises(ValueError, lambda: model.get_layer("nowhere"))
raises(ValueError, lambda: model.compile("sgd", "no such loss") or model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0))
v = tf.Variable([1.0, 2.0])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(v)
raises((ValueError, TypeError), lambda: keras.optimizers.SGD().apply_gradients([]))
check("v unchanged", v)
