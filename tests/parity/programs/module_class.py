"""tf.Module: variables, trainable_variables, nested modules, name scopes."""
import numpy as np
import tensorflow as tf
from parity import check


class Dense(tf.Module):
    def __init__(self, n_in, n_out, name=None):
        super().__init__(name=name)
        self.w = tf.Variable(tf.ones((n_in, n_out)), name="w")
        self.b = tf.Variable(tf.zeros((n_out,)), name="b")

    def __call__(self, x):
        return tf.nn.relu(x @ self.w + self.b)


class MLP(tf.Module):
    def __init__(self):
        super().__init__(name="mlp")
        self.layers = [Dense(3, 4), Dense(4, 2)]
        self.count = tf.Variable(0, trainable=False, name="count")

    @tf.function
    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        self.count.assign_add(1)
        return x


m = MLP()
x = tf.constant([[1.0, 2.0, 3.0]])
check("output", m(x))
check("variables", len(m.variables))
check("trainable", [v.shape for v in m.trainable_variables])
check("submodules", len(m.submodules))
check("count", m.count)
check("name", m.name)
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(m(x) ** 2)
grads = tape.gradient(loss, m.trainable_variables)
check("gradients", grads)
for v, g in zip(m.trainable_variables, grads):
    v.assign_sub(0.001 * g)
check("after", m(x))
check("list of variables", [v.name for v in m.layers[0].variables])
