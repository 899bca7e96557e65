"""IoU of masks that keep their channel, as the segmentation tutorial has them."""
import numpy as np
import tensorflow as tf
from parity import check
from tensorflow import keras

rng = np.random.RandomState(0)
mask = rng.randint(0, 2, (3, 4, 4, 1)).astype("uint8")
scores = rng.rand(3, 4, 4, 2).astype("float32")


def value(metric, truth, found):
    metric.update_state(truth, found)
    return float(metric.result())


check("of scores", value(keras.metrics.MeanIoU(2, sparse_y_pred=False), mask, scores), 1e-6)
check("without a channel", value(keras.metrics.MeanIoU(2, sparse_y_pred=False), mask[..., 0], scores), 1e-6)
check("of classes", value(keras.metrics.MeanIoU(2), mask, scores.argmax(-1)), 1e-6)
check("both with a channel", value(keras.metrics.MeanIoU(2), mask, scores.argmax(-1)[..., None]), 1e-6)
check("one class", value(keras.metrics.IoU(2, [1], sparse_y_pred=False), mask, scores), 1e-6)
model = keras.Sequential([keras.Input((4, 4, 2)), keras.layers.Conv2D(2, 1, kernel_initializer="ones")])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              metrics=[keras.metrics.MeanIoU(2, sparse_y_pred=False, name="iou")])
check("in fit", sorted(model.fit(scores, mask, verbose=0).history))
