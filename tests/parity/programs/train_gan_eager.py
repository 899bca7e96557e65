"""The same kind of GAN as a plain eager loop: two updates, discriminator frozen by the choice of variables."""
import numpy as np
import tensorflow as tf
from parity import check

r = np.random.RandomState(1)
G = [tf.Variable(r.uniform(-0.5, 0.5, s).astype("float32")) for s in ((3, 6), (6,), (6, 2), (2,))]
D = [tf.Variable(r.uniform(-0.5, 0.5, s).astype("float32")) for s in ((2, 6), (6,), (6, 1), (1,))]


def mlp(x, p, last=None):
    h = tf.nn.leaky_relu(x @ p[0] + p[1], alpha=0.1)
    out = h @ p[2] + p[3]
    return last(out) if last else out


opt_g, opt_d = tf.keras.optimizers.SGD(0.1, momentum=0.5), tf.keras.optimizers.RMSprop(0.01)
history = []
for step in range(5):
    z = tf.constant(r.uniform(-1, 1, (8, 3)), tf.float32)
    real = tf.constant(r.uniform(0.5, 1.0, (8, 2)), tf.float32)
    with tf.GradientTape() as tape:
        real_logits, fake_logits = mlp(real, D), mlp(tf.stop_gradient(mlp(z, G, tf.tanh)), D)
        d_loss = tf.reduce_mean(tf.nn.softplus(-real_logits)) + tf.reduce_mean(tf.nn.softplus(fake_logits))
    opt_d.apply_gradients(zip(tape.gradient(d_loss, D), D))
    with tf.GradientTape() as tape:
        g_loss = tf.reduce_mean(tf.nn.softplus(-mlp(mlp(z, G, tf.tanh), D)))
    grads = tape.gradient(g_loss, G)
    opt_g.apply_gradients(zip(grads, G))
    history.append((float(d_loss), float(g_loss)))
check("losses", history, tol=2e-4)
check("generator", G[2], tol=1e-3)
check("gradient norm", tf.linalg.global_norm(grads), tol=1e-3)
