#!/usr/bin/env python3
"""Records what Keras does, for tests/test_golden.c: each case is a folder with model.json (with compile settings) and
case.safetensors: x, y, losses (one per step, batches taken in turn), pred (after training), before/<weight> and after/<weight>;
x_0, x_1, ... where there are several, w for sample weights, evaluated or evaluated/<name>.

    python -m venv peers && peers/bin/pip install tensorflow==2.21.* && peers/bin/python tests/golden/record.py

Versions are stored in versions.json. CI does not need TensorFlow. Goldens never change in the commit that changes the code
they judge."""
import glob
import importlib
import json
import os
import struct
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64"}
ENDS = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "mixed_float16": "mixed_f16", "mixed_bfloat16": "mixed_bf16"}


def save_safetensors(path, tensors):
    order = sorted(tensors, key=lambda k: (-tensors[k].dtype.itemsize, k))
    header, at = {}, 0
    for k in order:
        a = tensors[k]
        header[k] = {"dtype": DTYPES[str(a.dtype)], "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for k in order:
            f.write(np.ascontiguousarray(tensors[k]).tobytes())


def leaves(model, prefix=""):
    """Layers that are no models, with their names as Snug has them: those of models within are prefixed."""
    for l in model.layers:
        if isinstance(l, keras.Model):
            yield from leaves(l, f"{prefix}{l.name}/")
        elif isinstance(l, L.TimeDistributed) and isinstance(l.layer, keras.Model):
            yield from leaves(l.layer, f"{prefix}{l.name}/{l.layer.name}/")
        else:
            yield prefix + l.name, l


def within(layer, v):
    """A variable's name inside its layer: "kernel", or "query/kernel" of a layer inside."""
    return v.path.split(f"{layer.name}/", 1)[-1]


def weights(model):
    return {f"{name}/{within(l, v)}": v.numpy() for name, l in leaves(model) for v in l.weights}


def jitter(model, rng):
    """Zeros and ones hide mistakes: biases, scales and moving averages get values of their own."""
    for _, l in leaves(model):
        l.set_weights([w + rng.uniform(0.05, 0.3, w.shape).astype(w.dtype) if w.ndim == 1 else w for w in l.get_weights()])


def each(value, f):
    """f on an array or a metric, or on each of a list or dictionary of them, at any depth."""
    if isinstance(value, dict):
        return {k: each(v, f) for k, v in value.items()}
    return [each(v, f) for v in value] if isinstance(value, (list, tuple)) else f(value)


def flat(name, value):
    """Tensors by name: "x", or "x_0", "x_1", ... in Keras' order of a list or dictionary."""
    if isinstance(value, dict):
        value = [value[k] for k in sorted(value)]
    return {f"{name}_{i}": v for i, v in enumerate(value)} if isinstance(value, (list, tuple)) else {name: value}


def exactly(a):
    """As an array that safetensors of this file hold: halves as float32."""
    a = np.asarray(a)
    return a.astype(np.float32) if a.dtype.itemsize == 2 else a


def record(name, policy, make, x, y, optimizer, loss, metrics=(), steps=3, batch=16, more=None):
    """policy: a float type, or one of Keras' dtype policies in float32. x and y may be lists or dictionaries of arrays. more: loss_weights, jit_compile and weighted_metrics of compile; sample_weight and
    class_weight of training (the first also of evaluate)."""
    more = more or {}
    keras.backend.clear_session()
    floatx = "float64" if policy == "float64" else "float32"
    keras.backend.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)
    keras.utils.set_random_seed(7)
    rng = np.random.RandomState(1)
    made = make()
    model = keras.Sequential(made) if isinstance(made, list) else made
    make_metric = lambda m: m if m is None or isinstance(m, str) else m()
    model.compile(optimizer=optimizer(), loss=loss() if callable(loss) else loss, metrics=each(metrics, make_metric),
                  jit_compile=more.get("jit_compile", "auto"), loss_weights=more.get("loss_weights"), weighted_metrics=each(more.get("weighted_metrics"), make_metric))
    jitter(model, rng)
    fx = np.float32 if floatx == "float32" else np.float64
    cast = lambda a: a.astype(fx) if a is not None and a.dtype.kind == "f" else a
    x, y, weight = each(x, cast), each(y, cast), each(more.get("sample_weight"), cast)
    tensors = {**flat("x", x), **flat("y", y)}
    if weight is not None:
        tensors.update(flat("w", weight))
    if "class_weight" in more:
        tensors["class_weight"] = np.array(sorted(more["class_weight"].items()), dtype=np.float64)
    several = isinstance(y, (list, dict))
    tensors.update({f"before/{k}": v for k, v in weights(model).items()})
    text = model.to_json()
    losses, n = [], len(next(iter(tensors.values()))) // batch
    for t in range(steps):
        rows = lambda a: each(a, lambda v: v if v is None else v[t % n * batch:(t % n + 1) * batch])
        out = model.train_on_batch(rows(x), rows(y), sample_weight=rows(weight), class_weight=more.get("class_weight"))
        model.reset_metrics()
        model.optimizer.finalize_variable_values(model.trainable_weights)  # each step is a fit of its own (use_ema)
        losses.append(float(out[0] if isinstance(out, (list, tuple)) else out))
    tensors["losses"] = np.array(losses)
    tensors.update(flat("pred", each(model.predict_on_batch(each(x, lambda v: v[:batch])), np.asarray)))
    tensors.update({f"after/{k}": v for k, v in weights(model).items()})
    evaluated = model.evaluate(x, y, batch_size=batch, verbose=0, sample_weight=weight, return_dict=several or weight is not None)
    if isinstance(evaluated, dict):
        tensors.update({f"evaluated/{k}": np.array([v], dtype=np.float64) for k, v in evaluated.items()})
    else:
        tensors["evaluated"] = np.atleast_1d(np.array(evaluated, dtype=np.float64))
    tensors = {k: exactly(v) for k, v in tensors.items()}
    folder = os.path.join(HERE, f"{name}_{ENDS[policy]}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.json"), "w") as f:
        json.dump(json.loads(text), f, indent=1)
        f.write("\n")
    save_safetensors(os.path.join(folder, "case.safetensors"), tensors)
    print(folder, losses[:3])


R = np.random.RandomState(0)
X, IMAGES, SEQ = R.normal(size=(64, 12)), R.normal(size=(64, 7, 6, 3)), R.normal(size=(64, 5, 4))
IDS = R.randint(0, 9, size=(64, 5)).astype(np.int32)
Y1, Y3 = R.normal(size=(64, 1)), R.normal(size=(64, 3))
LABELS = R.randint(0, 4, size=(64,)).astype(np.int32)
ONEHOT = np.eye(4)[LABELS]
BINARY = (R.uniform(size=(64, 1)) > 0.5).astype(np.float64)
adam = lambda: keras.optimizers.Adam(0.01)
sgd = lambda: keras.optimizers.SGD(0.05)
slow = lambda: keras.optimizers.SGD(0.001)
SPARSE = "sparse_categorical_crossentropy"


def head(n=3, activation=None):
    return [L.Dense(n, activation=activation)]


def activation_case(name):
    return lambda: [L.Input((12,)), L.Dense(8, activation=name)] + head()


def conv_bn(x, filters, strides=1, name=None):
    x = L.Conv2D(filters, 3, strides=strides, padding="same", use_bias=False, name=name)(x)
    return L.BatchNormalization(momentum=0.9)(x)


def residual():
    """Two blocks as in ResNet: a plain one, then one that halves the picture and projects its shortcut."""
    inputs = L.Input((7, 6, 3))
    x = L.ReLU()(conv_bn(inputs, 4))
    y = conv_bn(L.ReLU()(conv_bn(x, 4)), 4)
    x = L.Activation("relu")(L.Add()([x, y]))
    y = conv_bn(L.Activation("relu")(conv_bn(L.ZeroPadding2D(((1, 0), (0, 1)))(x), 6, 2)), 6)
    shortcut = L.Conv2D(6, 1, strides=2, padding="same")(L.ZeroPadding2D(((1, 0), (0, 1)))(x))
    x = L.Activation("relu")(L.Add()([shortcut, y]))
    return keras.Model(inputs, L.Dense(4, activation="softmax")(L.GlobalAveragePooling2D()(x)))


def branches():
    inputs = L.Input((7, 6, 3))
    a = L.Conv2D(3, 1, activation="relu")(inputs)
    b = L.Conv2D(2, 3, padding="same", activation="tanh")(inputs)
    return keras.Model(inputs, L.Dense(3)(L.GlobalAveragePooling2D()(L.Concatenate()([a, b, inputs]))))


def shared():
    """One Dense on the input and on its own output; batch normalisation shared, too."""
    inputs = L.Input((12,))
    dense, norm = L.Dense(12, activation="tanh"), L.BatchNormalization(momentum=0.8)
    once = norm(dense(inputs))
    twice = norm(dense(once))
    return keras.Model(inputs, L.Dense(3)(L.Subtract()([twice, once])))


def nested():
    """A Sequential applied twice and a Functional with a Sequential in it."""
    inputs = L.Input((12,))
    tower = keras.Sequential([L.Input((12,)), L.Dense(6, activation="relu"), L.LayerNormalization()], name="tower")
    x = L.Input((6,), name="inner_input")
    deep = keras.Sequential([L.Input((6,)), L.Dense(5, activation="tanh"), L.Dense(6)], name="deep")
    inner = keras.Model(x, L.Multiply()([deep(x), L.Dense(6, activation="sigmoid")(x)]), name="inner")
    a, b = tower(inputs), tower(L.Dense(12)(inputs))
    return keras.Model(inputs, L.Dense(3)(L.Average()([inner(a), b, a])))


def extremes():
    """Maximum, Minimum, Permute, Identity, a merge that broadcasts, and a concatenation of an axis that is not the last."""
    inputs = L.Input((5, 4))
    x = L.Concatenate(axis=1)([L.Dense(4)(inputs), L.Identity()(inputs)])
    top, low = L.Maximum()([x, L.Dense(4)(x)]), L.Minimum()([x, L.Dense(4, activation="tanh")(x)])
    x = L.Multiply()([L.Permute((2, 1))(top), L.Dense(1)(L.Permute((2, 1))(low))])
    return keras.Model(inputs, L.Dense(3)(L.Flatten()(x)))


CASES = [
    ("mlp", lambda: [L.Input((12,)), L.Dense(16, activation="relu"), L.Dense(4, activation="softmax")], X, LABELS, adam, SPARSE, ["accuracy"], 20),
    ("cnn", lambda: [L.Input((7, 6, 3)), L.Conv2D(8, 3, padding="same", use_bias=False), L.BatchNormalization(), L.Activation("relu"), L.MaxPooling2D(),
                     L.Conv2D(6, 3, activation="relu"), L.Flatten(), L.Dense(4, activation="softmax")], IMAGES, LABELS, adam, SPARSE, ["accuracy"], 20),
    ("dense_linear", lambda: [L.Input((12,)), L.Dense(3, use_bias=False)], X, Y3, sgd, "mse", ["mae"], 3),
    ("dense_rank3", lambda: [L.Input((5, 4)), L.Dense(6, activation="tanh"), L.Flatten()] + head(), SEQ, Y3, sgd, "mse", [], 3),
    ("conv_stride", lambda: [L.Input((7, 6, 3)), L.Conv2D(5, (3, 2), strides=2, padding="same", activation="tanh"), L.Flatten()] + head(), IMAGES, Y3, sgd, "mse", [], 3),
    ("conv_dilated", lambda: [L.Input((7, 6, 3)), L.Conv2D(4, 2, dilation_rate=2, use_bias=False), L.GlobalAveragePooling2D()] + head(), IMAGES, Y3, sgd, "mse", [], 3),
    ("conv_groups", lambda: [L.Input((7, 6, 3)), L.Conv2D(6, 3, groups=3, activation="sigmoid"), L.GlobalMaxPooling2D()] + head(), IMAGES, Y3, sgd, "mse", [], 3),
    ("pool_same", lambda: [L.Input((7, 6, 3)), L.AveragePooling2D(3, strides=2, padding="same"), L.MaxPooling2D(2, padding="same"), L.Flatten()] + head(), IMAGES, Y3, sgd, "mse", [], 3),
    ("batchnorm_dense", lambda: [L.Input((12,)), L.Dense(6), L.BatchNormalization(momentum=0.9, scale=False)] + head(), X, Y3, sgd, "mse", [], 3),
    ("layernorm", lambda: [L.Input((5, 4)), L.LayerNormalization(), L.Flatten()] + head(), SEQ, Y3, sgd, "mse", [], 3),
    ("embedding", lambda: [L.Input((5,), dtype="int32"), L.Embedding(9, 4), L.Flatten()] + head(), IDS, Y3, sgd, "mse", [], 3),
    ("reshape_rescale", lambda: [L.Input((12,)), L.Rescaling(0.5, offset=-0.25), L.Reshape((3, 4)), L.Dense(2, activation="relu"), L.Flatten()] + head(), X, Y3, sgd, "mse", [], 3),
    ("logits", lambda: [L.Input((12,)), L.Dense(4)], X, LABELS, sgd, lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True), [], 3),
    ("categorical", lambda: [L.Input((12,)), L.Dense(4, activation="softmax")], X, ONEHOT, sgd, "categorical_crossentropy", ["accuracy"], 3),
    ("binary", lambda: [L.Input((12,)), L.Dense(5, activation="relu"), L.Dense(1, activation="sigmoid")], X, BINARY, adam, "binary_crossentropy", ["accuracy"], 3),
    ("mae", lambda: [L.Input((12,))] + head(1), X, Y1, sgd, "mae", ["mse"], 3),
    ("momentum", lambda: [L.Input((12,))] + head(), X, Y3, lambda: keras.optimizers.SGD(0.02, momentum=0.9), "mse", [], 5),
    ("nesterov", lambda: [L.Input((12,))] + head(), X, Y3, lambda: keras.optimizers.SGD(0.02, momentum=0.9, nesterov=True), "mse", [], 5),
    ("relu_layer", lambda: [L.Input((12,)), L.Dense(6), L.ReLU(negative_slope=0.1)] + head(), X, Y3, sgd, "mse", [], 3),
    ("softmax_inside", lambda: [L.Input((12,)), L.Dense(6), L.Softmax()] + head(), X, Y3, sgd, "mse", [], 3),
    ("huber", lambda: [L.Input((12,))] + head(), X, Y3, sgd, "huber", ["mae"], 3),  # Keras loses another delta in to_json
    ("log_cosh", lambda: [L.Input((12,))] + head(), X, Y3, sgd, "log_cosh", [], 3),
    ("msle", lambda: [L.Input((12,))] + head(3, "softplus"), X, np.abs(Y3), sgd, "mean_squared_logarithmic_error", [], 3),
    ("mape", lambda: [L.Input((12,))] + head(), X, Y3, slow, "mean_absolute_percentage_error", [], 3),
    # Probabilities that no softmax or sigmoid made last: clipped, and divided by their sum where Keras does so.
    ("probs_sparse", lambda: [L.Input((12,)), L.Dense(4, activation="softmax"), L.Rescaling(0.8, offset=0.1)], X, LABELS, sgd, SPARSE, ["accuracy"], 3),
    ("probs_categorical", lambda: [L.Input((12,)), L.Dense(4, activation="softmax"), L.Rescaling(0.8, offset=0.1)], X, ONEHOT, sgd, "categorical_crossentropy", ["accuracy"], 3),
    ("probs_binary", lambda: [L.Input((12,)), L.Dense(1, activation="sigmoid"), L.Rescaling(0.9, offset=0.04)], X, BINARY, sgd, "binary_crossentropy", ["accuracy"], 3),
    ("smoothing", lambda: [L.Input((12,)), L.Dense(4, activation="softmax")], X, ONEHOT, sgd, lambda: keras.losses.CategoricalCrossentropy(label_smoothing=0.1), ["accuracy"], 3),
    ("binary_smoothing", lambda: [L.Input((12,)), L.Dense(1, activation="sigmoid")], X, BINARY, sgd, lambda: keras.losses.BinaryCrossentropy(label_smoothing=0.2), [], 3),
    ("adam_betas", lambda: [L.Input((12,))] + head(), X, Y3, lambda: keras.optimizers.Adam(0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-4), "mse", [], 5),
    ("graph_residual", residual, IMAGES, LABELS, adam, SPARSE, ["accuracy"], 20),
    ("graph_branches", branches, IMAGES, Y3, sgd, "mse", [], 3),
    ("graph_shared", shared, X, Y3, sgd, "mse", [], 3),
    ("graph_nested", nested, X, Y3, sgd, "mse", ["mae"], 3),
    ("graph_extremes", extremes, SEQ, Y3, sgd, "mse", [], 3),
    ("graph_in_sequence", lambda: [L.Input((12,)), keras.Sequential([L.Input((12,)), L.Dense(6, activation="relu")], name="inside")] + head(), X, Y3, sgd, "mse", [], 3),
    ("frozen_batchnorm", lambda: [L.Input((12,)), L.Dense(6), L.BatchNormalization(trainable=False)] + head(), X, Y3, sgd, "mse", [], 3),
] + [(f"act_{a}", activation_case(a), X, Y3, slow, "mse", [], 3) for a in
     ("elu", "gelu", "silu", "softplus", "leaky_relu", "exponential", "log_softmax", "selu", "mish", "softsign")]

O, small = keras.optimizers, lambda: [L.Input((12,)), L.Dense(6, activation="tanh")] + head()
CASES += [(f"opt_{name}", small, X, Y3, optimizer, "mse", [], 5) for name, optimizer in {
    "rmsprop": lambda: O.RMSprop(0.01),
    "rmsprop_momentum": lambda: O.RMSprop(0.01, rho=0.8, momentum=0.7, epsilon=1e-3),
    "rmsprop_centered": lambda: O.RMSprop(0.01, centered=True),
    "rmsprop_both": lambda: O.RMSprop(0.01, momentum=0.9, centered=True, weight_decay=0.1),
    "adagrad": lambda: O.Adagrad(0.05, initial_accumulator_value=0.2, weight_decay=0.05),
    "adadelta": lambda: O.Adadelta(0.5, rho=0.9),
    "adamax": lambda: O.Adamax(0.02, beta_1=0.8),
    "nadam": lambda: O.Nadam(0.02, beta_1=0.85),
    "lion": lambda: O.Lion(0.003, weight_decay=0.2),
    "ftrl": lambda: O.Ftrl(0.1),
    "ftrl_regularized": lambda: O.Ftrl(0.1, learning_rate_power=-0.7, initial_accumulator_value=0.3, l1_regularization_strength=0.02,
                                       l2_regularization_strength=0.03, l2_shrinkage_regularization_strength=0.04, beta=0.05),
    "adamw": lambda: O.AdamW(0.01),
    "amsgrad": lambda: O.Adam(0.02, amsgrad=True, beta_2=0.6),
    "sgd_decay": lambda: O.SGD(0.05, weight_decay=0.3),
    "clipvalue": lambda: O.SGD(0.05, momentum=0.5, clipvalue=0.1),
    "clipnorm": lambda: O.SGD(0.05, clipnorm=0.3),
    "global_clipnorm": lambda: O.Adam(0.05, global_clipnorm=0.3),
    "global_clipnorm_loose": lambda: O.SGD(0.05, global_clipnorm=1e3),
}.items()]

SIGNS, COUNTS, SHARES = 2 * BINARY - 1, R.poisson(2.0, size=(64, 3)).astype(np.float64), R.dirichlet(np.ones(4), size=64)
MANY = (R.uniform(size=(64, 3)) > 0.4).astype(np.float64)
F = keras.losses
one = lambda n, activation=None: lambda: [L.Input((12,))] + head(n, activation)
CASES += [
    ("loss_hinge", one(1, "tanh"), X, SIGNS, sgd, "hinge", ["squared_hinge"], 3),
    ("loss_hinge_binary", one(1, "tanh"), X, BINARY, sgd, "hinge", [], 3),
    ("loss_squared_hinge", one(1, "tanh"), X, SIGNS, sgd, "squared_hinge", ["hinge"], 3),
    ("loss_categorical_hinge", one(4), X, ONEHOT, sgd, "categorical_hinge", [], 3),
    ("loss_poisson", one(3, "softplus"), X, COUNTS, sgd, "poisson", ["poisson"], 3),
    ("loss_kl_divergence", one(4, "softmax"), X, SHARES, sgd, "kl_divergence", ["kl_divergence"], 3),
    ("loss_cosine_similarity", one(3, "softplus"), X, np.abs(Y3), sgd, "cosine_similarity", ["cosine_similarity"], 3),
    ("loss_binary_focal", one(1, "sigmoid"), X, BINARY, sgd, "binary_focal_crossentropy", [], 3),
    ("loss_binary_focal_settings", one(1), X, BINARY, sgd,
     lambda: F.BinaryFocalCrossentropy(apply_class_balancing=True, alpha=0.3, gamma=1.5, from_logits=True, label_smoothing=0.1), [], 3),
    ("loss_categorical_focal", one(4, "softmax"), X, ONEHOT, sgd, "categorical_focal_crossentropy", [], 3),
    ("loss_categorical_focal_settings", one(4), X, ONEHOT, sgd,
     lambda: F.CategoricalFocalCrossentropy(alpha=0.4, gamma=1.5, from_logits=True, label_smoothing=0.1), [], 3),
    ("metric_regression", one(3), X, Y3, sgd, "mse", ["mse", "mae", "mape", "msle", "cosine_similarity", keras.metrics.RootMeanSquaredError], 3),
    ("metric_binary", one(3, "sigmoid"), X, MANY, sgd, "binary_crossentropy",
     ["binary_accuracy", "binary_crossentropy", keras.metrics.Precision, keras.metrics.Recall, "hinge"], 3),
    ("metric_categorical", one(4, "softmax"), X, ONEHOT, sgd, "categorical_crossentropy",
     ["categorical_accuracy", "categorical_crossentropy", "categorical_hinge", "kl_divergence"], 3),
    ("metric_sparse", one(4, "softmax"), X, LABELS, sgd, SPARSE,
     ["sparse_categorical_accuracy", "sparse_categorical_crossentropy"], 3),
    ("metric_top_k", one(4, "softmax"), X, ONEHOT, sgd, "categorical_crossentropy", [lambda: keras.metrics.TopKCategoricalAccuracy(k=2)], 3),
    ("metric_sparse_top_k", one(4, "softmax"), X, LABELS, sgd, SPARSE, [lambda: keras.metrics.SparseTopKCategoricalAccuracy(k=3)], 3),
]
F32_ONLY = ["metric_top_k", "metric_sparse_top_k"]  # TensorFlow's InTopK has no f64
F64_ONLY = []
POLICIES = {}


def more_cases():
    """cases_<topic>.py beside this file: each has a CASES list of its own, and F32_ONLY, F64_ONLY or POLICIES where it needs them."""
    sys.modules["record"] = sys.modules["__main__"]
    for path in sorted(glob.glob(os.path.join(HERE, "cases_*.py"))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        CASES.extend(module.CASES)
        F32_ONLY.extend(getattr(module, "F32_ONLY", []))
        F64_ONLY.extend(getattr(module, "F64_ONLY", []))
        POLICIES.update(getattr(module, "POLICIES", {}))


if __name__ == "__main__":
    more_cases()
    wanted = sys.argv[1:]
    for case in CASES:
        both = [p for p in ("float32", "float64") if case[0] not in (F32_ONLY if p == "float64" else F64_ONLY)]
        for policy in both + POLICIES.get(case[0], []):
            if not wanted or case[0] in wanted:
                record(case[0], policy, *case[1:])
    if not wanted:
        with open(os.path.join(HERE, "versions.json"), "w") as f:
            json.dump({"tensorflow": tf.__version__, "keras": keras.__version__, "numpy": np.__version__, "python": sys.version.split()[0]}, f)
            f.write("\n")
