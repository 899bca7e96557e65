"""Models with several inputs and outputs, operations of keras.ops as nodes, weights of examples and masks."""
import keras
import numpy as np
from keras import layers as L
from keras import ops
from record import BINARY, IDS, LABELS, ONEHOT, SEQ, SPARSE, X, Y1, Y3, adam, sgd, slow

R = np.random.RandomState(5)
WEIGHTS, STEP_WEIGHTS = R.uniform(0.2, 2.0, size=(64,)), R.uniform(0.0, 2.0, size=(64, 5))
SEQ_TARGETS, SEQ_LABELS = R.normal(size=(64, 5, 3)), R.randint(0, 4, size=(64, 5)).astype(np.int32)
PADDED = np.where(R.uniform(size=(64, 5)) < 0.3, 0, IDS).astype(np.int32)


def ends():
    """Two inputs, two outputs, one of them read by the other."""
    a, b = L.Input((12,), name="a"), L.Input((5, 4), name="b")
    x = L.Concatenate()([L.Dense(6, activation="tanh")(a), L.Flatten()(b)])
    first = L.Dense(3, name="first")(x)
    second = L.Dense(4, activation="softmax", name="second")(L.Concatenate()([x, first]))
    return keras.Model([a, b], [first, second])


def named_ends():
    """Ends that are dictionaries: Keras takes them in the order of their keys."""
    v, u = L.Input((12,), name="v"), L.Input((12,), name="u")
    x = L.Subtract()([L.Dense(5, activation="relu")(u), L.Dense(5)(v)])
    return keras.Model({"v": v, "u": u}, {"q": L.Dense(1, activation="sigmoid")(x), "p": L.Dense(3)(x)})


def states():
    """A nested model of two inputs and two outputs, and an output that asks for nothing."""
    s, t = L.Input((12,)), L.Input((12,))
    inner = keras.Model([s, t], [L.Dense(4, activation="tanh")(s), L.Dense(4)(L.Add()([s, t]))], name="inner")
    a, b = L.Input((12,), name="a"), L.Input((12,), name="b")
    x, y = inner([a, b])
    z, _ = inner([b, a])
    return keras.Model([a, b], [L.Dense(3, name="end")(L.Multiply()([x, z])), y])


def called_off():
    """A model within the model that is called with training=False, which Keras 3 does not heed: train_step says True."""
    inner = keras.Sequential([L.Input((12,)), L.Dense(6), L.BatchNormalization(momentum=0.9)], name="inner")
    x = L.Input((12,))
    return keras.Model(x, L.Dense(3)(inner(x, training=False)))


def arithmetic():
    x = L.Input((12,))
    a, b = L.Dense(6)(x), L.Dense(6, activation="softplus")(x)
    y = (a + b) * 0.5 - 2.0 * (1.5 - a) / (b + 1.0)
    z = -y ** 2 + ops.maximum(a, 0.1) - ops.minimum(b, a) + ops.power(b + 0.5, 1.5) + 2.0 / (b + 1)
    z = z + ops.where(ops.greater(a, 0.0), a, 0.25) + ops.clip(a, -0.5, 0.5) + ops.abs(a) + ops.square(b)
    return keras.Model(x, L.Dense(3)(z))


def functions():
    x = L.Input((12,))
    a, b = L.Dense(6)(x), L.Dense(6, activation="softplus")(x)
    y = ops.exp(a * 0.3) + ops.log(b + 1.0) + ops.sqrt(b + 0.1) + ops.sigmoid(a) + ops.tanh(a) + ops.relu(a) + ops.silu(a)
    y = y + ops.softmax(a) + ops.log_softmax(b) + ops.leaky_relu(a, negative_slope=0.3) + ops.rsqrt(b + 0.5) + ops.cast(a, "float32" if keras.config.floatx() == "float32" else "float64")
    return keras.Model(x, L.Dense(3)(y))


def shapes():
    x = L.Input((5, 4))
    a = L.Dense(4, activation="tanh")(x)
    part = a[:, 1:4, ::2]
    last, one = a[:, -1], a[..., 0]
    wide = ops.concatenate([ops.reshape(part, (-1, 6)), last, one, ops.squeeze(ops.expand_dims(one, 1), 1)], axis=-1)
    left, right = ops.split(a, [1], axis=2)
    three = ops.split(ops.concatenate([left, right, a[:, :, :2]], axis=-1), 3, axis=-1)
    square = ops.matmul(ops.transpose(a, (0, 2, 1)), ops.swapaxes(ops.swapaxes(a, 1, 2), 1, 2))
    pair = ops.stack([last, three[1][:, 0, 0:1] * last, last[:, None, :][:, 0]], axis=1)
    y = ops.concatenate([wide, ops.reshape(square, (-1, 16)), ops.reshape(pair, (-1, 12)), ops.reshape(ops.softmax(a, axis=1), (-1, 20))], axis=1)
    return keras.Model(x, L.Dense(3)(y))


def reductions():
    x = L.Input((5, 4))
    a = L.Dense(4)(x)
    rows = [ops.mean(a, axis=1), ops.sum(a, axis=-1), ops.max(a, axis=(1,)), ops.min(a, axis=2), ops.var(a, axis=1), ops.std(a, axis=2),
            ops.logsumexp(a, axis=1), ops.reshape(ops.mean(a, axis=(1, 2), keepdims=True), (-1, 1))]
    return keras.Model(x, L.Dense(3)(ops.concatenate(rows, axis=-1)))


def arrays():
    """Arrays as operands, and a tensor given by keyword."""
    x = L.Input((5, 4))
    a = L.Dense(4)(x)
    y = a * np.array([0.5, 1.5, -1.0, 2.0], dtype=keras.config.floatx()) + np.array([[0.1], [0.2], [0.3], [0.4], [0.5]], dtype=keras.config.floatx())
    y = ops.add(y, x2=ops.tanh(a))
    return keras.Model(x, L.Dense(3)(ops.reshape(ops.subtract(2.0, x2=y), (-1, 20))))


def values():
    x = L.Input((5, 4))
    a = L.Dense(4)(x)
    y = ops.hstack([ops.normalize(a, axis=-1), ops.take(a, [3, 0, 3], axis=1), ops.hypot(a, x), ops.dot(a, np.eye(4)[::-1].astype(keras.config.floatx()))])
    y = y + ops.mean(ops.full_like(a, 0.25) + ops.zeros_like(a) + ops.ones_like(a), axis=1, keepdims=True)
    y = y + ops.cast(ops.cast(y * 3.0, "int32"), keras.config.floatx())
    return keras.Model(x, L.Dense(3)(L.Flatten()(y)))


def masked(units, activation=None):
    return lambda: [L.Input((5,), dtype="int32"), L.Embedding(9, 4, mask_zero=True), L.Dense(units, activation=activation)]


dense = lambda n, activation=None: lambda: [L.Input((12,)), L.Dense(n, activation=activation)]
steps = lambda n, activation=None: lambda: [L.Input((5, 4)), L.Dense(n, activation=activation)]
CASES = [
    ("io_list", ends, [X, SEQ], [Y3, LABELS], adam, ["mse", SPARSE], [["mae"], ["accuracy"]], 5, 16, {"loss_weights": [0.7, 0.3]}),
    ("io_one_loss", ends, [X, SEQ], [Y3, ONEHOT], sgd, "mse", [], 3),
    ("io_named", named_ends, {"u": X, "v": X[::-1]}, {"p": Y3, "q": BINARY}, sgd, {"p": "mae", "q": "binary_crossentropy"},
     {"q": ["accuracy", "mse"], "p": ["mse"]}, 3, 16, {"loss_weights": {"p": 0.5, "q": 2.0}}),
    ("io_states", states, [X, X[::-1]], [Y3, np.zeros((64, 4))], sgd, ["mse", None], [], 3),
    ("call_training_off", called_off, X, Y3, sgd, "mse", [], 3),
    ("ops_arithmetic", arithmetic, X, Y3, slow, "mse", [], 3),
    ("ops_functions", functions, X, Y3, slow, "mse", [], 3),
    ("ops_shapes", shapes, SEQ, Y3, slow, "mse", [], 3),
    ("ops_reductions", reductions, SEQ, Y3, slow, "mse", [], 3),
    ("ops_arrays", arrays, SEQ, Y3, slow, "mse", [], 3),
    ("ops_values", values, SEQ, Y3, slow, "mse", [], 3),
    ("weight_sample", dense(3), X, Y3, sgd, "mse", ["mae"], 3, 16, {"sample_weight": WEIGHTS, "weighted_metrics": ["mae", "mse"]}),
    ("weight_sparse", dense(4, "softmax"), X, LABELS, sgd, SPARSE, [], 3, 16, {"sample_weight": WEIGHTS, "weighted_metrics": ["accuracy"]}),
    ("weight_counts", dense(1, "sigmoid"), X, BINARY, sgd, "binary_crossentropy", [], 3, 16,
     {"sample_weight": WEIGHTS, "weighted_metrics": [keras.metrics.Precision, keras.metrics.Recall, "accuracy"]}),
    ("weight_steps", steps(3), SEQ, SEQ_TARGETS, sgd, "mse", ["mae"], 3, 16, {"sample_weight": STEP_WEIGHTS, "weighted_metrics": ["mae"]}),
    ("weight_steps_sparse", steps(4, "softmax"), SEQ, SEQ_LABELS, sgd, SPARSE, [], 3, 16,
     {"sample_weight": STEP_WEIGHTS, "weighted_metrics": ["accuracy"]}),
    ("weight_ends", ends, [X, SEQ], [Y3, LABELS], sgd, ["mse", SPARSE], [], 3, 16, {"sample_weight": [WEIGHTS, WEIGHTS[::-1] ** 2], "weighted_metrics": [["mae"], ["accuracy"]]}),
    ("weight_class", dense(4, "softmax"), X, LABELS, sgd, SPARSE, ["accuracy"], 3, 16, {"class_weight": {0: 0.5, 2: 3.5, 3: 1.25}}),
    ("weight_class_onehot", dense(4, "softmax"), X, ONEHOT, sgd, "categorical_crossentropy", [], 3, 16, {"class_weight": {1: 2.0}}),
    ("weight_class_binary", dense(1, "sigmoid"), X, BINARY, sgd, "binary_crossentropy", [], 3, 16, {"class_weight": {0: 1.0, 1: 4.0}}),
    ("mask_loss", masked(3), PADDED, SEQ_TARGETS, sgd, "mse", ["mae", "mse"], 3),
    ("mask_sparse", masked(4, "softmax"), PADDED, SEQ_LABELS, sgd, SPARSE, ["accuracy"], 3),
    ("mask_weighted", masked(3), PADDED, SEQ_TARGETS, sgd, "mae", ["mae"], 3, 16, {"sample_weight": STEP_WEIGHTS, "weighted_metrics": ["mse"]}),
]
