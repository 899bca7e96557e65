"""Models in the style of documentation and blog posts that differed from Keras once, and what stood beside them."""
import keras
import numpy as np
from keras import layers as L
from keras import ops
from record import IDS, IMAGES, LABELS, ONEHOT, SEQ, SPARSE, X, Y3, adam, sgd

R = np.random.RandomState(41)
floatx = lambda: keras.config.floatx()
PAIRS = np.eye(2)[R.randint(0, 2, 64)]
WEIGHTED = np.abs(R.normal(size=(64, 4)))  # rows that do not add up to 1
one = lambda n, activation=None: lambda: [L.Input((12,)), L.Dense(n, activation=activation)]
PADDED = IDS.copy()
PADDED[:20, :2] = 0
PADDED[20:24] = 0
PADDED[30:40, 3:] = 0


def likes_of_integers():
    x = L.Input((5,), dtype="int32")
    table = L.Embedding(9, 4)
    rows = [table(ops.ones_like(x) + x // 2), table(ops.zeros_like(x) + 1), L.Reshape((5, 1))(ops.ones_like(x, dtype=floatx()) / 2)]
    return keras.Model(x, L.Dense(3)(L.Flatten()(ops.concatenate(rows, axis=-1))))


def masked_from_states():
    """The output before the first valid step is zeros, whatever the state is."""
    x, s = L.Input((5,), dtype="int32"), L.Input((12,))
    e = L.Embedding(9, 4, mask_zero=True)(x)
    y, h, c = L.LSTM(3, return_state=True)(e, initial_state=[L.Dense(3)(s), L.Dense(3)(s)])
    z = L.GRU(3, return_sequences=True, go_backwards=True)(e, initial_state=L.Dense(3)(s))
    return keras.Model([x, s], L.Dense(3)(L.Concatenate()([y, h, c, L.Flatten()(z)])))


def long_array():
    a = lambda *shape: np.round(R.normal(size=shape), 2).astype(floatx())
    x = L.Input((12,))
    y = ops.multiply(ops.reshape(L.Dense(20)(x), (-1, 20, 1)), a(20, 14))
    return keras.Model(x, L.Dense(3)(ops.matmul(ops.mean(y, axis=1), a(14, 20))))


def reversible():
    x = L.Input((5,), dtype="int32")
    tied, own = L.ReversibleEmbedding(9, 4), L.ReversibleEmbedding(9, 4, tie_weights=False, mask_zero=True, logit_soft_cap=3.0, embeddings_regularizer="l2")
    y = L.GRU(4, return_sequences=True)(own(x))
    return keras.Model(x, tied(L.Dense(4)(tied(x)), reverse=True) + own(y, reverse=True))


def masks_end_at_attention():
    """MultiHeadAttention takes the masks off its inputs: the sums have none, and no loss is masked."""
    words, more = L.Input((5,), dtype="int32"), L.Input((5,), dtype="int32")
    table = L.Embedding(9, 4, mask_zero=True)
    a, b = table(words), table(more)
    a = L.LayerNormalization()(L.Add()([a, L.MultiHeadAttention(2, 3)(a, a, use_causal_mask=True)]))
    b = L.LayerNormalization()(L.Add()([b, L.MultiHeadAttention(2, 3)(query=b, value=a, key=a)]))
    return keras.Model([words, more], L.Dense(9)(b))


def masks_behind_dropout():
    """A dropout that drops nothing gives the tensor it got, which then loses its mask, too."""
    x = L.Input((5,), dtype="int32")
    a = L.Embedding(9, 4, mask_zero=True)(x)
    b = L.Dropout(0.0)(a)
    return keras.Model(x, L.Dense(9)(L.Add()([a, L.MultiHeadAttention(2, 3)(b, b)])))


def capsules():
    """Two rounds of routing by agreement."""
    squash = lambda v: v * ops.sum(ops.square(v), -1, keepdims=True) / (1 + ops.sum(ops.square(v), -1, keepdims=True)) / ops.sqrt(ops.sum(ops.square(v), -1, keepdims=True) + 1e-7)
    x = L.Input((7, 6, 3))
    votes = L.EinsumDense("bnd,dce->bnce", output_shape=(None, 4, 3), bias_axes=None)(squash(L.Reshape((-1, 4))(L.Conv2D(4, 3, strides=2)(x))))
    logits = ops.zeros_like(votes[..., 0])
    for _ in range(2):
        v = squash(ops.einsum("bnc,bnce->bce", ops.softmax(logits, axis=-1), votes))
        logits = logits + ops.einsum("bnce,bce->bnc", votes, v)
    return keras.Model(x, ops.sqrt(ops.sum(ops.square(v), -1) + 1e-7))


def mixer():
    x = L.Input((5, 4))
    y = x + L.Permute((2, 1))(L.Dense(5)(L.Dense(6, activation="gelu")(L.Permute((2, 1))(L.LayerNormalization()(x)))))
    y = y + L.Dense(4)(ops.gelu(L.Dense(6)(L.RMSNormalization()(y)), approximate=True))
    return keras.Model(x, L.Dense(3)(L.GlobalAveragePooling1D()(y)))


def variational():
    x = L.Input((12,))
    h = L.Dense(6, activation="relu")(x)
    mean, spread = L.Dense(2)(h), L.Dense(2)(h)
    y = L.Dense(12, activation="sigmoid", name="made")(L.Dense(6, activation="relu")(mean + ops.exp(0.5 * spread) * 0.3))
    kl = L.Identity(name="kl")(-0.5 * ops.sum(1 + spread - ops.square(mean) - ops.exp(spread), axis=1, keepdims=True))
    return keras.Model(x, [y, kl])


def transformed_points():
    x = L.Input((5, 4))
    turn = L.Dense(16, kernel_initializer="zeros", bias_initializer=keras.initializers.Constant(0.1))(L.GlobalMaxPooling1D()(L.BatchNormalization()(L.Conv1D(5, 1, activation="relu")(x))))
    return keras.Model(x, L.Dense(3)(L.GlobalMaxPooling1D()(L.Conv1D(6, 1, activation="relu")(L.Dot(axes=(2, 1))([x, L.Reshape((4, 4))(turn)])))))


WORDS = R.randint(0, 9, size=(64, 5)).astype(np.int32)
SHARES = R.uniform(size=(64, 12))
logits = lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True)
CASES = [
    ("unseen_reversible", reversible, PADDED, WORDS, sgd, logits, ["accuracy"], 3),
    ("unseen_masks_end_at_attention", masks_end_at_attention, [IDS, PADDED], WORDS, sgd, logits, ["accuracy"], 3),
    ("unseen_masks_behind_dropout", masks_behind_dropout, PADDED, WORDS, sgd, logits, ["accuracy"], 3),
    ("unseen_loss_scale", one(3), X, Y3, lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01, clipnorm=0.5)), "mse", [], 3),
    ("unseen_capsules", capsules, IMAGES, ONEHOT, adam, "mse", [], 3),
    ("unseen_mixer", mixer, SEQ, Y3, lambda: keras.optimizers.Nadam(0.002), "mse", [], 3),
    ("unseen_variational", variational, SHARES, [SHARES, np.zeros((64, 1))], adam, ["binary_crossentropy", "mae"], [], 3, 16, {"loss_weights": [12.0, 1.0]}),
    ("unseen_transformed_points", transformed_points, SEQ, Y3, sgd, "log_cosh", [], 3),
    ("unseen_likes_of_integers", likes_of_integers, IDS, Y3, adam, "mse", [], 3),
    ("unseen_masked_from_states", masked_from_states, [PADDED, X], Y3, adam, "mse", [], 3),
    ("unseen_long_array", long_array, X, Y3, adam, "mse", [], 3),
    ("unseen_binary_of_softmax", one(2, "softmax"), X, PAIRS, sgd, "binary_crossentropy", ["binary_crossentropy", "accuracy"], 3),
    ("unseen_categorical_of_sigmoid", one(4, "sigmoid"), X, ONEHOT, sgd, "categorical_crossentropy", ["categorical_crossentropy"], 3),
    ("unseen_sparse_of_sigmoid", one(4, "sigmoid"), X, LABELS, sgd, SPARSE, ["sparse_categorical_crossentropy"], 3),
    ("unseen_weighted_labels", one(4, "softmax"), X, WEIGHTED, sgd, "categorical_crossentropy", ["categorical_crossentropy"], 3),
]
