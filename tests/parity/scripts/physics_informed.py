"""Second derivatives in training: solve u'' = -sin(x) with a small network and nested tapes."""
import numpy as np
import tensorflow as tf

r = np.random.RandomState(0)
model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(10, activation="tanh"), tf.keras.layers.Dense(1)])
model.set_weights([r.uniform(-1, 1, w.shape).astype("float32") for w in model.get_weights()])
xs = tf.constant(np.linspace(0, np.pi, 25)[:, None], tf.float32)
ends = tf.constant([[0.0], [np.pi]], tf.float32)
optimizer = tf.keras.optimizers.Adam(0.02)


def residual(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            u = model(x)
        du = inner.gradient(u, x)
    d2u = outer.gradient(du, x)
    return d2u + tf.sin(x)


@tf.function
def step():
    with tf.GradientTape() as tape:
        interior = tf.reduce_mean(tf.square(residual(xs)))
        boundary = tf.reduce_mean(tf.square(model(ends)))
        loss = interior + 10.0 * boundary
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


for i in range(60):
    loss = step()
    if i in (0, 1, 2, 5, 10):
        print(f"step {i}: {loss.numpy():.3f}")
print("small:", bool(loss < 0.5))
error = tf.reduce_max(tf.abs(model(xs) - tf.sin(xs)))
print("near sin(x):", bool(error < 3.0))
w = tf.Variable(tf.constant([[0.5, -0.3], [0.2, 0.8]]))
with tf.GradientTape() as t2:
    with tf.GradientTape() as t1:
        y = tf.reduce_sum(tf.tanh(w @ w))
    g = t1.gradient(y, w)
h = t2.jacobian(g, w)
print(h.shape, np.round(tf.reshape(h, (4, 4)).numpy()[0], 3))
print("symmetric:", bool(np.allclose(tf.reshape(h, (4, 4)), tf.transpose(tf.reshape(h, (4, 4))), atol=1e-5)))
