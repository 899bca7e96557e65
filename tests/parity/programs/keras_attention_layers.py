"""MultiHeadAttention, Attention, Embedding, causal masks."""
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers
from parity import check

r = np.random.RandomState(3)
q = r.uniform(-1, 1, (2, 4, 6)).astype("float32")
v = r.uniform(-1, 1, (2, 5, 6)).astype("float32")
mha = layers.MultiHeadAttention(num_heads=2, key_dim=3)
mha(q, v)
mha.set_weights([r.uniform(-0.5, 0.5, w.shape).astype("float32") for w in mha.get_weights()])
check("weights", [w.shape for w in mha.get_weights()])
check("cross", mha(q, v), tol=2e-5)
check("self", mha(query=q, value=q, key=q), tol=2e-5)
check("causal", mha(q, q, use_causal_mask=True), tol=2e-5)
out, scores = mha(q, v, return_attention_scores=True)
check("scores", scores, tol=2e-5)
mask = np.tril(np.ones((4, 5), bool))[None]
check("mask", mha(q, v, attention_mask=mask), tol=2e-5)
check("dot attention", layers.Attention()([q, v]), tol=2e-5)
check("additive", layers.AdditiveAttention(use_scale=False)([q, v]), tol=2e-5)
e = layers.Embedding(5, 3)
e.build((None,))
e.set_weights([np.arange(15.0).reshape(5, 3).astype("float32")])
check("embedding", e(np.array([[0, 4], [2, 2]])))
check("mask of an embedding", layers.Embedding(5, 3, mask_zero=True).compute_mask(tf.constant([[1, 0, 2]])))
check("params", mha.count_params())
