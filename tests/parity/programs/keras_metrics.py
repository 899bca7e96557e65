"""The metrics of Keras: update_state, result, reset, weights."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check

M = keras.metrics
y = np.array([0, 1, 1, 0, 1, 0], "float32")
p = np.array([0.2, 0.9, 0.4, 0.6, 0.8, 0.1], "float32")
for m in (M.Accuracy(), M.BinaryAccuracy(), M.BinaryAccuracy(threshold=0.3), M.Precision(), M.Recall(), M.AUC(), M.TruePositives(),
          M.FalseNegatives(), M.MeanSquaredError(), M.RootMeanSquaredError(), M.MeanAbsoluteError(), M.BinaryCrossentropy(),
          M.Hinge(), M.LogCoshError(), M.PrecisionAtRecall(0.5), M.SensitivityAtSpecificity(0.5)):
    m.update_state(y, np.round(p) if isinstance(m, M.Accuracy) else p)
    m.update_state(y[:3], p[:3])
    check(m.name, float(m.result()), tol=1e-4)
    m.reset_state()
    check("reset " + m.name, float(m.result()))
probs = np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], "float32")
m = M.SparseCategoricalAccuracy()
check("called", m([1, 1, 2], probs))
check("top k", M.SparseTopKCategoricalAccuracy(k=2)([1, 1, 0], probs))
check("categorical", M.CategoricalAccuracy()(np.eye(3)[[1, 0, 0]], probs))
mean = M.Mean(name="loss")
for v in (1.0, 2.0, 6.0):
    mean(v)
check("mean", mean.result())
mean.reset_state()
mean.update_state([1.0, 5.0], sample_weight=[3.0, 1.0])
check("weighted mean", mean.result())
check("result as numpy", mean.result().numpy())
s = M.Sum()
s.update_state([1.0, 2.0, 3.0])
check("sum", s.result())
iou = M.MeanIoU(num_classes=2)
iou.update_state([0, 0, 1, 1], [0, 1, 0, 1])
check("iou", iou.result())
f1 = M.F1Score(average="macro")
f1.update_state(np.eye(3)[[1, 0, 2]], probs)
check("f1", f1.result())
check("by name", M.get("mse") is not None)
check("r2", M.R2Score()(y[:, None], p[:, None]), tol=1e-4)

# A name as the first argument, or behind the number of classes; names of older scripts for reductions.
named = [tf.keras.metrics.SparseCategoricalAccuracy("a"), tf.keras.metrics.MeanSquaredError("b", tf.float32), tf.keras.metrics.Mean("c"),
         tf.keras.metrics.BinaryAccuracy("d", None, 0.7), tf.keras.metrics.TopKCategoricalAccuracy(2, "e"), tf.keras.metrics.MeanIoU(3, "f"),
         tf.keras.metrics.CategoricalCrossentropy("g", None, True)]
check("named", [m.name for m in named])
check("threshold", float(named[3](tf.constant([[1.0], [0.0]]), tf.constant([[0.6], [0.2]]))))
check("reductions", [tf.keras.losses.Reduction.SUM, float(tf.keras.losses.MeanSquaredError(
    reduction=tf.keras.losses.Reduction.SUM)(tf.constant([[0.0], [1.0]]), tf.constant([[2.0], [3.0]])))])

# Several thresholds, several classes, along another axis.
yes, said = np.array([[0.0], [1.0], [1.0]], "float32"), np.array([[0.2], [0.7], [0.4]], "float32")
for made in (M.Recall, M.Precision, M.TruePositives, M.FalsePositives, M.TrueNegatives, M.FalseNegatives):
    many = made(thresholds=[0.1, 0.3, 0.5])
    many.update_state(yes, said)
    check(made.__name__ + " at several thresholds", np.array(many.result()))
    many.reset_state()
    check(made.__name__ + " after a reset", np.array(many.result()))
check("one threshold", M.Precision(thresholds=0.6)(yes, said))
check("two classes", M.IoU(3, [0, 2])([0, 1, 2, 2], [0, 2, 2, 1]))
check("two of two", M.BinaryIoU([0, 1], 0.5)(yes, said))
check("along the first axis", M.CosineSimilarity(axis=0)(yes, said))
