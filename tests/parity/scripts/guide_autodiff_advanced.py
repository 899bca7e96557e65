"""In the style of advanced automatic differentiation: stop_recording, custom gradients, jacobians, hessians."""
import numpy as np
import tensorflow as tf

x = tf.Variable(2.0)
y = tf.Variable(3.0)
with tf.GradientTape() as t:
    x_sq = x * x
    with t.stop_recording():
        y_sq = y * y
    z = x_sq + y_sq
grad = t.gradient(z, {"x": x, "y": y})
print("dz/dx:", grad["x"])
print("dz/dy:", grad["y"])
with tf.GradientTape() as t:
    y_sq = y ** 2
    z = x ** 2 + tf.stop_gradient(y_sq)
grad = t.gradient(z, {"x": x, "y": y})
print("dz/dx:", grad["x"], "dz/dy:", grad["y"])


@tf.custom_gradient
def clip_gradients(y):
    def backward(dy):
        return tf.clip_by_norm(dy, 0.5)
    return y, backward


v = tf.Variable(2.0)
with tf.GradientTape() as t:
    output = clip_gradients(v * v)
print(t.gradient(output, v))
x0 = tf.constant(0.0)
x1 = tf.constant(0.0)
with tf.GradientTape() as tape0, tf.GradientTape() as tape1:
    tape0.watch(x0)
    tape1.watch(x1)
    y0 = tf.math.sin(x0)
    y1 = tf.nn.sigmoid(x1)
    y = y0 + y1
    ys = tf.reduce_sum(y)
print(tape0.gradient(ys, x0).numpy())
print(tape1.gradient(ys, x1).numpy())
x = tf.Variable(1.0)
with tf.GradientTape() as t2:
    with tf.GradientTape() as t1:
        y = x * x * x
    dy_dx = t1.gradient(y, x)
d2y_dx2 = t2.gradient(dy_dx, x)
print("dy_dx:", dy_dx.numpy())
print("d2y_dx2:", d2y_dx2.numpy())
x = tf.constant(np.sin(np.arange(35.0)).reshape(7, 5), tf.float32)
layer = tf.keras.layers.Dense(10, activation=tf.nn.relu, kernel_initializer=tf.keras.initializers.Constant(0.1))
with tf.GradientTape() as t2:
    with tf.GradientTape() as t1:
        t1.watch(x)
        y = layer(x)
        out = tf.reduce_sum(layer(x) ** 2)
    g1 = t1.gradient(out, x)
    g1_mag = tf.norm(g1)
dg1_mag = t2.gradient(g1_mag, layer.trainable_variables)
print([var.shape for var in dg1_mag], "%.3f" % float(g1_mag))
x = tf.linspace(-10.0, 10.0, 20 + 1)
delta = tf.Variable(0.0)
with tf.GradientTape() as tape:
    y = tf.nn.sigmoid(x + delta)
dy_dx = tape.jacobian(y, delta)
print(y.shape)
print(dy_dx.shape)
x = tf.constant(np.cos(np.arange(35.0)).reshape(7, 5), tf.float32)
with tf.GradientTape(persistent=True) as tape:
    y = layer(x)
print(y.shape)
print(layer.kernel.shape)
j = tape.jacobian(y, layer.kernel)
print(j.shape)
g = tape.gradient(y, layer.kernel)
print("g.shape:", g.shape)
j_sum = tf.reduce_sum(j, axis=[0, 1])
delta = tf.reduce_max(abs(g - j_sum)).numpy()
print("delta is small:", delta < 1e-3)
x = tf.constant(np.sin(np.arange(21.0)).reshape(7, 3), tf.float32)
layer1 = tf.keras.layers.Dense(4, activation=tf.nn.tanh)
layer2 = tf.keras.layers.Dense(3, activation=tf.nn.tanh)
with tf.GradientTape() as t2:
    with tf.GradientTape() as t1:
        y = layer1(x)
        y = layer2(y)
        loss = tf.reduce_mean(y ** 2)
    g = t1.gradient(loss, layer1.kernel)
h = t2.jacobian(g, layer1.kernel)
print(f"layer.kernel.shape: {layer1.kernel.shape}")
print(f"h.shape: {h.shape}")
n_params = tf.reduce_prod(layer1.kernel.shape)
g_vec = tf.reshape(g, [n_params, 1])
h_mat = tf.reshape(h, [n_params, n_params])
print(g_vec.shape, bool(tf.reduce_max(tf.abs(h_mat - tf.transpose(h_mat))) < 1e-4))
x = tf.constant(np.sin(np.arange(35.0)).reshape(7, 5), tf.float32)
layer1 = tf.keras.layers.Dense(8, activation=tf.nn.elu)
layer2 = tf.keras.layers.Dense(6, activation=tf.nn.elu)
with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
    tape.watch(x)
    y = layer1(x)
    y = layer2(y)
print(y.shape)
jb = tape.batch_jacobian(y, x)
print(f"jb.shape: {jb.shape}")
