"""Attention under policies: heads, masks, scores, a decoder's causal mask, gradients."""
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)
R = np.random.RandomState(0)
q, v = R.normal(size=(2, 4, 6)).astype("float32"), R.normal(size=(2, 5, 6)).astype("float32")


def filled(layer):
    rng = np.random.RandomState(1)
    layer.set_weights([rng.uniform(-0.4, 0.4, size=w.shape).astype("float32") for w in layer.get_weights()])
    return layer


mask = np.tri(4, 5, dtype=bool)[None].repeat(2, 0)
for policy, eps in (("mixed_bfloat16", 2.0 ** -8), ("mixed_float16", 2.0 ** -11), ("float16", 2.0 ** -11)):
    layer = L.MultiHeadAttention(2, 3, dtype=policy)
    layer(q, v)
    filled(layer)
    y, scores = layer(q, v, return_attention_scores=True)
    check(f"{policy} heads", [name(y), name(scores), sorted({str(w.dtype) for w in layer.weights})])
    check(f"{policy} heads: numbers", [tf.cast(y, tf.float32), tf.cast(scores, tf.float32)], tol=8 * eps)
    check(f"{policy} masked", tf.cast(layer(q, v, attention_mask=mask), tf.float32), tol=8 * eps)
    check(f"{policy} causal", tf.cast(layer(q, q, use_causal_mask=True), tf.float32), tol=8 * eps)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.cast(layer(q, v), tf.float32) ** 2)
    gradients = tape.gradient(loss, layer.trainable_weights)
    check(f"{policy} gradients", sorted({name(g) for g in gradients}))
    for kind in (L.Attention, L.AdditiveAttention):
        single = kind(dtype=policy)
        single([q, v])
        filled(single)
        y = single([q, v], mask=[None, np.array([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]], bool)])
        check(f"{policy} {kind.__name__}", [name(y), tf.cast(y, tf.float32)], tol=8 * eps)
    grouped = L.GroupQueryAttention(2, 4, 2, dtype=policy)
    grouped(q, v)
    check(f"{policy} grouped", tf.cast(filled(grouped)(q, v), tf.float32), tol=8 * eps)
