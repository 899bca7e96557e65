"""Layers and models under dtype policies: POLICIES says which of them each case is recorded under, beside none in float32 and float64.
Of mixed_float16 the loss scale is 32768 at first: a step that it is too large for writes nothing but moving averages (policy_averages), and of
accumulated gradients only the batch is left out that had such (policy_accumulated)."""
import keras
import numpy as np
from keras import layers as L
from record import BINARY, IDS, IMAGES, LABELS, SEQ, SPARSE, X, Y1, Y3, adam, sgd


def several():
    x = L.Input((12,))
    a, b = L.Dense(6, activation="tanh")(x), L.Dense(6)(x)
    y = L.Concatenate()([L.Add()([a, b]), L.Multiply()([a, b]), L.Maximum()([a, b]), L.Average()([a, b])])
    return keras.Model(x, L.Dense(3)(L.Activation("gelu")(y)))


def attention(causal=False):
    def make():
        ids = L.Input((5,), dtype="int32")
        x = L.Embedding(9, 8, mask_zero=True)(ids)
        x = L.LayerNormalization()(x + L.MultiHeadAttention(2, 4)(x, x, use_causal_mask=causal))
        return keras.Model(ids, L.Dense(1)(L.GlobalAveragePooling1D()(x)))
    return make


HIDDEN = IDS.copy()
HIDDEN[::4] = 0         # examples of which nothing is seen
HIGH = np.abs(np.random.RandomState(3).normal(size=(64, 40, 2))) + 1


def additive():
    ids = L.Input((5,), dtype="int32")
    x = L.Embedding(9, 8, mask_zero=True)(ids)
    return keras.Model(ids, L.Dense(1)(L.Flatten()(L.AdditiveAttention()([x, x]))))


def openly():
    ids = L.Input((5,), dtype="int32")
    x = L.Embedding(9, 8, mask_zero=True)(ids)
    y, weights = L.MultiHeadAttention(2, 4)(x, x, return_attention_scores=True)
    return keras.Model(ids, L.Dense(1)(L.Concatenate()([L.Flatten()(y), L.Flatten()(weights)])))


def scores():
    """Attention whose mask and weights can be seen."""
    ids = L.Input((5,), dtype="int32")
    x = L.Embedding(9, 8, mask_zero=True)(ids)
    return keras.Model(ids, L.Dense(1)(L.Flatten()(L.Attention()([x, x]))))


def unseen():
    """Queries that see nothing, and are looked at all the same: their mask is not that of what they ask."""
    ids = L.Input((5,), dtype="int32")
    x = [L.Embedding(9, 8)(ids), L.Embedding(9, 8, mask_zero=True)(ids)]
    return keras.Model(ids, L.Dense(1)(L.Flatten()(L.Concatenate()([L.Attention()(x), L.AdditiveAttention()(x)]))))


def own_policies():
    """Layers of other policies than the model's."""
    return [L.Input((7, 6, 3)), L.Conv2D(4, 3, activation="relu"), L.BatchNormalization(dtype="float32"), L.Conv2D(4, 2, dtype="mixed_bfloat16"),
            L.GlobalAveragePooling2D(), L.Dense(6, activation="tanh"), L.Dense(4, activation="softmax", dtype="float32")]


def outer():
    return [L.Input((5, 4)), L.TimeDistributed(L.Dense(6, activation="relu")), L.Bidirectional(L.LSTM(4, return_sequences=True)), L.GRU(4), L.Dense(1)]


CASES = [
    ("policy_dense", lambda: [L.Input((12,)), L.Dense(8, activation="relu"), L.Dense(3)], X, Y3, sgd, "mse", ["mae"], 3),
    ("policy_cnn", lambda: [L.Input((7, 6, 3)), L.Conv2D(4, 3, padding="same", activation="relu"), L.BatchNormalization(), L.MaxPooling2D(),
                            L.Conv2D(6, 2), L.ReLU(), L.AveragePooling2D(1), L.Flatten(), L.Dense(4, activation="softmax")], IMAGES, LABELS, sgd, SPARSE, [], 3),
    ("policy_batchnorm", lambda: [L.Input((12,)), L.Dense(8, activation="relu"), L.BatchNormalization(), L.Dense(3)], X, Y3 / 8, sgd, "mse", [], 3),
    ("policy_skips", lambda: [L.Input((7, 6, 3)), L.Conv2D(4, 3, activation="relu"), L.Flatten(), L.Dense(4, activation="softmax")], IMAGES, LABELS,
     lambda: keras.optimizers.SGD(0.0025), SPARSE, ["accuracy"], 7, 16, {"loss_weights": [20.0]}),
    ("policy_averages", lambda: [L.Input((12,)), L.Dense(8, activation="relu"), L.BatchNormalization(momentum=0.8), L.Dense(3)], X, Y3,
     lambda: keras.optimizers.SGD(0.0025), "mse", ["mae"], 8, 16, {"loss_weights": [20.0]}),
    ("policy_accumulated", lambda: [L.Input((12,)), L.Dense(8, activation="relu"), L.BatchNormalization(), L.Dense(3)], X, Y3,
     lambda: keras.optimizers.SGD(0.0025, momentum=0.5, weight_decay=0.1, gradient_accumulation_steps=3), "mse", [], 12, 16, {"loss_weights": [20.0]}),
    ("policy_depthwise", lambda: [L.Input((7, 6, 3)), L.DepthwiseConv2D(3), L.SeparableConv2D(5, 2), L.GlobalMaxPooling2D(), L.Dense(1)], IMAGES,
     Y1, sgd, "mse", [], 3),
    ("policy_norms", lambda: [L.Input((12,)), L.Dense(8), L.LayerNormalization(), L.Dense(8), L.GroupNormalization(4), L.Dense(8),
                              L.RMSNormalization(), L.Dense(6), L.UnitNormalization(), L.Dense(3)], X, Y3, sgd, "mse", [], 3),
    ("policy_large", lambda: [L.Input((12,)), L.Rescaling(300.0), L.Dense(8), L.LayerNormalization(), L.Dense(3)], X, Y3, sgd, "mse", [], 3),
    ("policy_several", several, X, Y3, sgd, "mse", [], 3),
    ("policy_recurrent", outer, SEQ, Y1, sgd, "mse", [], 3),
    ("policy_attention", attention(), IDS, Y1, sgd, "mse", [], 3),
    ("policy_causal", attention(True), IDS, Y1, sgd, "mse", [], 1),
    ("policy_scores", scores, IDS, Y1, sgd, "mse", [], 3),
    ("policy_unseen", unseen, HIDDEN, Y1, sgd, "mse", [], 3),
    ("policy_additive", additive, HIDDEN, Y1, sgd, "mse", [], 3),
    ("policy_openly", openly, HIDDEN, Y1, sgd, "mse", [], 3),
    ("policy_mean", lambda: [L.Input((40, 2)), L.Rescaling(2000.0), L.GlobalAveragePooling1D(), L.Rescaling(1e-3), L.Dense(1)], HIGH, Y1, sgd, "mse", [], 1),
    ("policy_own", own_policies, IMAGES, LABELS, sgd, SPARSE, ["accuracy"], 3),
    ("policy_penalties", lambda: [L.Input((12,)), L.Dense(8, activation="relu", kernel_regularizer="l2"), L.Dropout(0.0),
                                  L.Dense(1, activation="sigmoid", bias_regularizer="l1")], X, BINARY, sgd, "binary_crossentropy", [], 3),
    ("policy_adam", lambda: [L.Input((12,)), L.Dense(8, activation="tanh"), L.Dense(3)], X, np.abs(Y3) + 1, adam, "mse", [], 3),
    ("policy_weights", lambda: [L.Input((12,)), L.Dense(8, activation="relu"), L.Dense(3)], X, Y3, sgd, "mse", [], 3, 16,
     {"sample_weight": np.abs(Y1[:, 0])}),
]
TRAINED, WHOLE = ["mixed_bfloat16"], ("policy_dense", "policy_cnn", "policy_norms")
POLICIES = {case[0]: TRAINED + (["bfloat16", "float16"] if case[0] in WHOLE else []) + ["mixed_float16"] * (case[0] != "policy_cnn") for case in CASES}
F32_ONLY = F64_ONLY = [case[0] for case in CASES if case[0] != "policy_openly"]
