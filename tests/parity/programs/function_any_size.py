"""tf.function with None in its input_signature: one trace serves all sizes."""
import numpy as np
import tensorflow as tf
from parity import check

traced = []


@tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
def shapes(x):
    traced.append(str(x.shape))
    n = tf.shape(x)[0]
    flat = tf.reshape(x, [n * 3]) * 2.0
    y = tf.reshape(flat, [-1, 3]) + tf.ones((n, 3)) + tf.zeros_like(x) + tf.cast(n, tf.float32)
    y += tf.cast(tf.range(n), tf.float32)[:, None]
    return {"mean": tf.reduce_mean(y, axis=0), "share": tf.reduce_sum(x) / tf.cast(tf.size(x), tf.float32), "last": x[-1],
            "twice": tf.concat([x, x], 0), "n": n, "rest": n % 4, "rows": x[: n - 1], "wide": tf.tile(x, [1, 2]),
            "pairs": tf.matmul(x, x, transpose_b=True), "eye": tf.eye(n), "size": tf.size(x) + n * 2 - 1}


for size in (5, 2, 7, 33, 1):
    check(f"shapes {size}", shapes(np.linspace(0, 1, size * 3).reshape(size, 3).astype("f4")))
check("traced", traced)
check("count", shapes.experimental_get_tracing_count())

w = tf.Variable(np.linspace(-1, 1, 6).reshape(3, 2).astype("f4"))
calls = []


@tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32), tf.TensorSpec([None], tf.int32)])
def step(x, labels):
    calls.append(1)
    with tf.GradientTape() as tape:
        logits = tf.nn.relu(x @ w)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.reduce_mean(losses) + tf.nn.compute_average_loss(losses)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss


for size in (4, 8, 3, 16):
    check(f"step {size}", step(np.linspace(0, 1, size * 3).reshape(size, 3).astype("f4"), (np.arange(size) % 2).astype("i4")))
check("weights", w)
check("steps traced", len(calls))


@tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32)])
def both(x):
    calls.append(1)
    a, b = tf.shape(x)[0], tf.shape(x)[1]
    return tf.reshape(tf.transpose(x), [-1]), tf.reduce_mean(x, 1), tf.math.reduce_std(x), a * b, tf.broadcast_to(x[:1], [a, b])


calls.clear()
for size in ((2, 3), (4, 5), (7, 2)):
    check(f"both {size}", both(np.arange(size[0] * size[1], dtype="f4").reshape(size)))
check("both traced", len(calls))


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def depends(x):
    if tf.shape(x)[0] > 3:
        return tf.reduce_sum(x) * 2.0
    return tf.reduce_sum(x)


@tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
def half(x):
    return x[: tf.shape(x)[0] // 2] * 2.0, x[::2]


for size in (2, 5, 8):
    check(f"depends {size}", depends(tf.ones(size)))
    check(f"half {size}", half(tf.ones((size, 2))))


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def outer_square(x):
    return tf.reduce_sum(x * x * tf.cast(tf.shape(x)[0], tf.float32))


for size in (2, 5):
    v = tf.constant(np.arange(size, dtype="f4"))
    with tf.GradientTape() as tape:
        tape.watch(v)
        y = outer_square(v)
    check(f"gradient {size}", tape.gradient(y, v))
