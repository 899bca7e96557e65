"""Training beside layers: metrics that count, settings of losses, optimizers, regularisers and constraints, whole models."""
import keras
import numpy as np
from record import ONEHOT, LABELS, BINARY, MANY, SPARSE, X, Y3, IMAGES, L, one, sgd

M = keras.metrics
P = np.random.RandomState(5)
MAPS, SMALL = P.randint(0, 3, size=(32, 4, 3)).astype(np.int32), IMAGES[:32, :4, :3]


def per_pixel(n, activation):
    return lambda: [L.Input((4, 3, 3)), L.Conv2D(n, 3, padding="same", activation=activation)]


CASES = [
    ("metric_auc", one(3, "sigmoid"), X, MANY, sgd, "binary_crossentropy",
     [M.AUC, lambda: M.AUC(curve="PR", name="pr"), lambda: M.AUC(num_thresholds=20, summation_method="minoring", name="low"),
      lambda: M.AUC(num_thresholds=20, curve="PR", summation_method="majoring", name="high"), lambda: M.AUC(multi_label=True, name="many"),
      lambda: M.AUC(curve="PR", multi_label=True, name="many_pr"), lambda: M.AUC(curve="PRGAIN", num_thresholds=50, name="gain")], 3),
    ("metric_auc_logits", one(1), X, BINARY, sgd, lambda: keras.losses.BinaryCrossentropy(from_logits=True), [lambda: M.AUC(from_logits=True)], 3),
    ("metric_counts", one(3, "sigmoid"), X, MANY, sgd, "binary_crossentropy",
     [M.TruePositives, M.FalsePositives, M.TrueNegatives, lambda: M.FalseNegatives(thresholds=0.3), lambda: M.Precision(thresholds=0.4, class_id=1),
      lambda: M.Recall(class_id=2, thresholds=[0.6])], 3),
    ("metric_thresholds", one(3, "sigmoid"), X, MANY, sgd, "binary_crossentropy",
     [lambda: M.SensitivityAtSpecificity(0.4), lambda: M.SpecificityAtSensitivity(0.6), lambda: M.PrecisionAtRecall(0.5, num_thresholds=30),
      lambda: M.RecallAtPrecision(0.5, class_id=0)], 3),
    ("metric_f_score", one(4, "softmax"), X, ONEHOT, sgd, "categorical_crossentropy",
     [lambda: M.F1Score(average="macro", name="macro"), lambda: M.F1Score(average="micro", name="micro"),
      lambda: M.F1Score(average="weighted", name="weighted", threshold=0.3), lambda: M.FBetaScore(average="macro", beta=0.5)], 3),
    ("metric_r2", one(3), X, Y3, sgd, "mse",
     [M.R2Score, lambda: M.R2Score(class_aggregation="variance_weighted_average", name="by_variance"), M.LogCoshError,
      M.MeanAbsoluteError, M.MeanSquaredError], 3),
    ("metric_iou", per_pixel(3, "softmax"), SMALL, MAPS, sgd, SPARSE,
     [lambda: M.MeanIoU(num_classes=3, sparse_y_pred=False), lambda: M.IoU(num_classes=3, target_class_ids=[0, 2], sparse_y_pred=False, ignore_class=1)], 3),
    ("metric_iou_one_hot", per_pixel(3, "softmax"), SMALL, np.eye(3)[MAPS], sgd, "categorical_crossentropy",
     [lambda: M.OneHotMeanIoU(num_classes=3), lambda: M.OneHotIoU(num_classes=3, target_class_ids=[1])], 3),
    ("metric_iou_binary", per_pixel(1, "sigmoid"), SMALL, (MAPS[..., None] > 0).astype(np.float64), sgd, "binary_crossentropy",
     [lambda: M.BinaryIoU(target_class_ids=[1], threshold=0.6)], 3),
]
