"""keras.ops' control flow and derivatives, by Keras' names of arguments."""
import numpy as np
import tensorflow as tf
from parity import check
from tensorflow import keras

ops = keras.ops
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
check("map", ops.map(f=lambda row: row * 2.0, xs=x))
check("switch", [ops.switch(i, [lambda a, b: a + b, lambda a, b: a * b], tf.constant(3.0), tf.constant(4.0)) for i in (0, 1)])
check("vectorized_map", ops.vectorized_map(function=lambda row: ops.sum(row), elements=x))
check("while_loop", ops.while_loop(cond=lambda i, s: i < 5, body=lambda i, s: (i + 1, s + i), loop_vars=(tf.constant(0), tf.constant(0))))
check("while_loop_limited", ops.while_loop(cond=lambda i: i < 100, body=lambda i: (i + 1,), loop_vars=(tf.constant(0),), maximum_iterations=7))
check("cond", [ops.cond(pred=tf.constant(p), true_fn=lambda: x + 1.0, false_fn=lambda: x - 1.0) for p in (True, False)])
check("stop_gradient", ops.stop_gradient(variable=x))
check("matrix_rank", ops.matrix_rank(x=tf.constant(np.diag([1.0, 0.0, 2.0]).astype("float32"))))
check("elu", [keras.activations.elu(x=x - 2.5, alpha=0.5), keras.activations.leaky_relu(x=x - 2.5, negative_slope=0.1),
              keras.activations.log_softmax(x=x, axis=0)])
