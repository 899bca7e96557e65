"""Golden cases of recurrent layers: every class of layers_recurrent.c and layers_wrap.c, with each of its settings."""
import numpy as np
from record import L, SPARSE, adam, head, keras, sgd

R = np.random.RandomState(3)
STEPS, Y = R.normal(size=(16, 5, 4)), R.normal(size=(16, 3))
PADDED = STEPS * (R.uniform(size=(16, 5, 1)) > 0.35)  # steps of zeros, anywhere
WORDS = R.randint(1, 9, size=(16, 6)).astype(np.int32) * (np.arange(6) < R.randint(1, 7, size=(16, 1)))
WORDS[:4] = WORDS[:4, ::-1]  # padded in front
WORDS = WORDS.astype(np.int32)
LONG, CLASSES = R.normal(size=(64, 12, 5)), R.randint(0, 4, size=(64,)).astype(np.int32)
FILMS = R.normal(size=(16, 4, 3, 3, 2)) * (R.uniform(size=(16, 4, 1, 1, 1)) > 0.3)
BIAS = {"bias_initializer": "random_normal"}  # matrices are not jittered


def case(name, x, *layers):
    """Layers are made anew for each dtype."""
    return (name, lambda: [L.Input(x.shape[1:])] + [l() for l in layers] + head(), x, Y, sgd, "mse", [], 3)


def each_class(settings, **more):
    """One case for every cell."""
    makers = {"lstm": lambda **k: L.LSTM(3, **k), "gru": lambda **k: L.GRU(3, **BIAS, **k), "gru_before": lambda **k: L.GRU(3, reset_after=False, **k), "simple_rnn": lambda **k: L.SimpleRNN(3, **k)}
    return [(f"{cls}_{settings}", lambda make=make: make(**more)) for cls, make in makers.items()]


def functional(build):
    def make():
        inputs = L.Input((5, 4))
        return keras.Model(inputs, L.Dense(3)(build(inputs)))
    return make


def encoder_decoder(x):
    y, h, c = L.LSTM(3, return_state=True)(x)
    z, g = L.GRU(3, return_sequences=True, return_state=True, **BIAS)(L.Dense(2)(x), initial_state=y)
    d = L.LSTM(3, return_sequences=True)(z, initial_state=[h, c])
    return L.Concatenate()([L.Flatten()(d), g])


def masked_states(x):
    """With initial states a mask counts only when it is given; steps before the first that counts then give zeros."""
    m = L.Masking()(x)
    mask = keras.ops.any(keras.ops.not_equal(x, 0.0), axis=-1)
    y, h, c = L.LSTM(3, return_state=True, return_sequences=True)(m)
    d = L.LSTM(3, return_sequences=True)(m, initial_state=[h, c])
    e = L.GRU(3, go_backwards=True, return_sequences=True, **BIAS)(m, initial_state=h, mask=mask)
    f = L.SimpleRNN(3)(m, initial_state=h, mask=mask)
    b = L.Bidirectional(L.LSTM(2, return_sequences=True))(m, initial_state=[L.Dense(2)(h), L.Dense(2)(c)] * 2, mask=mask)
    return L.Concatenate()([L.Flatten()(L.Concatenate()([y, d, e, b])), f])


def film():
    """A model of pictures, frozen in part, for every step of a film, and one of what is said of it."""
    picture = L.Input((4, 4, 2))
    y = L.Flatten()(L.BatchNormalization(trainable=False)(L.Conv2D(3, 2, activation="relu")(picture)))
    eye = keras.Model(picture, L.Dense(3)(y), name="eye")
    mouth = keras.Sequential([L.Input((3,)), L.Dense(2, activation="tanh")], name="mouth")
    x = L.Input((5, 4, 4, 2))
    seen = L.TimeDistributed(eye)(x)
    said = L.TimeDistributed(mouth)(L.LSTM(3, return_sequences=True)(seen))
    return keras.Model(x, L.Dense(3)(L.Flatten()(said)))


def masked_pictures():
    x = L.Input(FILMS.shape[1:])
    mask = keras.ops.any(keras.ops.not_equal(x, 0.0), axis=(2, 3, 4))
    y, h, c = L.ConvLSTM2D(2, 2, padding="same", return_sequences=True, return_state=True)(x, mask=mask)
    z = L.ConvLSTM2D(2, 2, padding="same")(y, initial_state=[h, c])
    b = L.Bidirectional(L.ConvLSTM2D(2, 3, padding="same", return_sequences=True))(x, mask=mask)
    return keras.Model(x, L.Dense(3)(L.Concatenate()([L.Flatten()(L.Concatenate()([z, h])), L.Flatten()(b)])))


def two_ways(x):
    a, b = L.Bidirectional(L.GRU(2, **BIAS), merge_mode=None)(x)
    y, fh, fc, bh, bc = L.Bidirectional(L.LSTM(3, return_state=True, return_sequences=True))(x)
    z = L.Bidirectional(L.LSTM(3))(x, initial_state=[bh, bc, fh, fc])
    return L.Concatenate()([a, b, L.Flatten()(y), z])


def stack_states(x):
    cells = [L.LSTMCell(2), L.GRUCell(3, **BIAS)]
    y, *states = L.RNN(cells, return_state=True)(x)
    return L.Concatenate()([y] + keras.tree.flatten(states))


def translator():
    """Two sequences of words, the second one shifted against what it is to say."""
    source, target = L.Input((6,), dtype="int32"), L.Input((4,), dtype="int32")
    _, h, c = L.LSTM(3, return_state=True)(L.Embedding(9, 4, mask_zero=True)(source))
    y = L.LSTM(3, return_sequences=True)(L.Embedding(7, 2)(target), initial_state=[h, c])
    return keras.Model([source, target], L.TimeDistributed(L.Dense(5, activation="softmax"))(y))


CASES = (
    [case(name, STEPS, layer) for name, layer in each_class("plain")]
    + [case(name, STEPS, layer, L.Flatten) for name, layer in each_class("sequences", return_sequences=True)]
    + [case(name, STEPS, layer) for name, layer in each_class("backwards", go_backwards=True)]
    + [case(name, STEPS, layer, L.Flatten) for name, layer in each_class("backwards_sequences", go_backwards=True, return_sequences=True)]
    + [case(name, PADDED, L.Masking, layer) for name, layer in each_class("masked")]
    + [case(name, PADDED, L.Masking, layer, L.Flatten) for name, layer in each_class("masked_sequences", return_sequences=True)]
    + [case(name, PADDED, L.Masking, lambda layer=layer: L.Bidirectional(layer()), L.Flatten) for name, layer in each_class("masked_both", return_sequences=True)]
    + [
        case("lstm_words", WORDS, lambda: L.Embedding(9, 4, mask_zero=True), lambda: L.LSTM(3)),
        case("gru_words", WORDS, lambda: L.Embedding(9, 4, mask_zero=True), lambda: L.Bidirectional(L.GRU(3, **BIAS), merge_mode="sum")),
        case("lstm_settings", STEPS, lambda: L.LSTM(3, activation="relu", recurrent_activation="hard_sigmoid", use_bias=False, unroll=True)),
        case("gru_settings", STEPS, lambda: L.GRU(3, activation="sigmoid", recurrent_activation="tanh", use_bias=False)),
        case("simple_rnn_settings", STEPS, lambda: L.SimpleRNN(3, activation="linear", use_bias=False)),
        case("lstm_regular", STEPS, lambda: L.LSTM(3, unit_forget_bias=False, kernel_regularizer="l2", recurrent_regularizer=keras.regularizers.L2(0.02), bias_constraint="non_neg")),
        case("bidirectional_concat", STEPS, lambda: L.Bidirectional(L.LSTM(3))),
        case("bidirectional_mul", STEPS, lambda: L.Bidirectional(L.SimpleRNN(3), merge_mode="mul")),
        case("bidirectional_ave", STEPS, lambda: L.Bidirectional(L.LSTM(3, return_sequences=True), merge_mode="ave"), L.Flatten),
        case("bidirectional_other", STEPS, lambda: L.Bidirectional(L.LSTM(3), backward_layer=L.GRU(3, go_backwards=True, **BIAS))),
        case("recurrent_stacked", STEPS, lambda: L.LSTM(3, return_sequences=True), lambda: L.GRU(4, return_sequences=True, **BIAS), lambda: L.SimpleRNN(2)),
        case("time_distributed", STEPS, lambda: L.LSTM(3, return_sequences=True), lambda: L.TimeDistributed(L.Dense(2, activation="tanh")), L.Flatten),
        case("time_distributed_conv", R.normal(size=(16, 3, 5, 4)), lambda: L.TimeDistributed(L.Conv1D(2, 3)), lambda: L.TimeDistributed(L.Flatten()), lambda: L.LSTM(3)),
        case("time_distributed_batchnorm", STEPS, lambda: L.TimeDistributed(L.BatchNormalization(momentum=0.9)), L.Flatten),
        ("time_distributed_model", film, R.normal(size=(16, 5, 4, 4, 2)), Y, sgd, "mse", [], 3),
        case("rnn_cell", STEPS, lambda: L.RNN(L.LSTMCell(3), return_sequences=True), lambda: L.RNN(L.SimpleRNNCell(3), go_backwards=True)),
        case("rnn_cells", PADDED, L.Masking, lambda: L.RNN([L.LSTMCell(3), L.GRUCell(2, **BIAS), L.GRUCell(3, reset_after=False)], return_sequences=True), L.Flatten),
        case("bidirectional_cells", STEPS, lambda: L.Bidirectional(L.RNN([L.LSTMCell(3), L.SimpleRNNCell(2)], return_sequences=True)), L.Flatten),
        case("conv_lstm1d", R.normal(size=(16, 3, 6, 2)), lambda: L.ConvLSTM1D(2, 3, strides=2, padding="same", return_sequences=True), L.Flatten),
        case("conv_lstm2d", R.normal(size=(16, 3, 5, 4, 2)), lambda: L.ConvLSTM2D(2, (3, 2), return_sequences=True, activation="relu", recurrent_activation="hard_sigmoid"), lambda: L.ConvLSTM2D(3, 2, padding="same", go_backwards=True, use_bias=False), L.Flatten),
        case("conv_lstm2d_dilated", R.normal(size=(16, 4, 3, 3, 2)), lambda: L.ConvLSTM2D(2, 2, dilation_rate=2), L.Flatten),
        ("conv_lstm_masked", masked_pictures, FILMS, Y, sgd, "mse", [], 3),
        case("conv_lstm3d", R.normal(size=(16, 2, 3, 3, 3, 1)), lambda: L.ConvLSTM3D(2, 2, padding="same"), L.Flatten),
        case("conv_lstm_long", R.normal(size=(16, 18, 3, 1)), lambda: L.ConvLSTM1D(2, 2, padding="same", return_sequences=True), L.Flatten),
        ("stateful", lambda: [L.Input(batch_shape=(16, 5, 4)), L.Bidirectional(L.LSTM(3, stateful=True, return_sequences=True)), L.RNN([L.GRUCell(2, **BIAS), L.SimpleRNNCell(3)], stateful=True)] + head(), np.tile(STEPS, (3, 1, 1)), np.tile(Y, (3, 1)), sgd, "mse", [], 3),
        ("tagger", lambda: [L.Input((6,), dtype="int32"), L.Embedding(9, 4, mask_zero=True), L.Bidirectional(L.LSTM(3, return_sequences=True)), L.Dense(4, activation="softmax")],
         WORDS, WORDS % 4, sgd, SPARSE, ["accuracy"], 5),
        ("translator", translator, [WORDS, WORDS[:, 2:] % 7], WORDS[:, 1:5] % 5, sgd, SPARSE, ["accuracy"], 5),
        ("encoder_decoder", functional(encoder_decoder), STEPS, Y, sgd, "mse", [], 3),
        ("masked_states", functional(masked_states), PADDED, Y, sgd, "mse", [], 3),
        ("bidirectional_states", functional(two_ways), STEPS, Y, sgd, "mse", [], 3),
        ("stack_states", functional(stack_states), STEPS, Y, sgd, "mse", [], 3),
        ("model_lstm", lambda: [L.Input((12, 5)), L.LSTM(16)] + head(4, "softmax"), LONG, CLASSES, adam, SPARSE, ["accuracy"], 20),
    ]
)
