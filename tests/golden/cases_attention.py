"""Golden cases of attention, einsum and normalisation layers, and of a small transformer."""
import keras
import numpy as np
from record import IDS, IMAGES, SEQ, SPARSE, L, Y3, sgd

R = np.random.RandomState(11)
SEQ2 = SEQ[:32]
Y = Y3[:32]
PADDED = IDS[:32].copy()
for i, row in enumerate(PADDED):
    row[:] = row % 8 + 1
    row[5 - i % 4:] = 0  # up to three steps of padding at the end
TOKENS = R.randint(0, 20, size=(32, 10)).astype(np.int32)
NEXT = R.randint(0, 20, size=(32, 10)).astype(np.int32)


def on(make, x=(5, 4)):
    """A Functional model: make(inputs) flattened and read by a Dense."""
    def model():
        inputs = L.Input(x)
        return keras.Model(inputs, L.Dense(3)(L.Flatten()(make(inputs))))
    return model


def masked(make):
    """The same over tokens of which 0 is padding; GlobalAveragePooling reads the mask that comes out."""
    def model():
        inputs = L.Input((5,), dtype="int32")
        x = L.Embedding(10, 4, mask_zero=True)(inputs)
        return keras.Model(inputs, L.Dense(3)(L.GlobalAveragePooling1D()(make(x))))
    return model


def cross(x):
    """Another length for value and key, which differ."""
    v = L.Permute((2, 1))(L.Dense(7)(L.Permute((2, 1))(x)))
    return L.MultiHeadAttention(2, 3, value_dim=5, output_shape=6)(x, v, key=L.Dense(4, activation="tanh")(v))


def scores(x):
    y, w = L.MultiHeadAttention(2, 3)(x, x, return_attention_scores=True, use_causal_mask=True)
    return L.Concatenate()([L.Flatten()(y), L.Flatten()(w)])


def given(x):
    """A mask computed in the model: every key that is not too far below the mean."""
    mask = L.Dot((2, 2))([L.Dense(3)(x), L.Dense(3)(x)]) > -0.5
    return L.MultiHeadAttention(2, 3)(x, x, attention_mask=mask)


def plain(x, *args, causal=False, **kwargs):
    return L.Attention(*args, **kwargs)([x, L.Dense(4)(x)], use_causal_mask=causal)


def block(x, width, activation):
    """Attention and a feed-forward part, each behind a normalisation and added to what was there."""
    h = L.LayerNormalization()(x)
    x = L.Add()([x, L.MultiHeadAttention(2, width // 2)(h, h, use_causal_mask=True)])
    h = L.Dense(2 * width, activation=activation)(L.LayerNormalization()(x))
    return L.Add()([x, L.Dense(width)(h)])


def transformer(activation):
    inputs = L.Input((10,), dtype="int32")
    x = L.EinsumDense("btc,cd->btd", output_shape=(10, 16), bias_axes="td")(L.Embedding(20, 16)(inputs))  # a bias per place
    for _ in range(4):
        x = block(x, 16, activation)
    return keras.Model(inputs, L.Dense(20, activation="softmax")(L.LayerNormalization()(x)))


def case(name, make, x=SEQ2, y=Y, **kwargs):
    return (name, make, x, y, kwargs.get("optimizer", sgd), kwargs.get("loss", "mse"), [], kwargs.get("steps", 3))


def by_operations(x):
    """keras.ops in the graph: einsum, and attention with a mask that the model computes."""
    heads = lambda: keras.ops.reshape(L.Dense(6)(x), (-1, 5, 2, 3))
    near = keras.ops.expand_dims(keras.ops.einsum("abc,adc->abd", x, x) > -2.0, 1)
    y = keras.ops.dot_product_attention(heads(), heads(), heads(), mask=near, scale=0.7, is_causal=True)
    return keras.ops.einsum("abcd,abed->abce", y, keras.ops.dot_product_attention(heads(), heads(), heads()))


E = L.EinsumDense
momentum = lambda: keras.optimizers.SGD(0.05, momentum=0.9)
CASES = [
    case("attention_heads", on(lambda x: L.MultiHeadAttention(2, 3)(x, x))),
    case("attention_causal", on(lambda x: L.MultiHeadAttention(3, 2, use_bias=False)(x, x, use_causal_mask=True))),
    case("attention_cross", on(cross)),
    case("attention_scores", on(scores)),
    case("attention_gate", on(lambda x: L.MultiHeadAttention(2, 3, use_gate=True, sliding_window=2)(x, x))),
    case("attention_given_mask", on(given)),
    case("attention_masked", masked(lambda x: L.MultiHeadAttention(2, 3)(x, x)), PADDED),
    case("attention_masked_causal", masked(lambda x: L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True)), PADDED),
    case("attention_grouped", on(lambda x: L.GroupQueryAttention(3, 4, 2)(x, x, use_causal_mask=True))),
    case("attention_grouped_one", masked(lambda x: L.GroupQueryAttention(3, 2, 1)(x, x)), PADDED),
    case("attention_dot", on(lambda x: plain(x, use_scale=True))),
    case("attention_dot_causal", on(lambda x: plain(x, causal=True))),
    case("attention_dot_masked", masked(lambda x: plain(x)), PADDED),
    case("attention_concat", on(lambda x: plain(x, use_scale=True, score_mode="concat"))),
    case("attention_additive", on(lambda x: L.AdditiveAttention()([x, L.Dense(4)(x), L.Dense(4)(x)]))),
    case("attention_additive_masked", masked(lambda x: L.AdditiveAttention(use_scale=False)([x, x], use_causal_mask=True)), PADDED),
    case("einsum_dense", on(lambda x: E("abc,cde->abde", output_shape=(5, 3, 2), bias_axes="de", activation="tanh")(x))),
    case("einsum_dense_dots", on(lambda x: E("...x,xy->...y", output_shape=6, bias_axes="y")(x))),
    case("einsum_dense_middle", on(lambda x: E("abc,bd->adc", output_shape=(6, 4), bias_axes="d")(x))),
    case("einsum_dense_heads", on(lambda x: E("abcd,cde->abe", output_shape=(5, 3))(E("abc,cde->abde", output_shape=(5, 2, 4))(x)))),
    case("dot_vectors", on(lambda x: L.Dot(1)([L.Dense(4)(x), L.Dense(4)(x)]), (12,)), R.normal(size=(32, 12))),
    case("dot_axes", on(lambda x: L.Dot((1, 2), normalize=True)([x, L.Permute((2, 1))(L.Dense(3)(x))]))),
    case("operation_attention", on(by_operations)),
    case("norm_group", on(lambda x: L.GroupNormalization(3)(L.Conv2D(6, 2)(x)), (7, 6, 3)), IMAGES[:32]),
    case("norm_group_axis", on(lambda x: L.GroupNormalization(2, axis=1, epsilon=0.01, scale=False)(L.Conv2D(4, 2)(x)), (7, 6, 3)), IMAGES[:32]),
    case("norm_instance", on(lambda x: L.GroupNormalization(-1, center=False)(x))),
    case("norm_rms", on(lambda x: L.RMSNormalization()(x))),
    case("norm_rms_axes", on(lambda x: L.RMSNormalization(axis=(1, 2), epsilon=0.1)(x))),
    case("norm_unit", on(lambda x: L.UnitNormalization()(x))),
    case("norm_unit_axis", on(lambda x: L.UnitNormalization(axis=1)(x))),
    case("norm_layer_axes", on(lambda x: L.LayerNormalization(axis=(1, 2))(x))),
    case("norm_layer_axis", on(lambda x: L.LayerNormalization(axis=1, center=False)(x))),
    case("norm_layer_apart", on(lambda x: L.LayerNormalization(axis=(1, 3))(x), (7, 6, 3)), IMAGES[:32]),
    case("norm_layer_rms", on(lambda x: L.LayerNormalization(rms_scaling=True)(x))),
    case("norm_batch_axis", on(lambda x: L.BatchNormalization(axis=1, momentum=0.8)(x))),
    case("norm_batch_masked", masked(lambda x: L.BatchNormalization(momentum=0.8)(x)), PADDED),
    # Momentum, not Adam: TensorFlow's Adam adds up squares of an embedding's gradient token by token, not the square of their sum.
    case("model_transformer", lambda: transformer("silu"), TOKENS, NEXT, optimizer=momentum, loss=SPARSE, steps=20),
    case("model_transformer_gelu", lambda: transformer("gelu"), TOKENS, NEXT, optimizer=momentum, loss=SPARSE, steps=20),
]
F32_ONLY = ["model_transformer_gelu"]  # TensorFlow divides by a square root of 2 rounded to f32


def learned_bias(x):
    """A bias of the scores that the model makes, per example and head; and a constant one, causal."""
    heads = lambda: L.Reshape((5, 2, 3))(L.Dense(6)(x))
    own = L.Reshape((2, 5, 5))(L.Dense(10)(x))
    shared = keras.ops.transpose(L.Embedding(25, 2)(np.arange(25).reshape(1, 5, 5)), (0, 3, 1, 2))
    y = keras.ops.dot_product_attention(heads(), heads(), heads(), bias=own)
    return L.Concatenate()([L.Flatten()(y), L.Flatten()(keras.ops.dot_product_attention(heads(), heads(), heads(), bias=shared, is_causal=True))])


CASES += [("attention_learned_bias", on(learned_bias), SEQ2, Y, sgd, "mse", [], 3)]
