"""Training beside layers: metrics that count, settings of losses, optimizers, regularisers and constraints, whole models."""
import keras
import numpy as np
from record import ONEHOT, LABELS, BINARY, MANY, SPARSE, X, Y3, IMAGES, L, one, sgd

M = keras.metrics
P = np.random.RandomState(5)
MAPS, SMALL = P.randint(0, 3, size=(32, 4, 3)).astype(np.int32), IMAGES[:32, :4, :3]


def per_pixel(n, activation):
    return lambda: [L.Input((4, 3, 3)), L.Conv2D(n, 3, padding="same", activation=activation)]


G, C = keras.regularizers, keras.constraints


def dense(**rules):
    return lambda: [L.Input((12,)), L.Dense(6, activation="tanh", **rules), L.Dense(3)]


def conv(**rules):
    return lambda: [L.Input((4, 3, 3)), L.Conv2D(4, 2, activation="relu", **rules), L.Flatten(), L.Dense(3)]


CASES = [
    ("metric_auc", one(3, "sigmoid"), X, MANY, sgd, "binary_crossentropy",
     [M.AUC, lambda: M.AUC(curve="PR", name="pr"), lambda: M.AUC(num_thresholds=20, summation_method="minoring", name="low"),
      lambda: M.AUC(num_thresholds=20, curve="PR", summation_method="majoring", name="high"), lambda: M.AUC(multi_label=True, name="many"),
      lambda: M.AUC(curve="PR", multi_label=True, name="many_pr"), lambda: M.AUC(curve="PRGAIN", num_thresholds=50, name="gain")], 3),
    ("metric_auc_logits", one(1), X, BINARY, sgd, lambda: keras.losses.BinaryCrossentropy(from_logits=True), [lambda: M.AUC(from_logits=True)], 3),
    ("metric_counts", one(3, "sigmoid"), X, MANY, sgd, "binary_crossentropy",
     [M.TruePositives, M.FalsePositives, M.TrueNegatives, lambda: M.FalseNegatives(thresholds=0.3), lambda: M.Precision(thresholds=0.4, class_id=1),
      lambda: M.Recall(class_id=2, thresholds=[0.6])], 3),
    ("metric_precision_top_k", one(4, "softmax"), X, ONEHOT, sgd, "categorical_crossentropy",
     [lambda: M.Precision(top_k=2), lambda: M.Recall(top_k=2, class_id=1), lambda: M.Precision(top_k=3, thresholds=0.2, name="above")], 3),
    ("metric_thresholds", one(3, "sigmoid"), X, MANY, sgd, "binary_crossentropy",
     [lambda: M.SensitivityAtSpecificity(0.4), lambda: M.SpecificityAtSensitivity(0.6), lambda: M.PrecisionAtRecall(0.5, num_thresholds=30),
      lambda: M.RecallAtPrecision(0.5, class_id=0)], 3),
    ("metric_f_score", one(4, "softmax"), X, ONEHOT, sgd, "categorical_crossentropy",
     [lambda: M.F1Score(average="macro", name="macro"), lambda: M.F1Score(average="micro", name="micro"),
      lambda: M.F1Score(average="weighted", name="weighted", threshold=0.3), lambda: M.FBetaScore(average="macro", beta=0.5)], 3),
    ("metric_r2", one(3), X, Y3, sgd, "mse",
     [M.R2Score, lambda: M.R2Score(class_aggregation="variance_weighted_average", name="by_variance"), M.LogCoshError,
      M.MeanAbsoluteError, M.MeanSquaredError], 3),
    ("metric_correlation", one(5), X, np.random.RandomState(6).normal(size=(64, 5)), sgd, "mse", [M.PearsonCorrelation, M.ConcordanceCorrelation], 3),
    ("metric_iou", per_pixel(3, "softmax"), SMALL, MAPS, sgd, SPARSE,
     [lambda: M.MeanIoU(num_classes=3, sparse_y_pred=False), lambda: M.IoU(num_classes=3, target_class_ids=[0, 2], sparse_y_pred=False, ignore_class=1)], 3),
    ("metric_iou_one_hot", per_pixel(3, "softmax"), SMALL, np.eye(3)[MAPS], sgd, "categorical_crossentropy",
     [lambda: M.OneHotMeanIoU(num_classes=3), lambda: M.OneHotIoU(num_classes=3, target_class_ids=[1])], 3),
    ("metric_iou_binary", per_pixel(1, "sigmoid"), SMALL, (MAPS[..., None] > 0).astype(np.float64), sgd, "binary_crossentropy",
     [lambda: M.BinaryIoU(target_class_ids=[1], threshold=0.6)], 3),
]
CASES += [(f"rule_{name}", make, X if name[:5] == "dense" else SMALL, Y3 if name[:5] == "dense" else Y3[:32], sgd, "mse", [], 3) for name, make in {
    "dense_l2": dense(kernel_regularizer="l2", bias_regularizer=G.L1(0.03)),
    "dense_l1_l2": dense(kernel_regularizer=G.L1L2(l1=0.02, l2=0.05), activity_regularizer=G.L2(0.1)),
    "dense_orthogonal": dense(kernel_regularizer=G.OrthogonalRegularizer(factor=0.2, mode="columns")),
    "dense_orthogonal_rows": dense(kernel_regularizer=G.OrthogonalRegularizer(factor=0.2)),
    "dense_frozen": dense(kernel_regularizer=G.L2(0.3), trainable=False),
    "dense_max_norm": dense(kernel_constraint=C.MaxNorm(0.9), bias_constraint="non_neg"),
    "dense_unit_norm": dense(kernel_constraint=C.UnitNorm(axis=1), kernel_regularizer="l1"),
    "dense_min_max_norm": dense(kernel_constraint=C.MinMaxNorm(min_value=0.5, max_value=1.1, rate=0.7)),
    "conv": conv(kernel_regularizer=G.L2(0.1), kernel_constraint=C.MaxNorm(0.6, axis=[0, 1, 2]), bias_constraint="non_neg", activity_regularizer="l1"),
    "separable": lambda: [L.Input((4, 3, 3)), L.SeparableConv2D(4, 2, depthwise_regularizer=G.L2(0.2), pointwise_constraint=C.UnitNorm(axis=[0, 1, 2])),
                          L.DepthwiseConv2D(2, depthwise_regularizer=G.L1(0.1)), L.BatchNormalization(gamma_regularizer="l2", beta_constraint="non_neg"),
                          L.Flatten(), L.Dense(3)],
}.items()]



def random_layers(rate):
    """All that act in training only; the keys of one are read, whatever the rate."""
    inputs = L.Input((4, 3, 3))
    x = L.GaussianNoise(rate)(L.SpatialDropout2D(rate)(L.Conv2D(4, 2)(inputs)))
    x = L.SpatialDropout1D(rate)(L.Reshape((6, 4))(L.Dropout(rate, noise_shape=(None, 1, 1, 4), seed=3)(x)))
    x = L.SpatialDropout3D(rate)(L.Reshape((3, 2, 2, 2))(x))
    return keras.Model(inputs, L.Dense(3)(L.AlphaDropout(rate)(L.GaussianDropout(rate)(L.Flatten()(x)))))


CASES += [("layer_random_off", lambda: random_layers(0.0), SMALL, Y3[:32], sgd, "mse", [], 3),
          ("layer_random_idle", lambda: random_layers(0.4), SMALL, Y3[:32], sgd, "mse", [], 0)]
CASES += [("layer_activity_regularization", lambda: [L.Input((12,)), L.Dense(6), L.ActivityRegularization(l1=0.02, l2=0.1), L.Dense(3)], X, Y3, sgd, "mse", [], 3)]

def block(x, filters, strides):
    """As in ResNet-20 for CIFAR: two convolutions with L2, and a shortcut that is projected where shapes change."""
    def convolve(x, size, strides):
        return L.Conv2D(filters, size, strides=strides, padding="same", kernel_initializer="he_normal", kernel_regularizer=G.L2(1e-4))(x)

    y = L.Activation("relu")(L.BatchNormalization()(convolve(x, 3, strides)))
    y = L.BatchNormalization()(convolve(y, 3, 1))
    x = x if x.shape[-1] == filters else convolve(x, 1, strides)
    return L.Activation("relu")(L.add([x, y]))


def resnet20():
    inputs = L.Input((8, 8, 3))
    x = L.Activation("relu")(L.BatchNormalization()(L.Conv2D(2, 3, padding="same", kernel_initializer="he_normal", kernel_regularizer=G.L2(1e-4))(inputs)))
    for stage, filters in enumerate((2, 4, 8)):
        for i in range(3):
            x = block(x, filters, 2 if stage and not i else 1)
    x = L.Flatten()(L.AveragePooling2D(2)(x))
    return keras.Model(inputs, L.Dense(4, activation="softmax", kernel_initializer="he_normal")(x))


def unet():
    """Down twice, up twice (once by a transposed convolution, once by repeating), with skips."""
    twice = lambda x, n: L.Conv2D(n, 3, padding="same", activation="relu")(L.Conv2D(n, 3, padding="same", activation="relu")(x))
    inputs = L.Input((8, 8, 3))
    first = twice(inputs, 3)
    second = twice(L.MaxPooling2D()(first), 4)
    x = L.Dropout(0.0)(twice(L.MaxPooling2D()(second), 6))
    x = twice(L.concatenate([L.Conv2DTranspose(4, 2, strides=2, padding="same")(x), second]), 4)
    x = twice(L.Concatenate()([L.Conv2D(3, 2, padding="same", activation="relu")(L.UpSampling2D()(x)), first]), 3)
    return keras.Model(inputs, L.Conv2D(3, 1, activation="softmax")(x))


PICTURES = P.normal(size=(32, 8, 8, 3))
REGIONS = P.randint(0, 3, size=(32, 8, 8)).astype(np.int32)
CASES += [
    ("model_resnet20", resnet20, PICTURES, LABELS[:32], lambda: keras.optimizers.SGD(0.002, momentum=0.9), SPARSE, ["accuracy"], 20),
    ("model_unet", unet, PICTURES, REGIONS, lambda: keras.optimizers.Adam(0.003), SPARSE, ["accuracy", lambda: M.MeanIoU(num_classes=3, sparse_y_pred=False)], 20),
]
F, BITS = keras.losses, (MAPS[..., None] > 0).astype(np.float64)
HOLES, SPECKLED = LABELS.copy(), MAPS.copy()
HOLES[::3], SPECKLED[:, 1, ::2] = -1, 255
CASES += [
    ("loss_sum", one(3), X, Y3, lambda: keras.optimizers.SGD(0.002), lambda: F.MeanSquaredError(reduction="sum"), [], 3),
    ("loss_sum_sparse", per_pixel(3, "softmax"), SMALL, MAPS, lambda: keras.optimizers.SGD(0.002), lambda: F.SparseCategoricalCrossentropy(reduction="sum"), [], 3),
    ("loss_ignore_class", one(4, "softmax"), X, HOLES, sgd, lambda: F.SparseCategoricalCrossentropy(ignore_class=-1), [], 3),
    ("loss_ignore_class_logits", per_pixel(3, None), SMALL, SPECKLED, sgd, lambda: F.SparseCategoricalCrossentropy(from_logits=True, ignore_class=255), [], 3),
    ("loss_binary_logits", one(3), X, MANY, sgd, lambda: F.BinaryCrossentropy(from_logits=True), [lambda: M.BinaryAccuracy(threshold=0.2)], 3),
    ("loss_categorical_logits", one(4), X, ONEHOT, sgd, lambda: F.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2), ["accuracy"], 3),
    ("loss_generalized", one(4, "softmax"), X, LABELS, sgd, lambda: F.CategoricalGeneralizedCrossEntropy(q=0.7), [], 3),
    ("loss_dice", per_pixel(1, "sigmoid"), SMALL, BITS, sgd, "dice", [], 3),
    ("loss_dice_axis", per_pixel(1, "sigmoid"), SMALL, BITS, sgd, lambda: F.Dice(axis=(1, 2, 3)), [], 3),
    ("loss_tversky", per_pixel(1, "sigmoid"), SMALL, BITS, sgd, lambda: F.Tversky(alpha=0.3, beta=0.6, axis=(1, 2)), [], 3),
]
S, O = keras.optimizers.schedules, keras.optimizers
small = lambda: [L.Input((12,)), L.Dense(6, activation="tanh"), L.Dense(3)]
CASES += [(f"opt_{name}", small, X, Y3, optimizer, "mse", [], 5) for name, optimizer in {
    "adafactor": lambda: O.Adafactor(0.05),
    "adafactor_settings": lambda: O.Adafactor(0.9, beta_2_decay=-0.6, epsilon_2=0.5, clip_threshold=0.7, weight_decay=0.05),
    "lamb": lambda: O.Lamb(0.02, beta_1=0.8, weight_decay=0.1),
    "ema": lambda: O.SGD(0.05, use_ema=True, ema_momentum=0.6),
    "ema_adam": lambda: O.Adam(0.02, use_ema=True, ema_overwrite_frequency=2),
    "accumulation": lambda: O.Adam(0.02, gradient_accumulation_steps=2, weight_decay=0.1),
    "accumulation_clipped": lambda: O.SGD(0.1, momentum=0.5, gradient_accumulation_steps=3, global_clipnorm=0.3),
    "accumulation_ema": lambda: O.SGD(0.1, gradient_accumulation_steps=2, use_ema=True, ema_momentum=0.5),
}.items()]
CASES += [("opt_adafactor_conv", conv(), SMALL, Y3[:32], lambda: O.Adafactor(0.05), "mse", [], 5)]
schedules = {
    "exponential": lambda: S.ExponentialDecay(0.1, 2, 0.5),
    "exponential_staircase": lambda: S.ExponentialDecay(0.1, 2, 0.5, staircase=True),
    "inverse_time": lambda: S.InverseTimeDecay(0.1, 2, 0.7),
    "piecewise": lambda: S.PiecewiseConstantDecay([1, 3], [0.1, 0.05, 0.02]),
    "polynomial": lambda: S.PolynomialDecay(0.1, 3, 0.01, power=2.0),
    "polynomial_cycle": lambda: S.PolynomialDecay(0.1, 2, 0.01, cycle=True),
    "cosine": lambda: S.CosineDecay(0.1, 4, alpha=0.1),
    "cosine_warmup": lambda: S.CosineDecay(0.02, 3, warmup_target=0.1, warmup_steps=2),
    "cosine_restarts": lambda: S.CosineDecayRestarts(0.1, 2, t_mul=1.5, m_mul=0.8, alpha=0.1),
}
CASES += [(f"schedule_{name}", small, X, Y3, lambda make=make: O.Adam(make(), weight_decay=0.1), "mse", [], 6) for name, make in schedules.items()]

F32_ONLY = ["rule_dense_orthogonal", "rule_dense_orthogonal_rows"]  # Keras multiplies an f32 factor with f64 products and fails
F32_ONLY += [f"schedule_{name}" for name in schedules]  # computed in f32, with f32 functions of TensorFlow's own
