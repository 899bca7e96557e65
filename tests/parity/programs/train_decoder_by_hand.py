"""A causal language model with attention written with tf functions only."""
import numpy as np
import tensorflow as tf
from parity import check

r = np.random.RandomState(2)
V, D, T, H = 11, 8, 6, 2


def weight(*shape):
    return tf.Variable(r.uniform(-0.4, 0.4, shape).astype("float32"))


emb, pos, wqkv, wo, w1, w2 = weight(V, D), weight(T, D), weight(D, 3 * D), weight(D, D), weight(D, 16), weight(16, D)
params = [emb, pos, wqkv, wo, w1, w2]


def norm(x):
    mean, var = tf.nn.moments(x, axes=[-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(var + 1e-5)


def heads(x):
    return tf.transpose(tf.reshape(x, (tf.shape(x)[0], -1, H, D // H)), (0, 2, 1, 3))


def logits(tokens):
    x = tf.gather(emb, tokens) + pos
    q, k, v = [heads(p) for p in tf.split(norm(x) @ wqkv, 3, axis=-1)]
    scores = tf.matmul(q, k, transpose_b=True) / tf.sqrt(tf.cast(D // H, tf.float32))
    mask = tf.linalg.band_part(tf.ones((T, T)), -1, 0)
    scores = tf.where(mask > 0, scores, -1e9)
    mixed = tf.reshape(tf.transpose(tf.nn.softmax(scores) @ v, (0, 2, 1, 3)), (-1, T, D))
    x = x + mixed @ wo
    x = x + tf.nn.gelu(norm(x) @ w1) @ w2
    return tf.matmul(norm(x), emb, transpose_b=True)


tokens = r.randint(0, V, (4, T + 1))
opt = tf.keras.optimizers.AdamW(0.02, weight_decay=0.01)
losses = []
for step in range(6):
    with tf.GradientTape() as tape:
        out = logits(tokens[:, :-1])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tokens[:, 1:], out))
    opt.apply_gradients(zip(tape.gradient(loss, params), params))
    losses.append(float(loss))
check("losses", losses, tol=1e-3)
changed = tokens.copy()
changed[:, 3:] = 0
check("causal", bool(np.allclose(logits(tokens[:, :-1])[:, :3], logits(changed[:, :-1])[:, :3], atol=1e-5)))
check("next token", tf.argmax(logits(tokens[:, :-1])[:, -1], axis=-1).shape)
