"""Gradients of many functions at once."""
import numpy as np
import tensorflow as tf
from parity import check

x = tf.Variable(np.linspace(-1.4, 1.6, 6).reshape(2, 3), dtype=tf.float32)
cases = {
    "abs": lambda: tf.abs(x), "exp": lambda: tf.exp(x), "tanh": lambda: tf.tanh(x), "sigmoid": lambda: tf.sigmoid(x),
    "relu": lambda: tf.nn.relu(x), "softplus": lambda: tf.nn.softplus(x), "softmax": lambda: tf.nn.softmax(x) ** 2,
    "log_softmax": lambda: tf.nn.log_softmax(x) * x, "max": lambda: tf.reduce_max(x, axis=1), "gelu": lambda: tf.nn.gelu(x),
    "min": lambda: tf.minimum(x, 0.3), "where": lambda: tf.where(x > 0, x * 3.0, x), "clip": lambda: tf.clip_by_value(x, -1., 1.),
    "prod": lambda: tf.reduce_prod(x, axis=0), "logsumexp": lambda: tf.reduce_logsumexp(x, axis=1), "div": lambda: 1.0 / (x + 3.0),
    "sqrt": lambda: tf.sqrt(x + 2.0), "log": lambda: tf.math.log(x + 2.0), "pow": lambda: (x + 2.0) ** 1.7,
    "std": lambda: tf.math.reduce_std(x, axis=1), "norm": lambda: tf.norm(x), "cumsum": lambda: tf.cumsum(x, axis=1) ** 2,
    "slice": lambda: x[:, 1:] * x[:, :-1], "stride": lambda: x[::-1, ::2] ** 2, "concat": lambda: tf.concat([x, x * x], 0),
    "tile": lambda: tf.tile(x, [2, 2]) ** 2, "pad": lambda: tf.pad(x, [[1, 1], [0, 2]]) ** 2, "transpose": lambda: x @ tf.transpose(x),
    "gather": lambda: tf.gather(x, [0, 0, 1]) ** 2, "stack": lambda: tf.stack([x, x]) ** 2, "einsum": lambda: tf.einsum("ij,kj->ik", x, x),
    "split": lambda: tf.split(x, 3, axis=1)[1] * 4.0, "sort": lambda: tf.sort(x, axis=1) * [1.0, 2.0, 3.0],
    "top_k": lambda: tf.math.top_k(x, 2).values ** 2, "l2_normalize": lambda: tf.nn.l2_normalize(x, axis=1) * x,
    "power of 0": lambda: x ** 0, "broadcast": lambda: tf.broadcast_to(x[0], (4, 3)) ** 2, "erf": lambda: tf.math.erf(x), "cast": lambda: tf.cast(x, tf.float64),
}
for name, f in cases.items():
    with tf.GradientTape() as tape:
        y = f()
    check(name, tf.convert_to_tensor(tape.gradient(y, x)), tol=5e-5)
