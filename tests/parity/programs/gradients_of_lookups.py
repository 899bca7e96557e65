"""Gradients of lookups in variables are IndexedSlices: norms, clipping, several lookups, beside dense ones, in tf.function."""
import tensorflow as tf
from parity import check

e = tf.Variable(tf.reshape(tf.range(12.0), (4, 3)))
w = tf.Variable([[1.0], [2.0], [3.0]])


def loss_of(ids):
    return tf.reduce_sum(tf.nn.embedding_lookup(e, ids) @ w)


with tf.GradientTape() as tape:
    loss = loss_of([1, 1, 3])
g, h = tape.gradient(loss, [e, w])
check("is slices", [isinstance(g, tf.IndexedSlices), isinstance(h, tf.IndexedSlices)])
check("values", g.values)
check("indices", g.indices)
check("dense_shape", g.dense_shape)
check("dense", tf.convert_to_tensor(g))
check("global norm", tf.linalg.global_norm([g, h]))
clipped, norm = tf.clip_by_global_norm([g, h, None], 2.0)
check("clipped", [clipped[0].values, clipped[1], norm])
check("still slices", isinstance(clipped[0], tf.IndexedSlices))
check("clip_by_norm", tf.clip_by_norm(g, 1.0).values)
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.gather(e, [[0, 1], [1, 2]])) + 2.0 * tf.reduce_sum(tf.gather(e, [3]))
g = tape.gradient(loss, e)
check("two lookups", tf.convert_to_tensor(g))
check("two lookups are slices", isinstance(g, tf.IndexedSlices))
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.gather(e, [0, 1])) + tf.reduce_sum(e * e)
g = tape.gradient(loss, e)
check("beside a dense one", [isinstance(g, tf.IndexedSlices), tf.convert_to_tensor(g)])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(e[1] * 3.0)
check("an index is dense", isinstance(tape.gradient(loss, e), tf.IndexedSlices))
optimizer = tf.keras.optimizers.SGD(0.1)
optimizer.build([e, w])


@tf.function
def step(ids):
    with tf.GradientTape() as tape:
        loss = loss_of(ids)
    grads = tape.gradient(loss, [e, w])
    grads, norm = tf.clip_by_global_norm(grads, 1.0)
    optimizer.apply_gradients(zip(grads, [e, w]))
    return loss, norm


for ids in ([0, 0, 1], [2, 3, 2]):
    check("step", step(tf.constant(ids)), tol=1e-5)
check("rows", e, tol=1e-5)
adam = tf.keras.optimizers.Adam(0.1)
with tf.GradientTape() as tape:
    loss = loss_of([0, 2, 0])
adam.apply_gradients(zip(tape.gradient(loss, [e, w]), [e, w]))
check("adam", e, tol=1e-4)
accumulated = tf.Variable(tf.zeros_like(e))
with tf.GradientTape() as tape:
    loss = loss_of([0, 2, 0])
accumulated.assign_add(tape.gradient(loss, e))
check("accumulated", accumulated, tol=1e-4)
sums = [tf.zeros_like(e)]
with tf.GradientTape() as tape:
    loss = loss_of([0, 2, 0])
g = tape.gradient(loss, e)
check("added to tensors", [sums[0] + g, g + sums[0]], tol=1e-4)
check("is a tensor", tf.is_tensor(g))


@tf.function
def rows_of(ids):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(e, ids) * 2.0)
    return {"loss": loss, "rows": [tape.gradient(loss, e)]}


for ids in ([0, 0, 1], [2, 3, 2]):
    g = rows_of(tf.constant(ids))["rows"][0]
    check("out of a function", [isinstance(g, tf.IndexedSlices), g.values, g.indices])
