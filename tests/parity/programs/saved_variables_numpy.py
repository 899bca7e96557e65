"""Weights through NumPy files, tf.train.Checkpoint-free: np.save, np.savez, get_weights."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check

v = [tf.Variable([[1.0, 2.0]]), tf.Variable([3.0])]
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "w.npz")
    np.savez(path, *[x.numpy() for x in v])
    for x in v:
        x.assign(tf.zeros_like(x))
    loaded = np.load(path)
    for i, x in enumerate(v):
        x.assign(loaded[f"arr_{i}"])
    np.save(os.path.join(folder, "t.npy"), tf.constant([1, 2, 3]))
    check("np.save of a tensor", np.load(os.path.join(folder, "t.npy")))
check("restored", v)
m = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, kernel_initializer="ones"), keras.layers.Dense(1, kernel_initializer="ones")])
best = m.get_weights()
m.set_weights([w * 0.0 for w in best])
check("zeros", m(np.ones((1, 2), "float32")))
m.set_weights(best)
check("best again", m(np.ones((1, 2), "float32")))
target = keras.models.clone_model(m)
target.set_weights(m.get_weights())
for t, s in zip(target.variables, m.variables):
    t.assign(0.9 * t + 0.1 * s * 2.0)
check("soft update", target.get_weights())
check("unchanged", m.get_weights()[0])


# --- functions that attributes hold ---------------------------------------------------------------------
def halve(x):
    return x / 2.0


class Exported(tf.Module):
    def __init__(self, activation, after):
        super().__init__()
        self.w, self.activation, self.after = tf.Variable([[1.0], [-2.0]]), activation, after

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def __call__(self, x):
        return self.after(self.activation(x @ self.w))


with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(Exported(tf.nn.relu, halve), folder)
    again = tf.saved_model.load(folder)
    check("called", again(tf.constant([[4.0, 1.0], [0.0, 1.0]])))
    check("signatures", list(again.signatures))
    check("by name", again.signatures["serving_default"](x=tf.constant([[4.0, 1.0]])))
