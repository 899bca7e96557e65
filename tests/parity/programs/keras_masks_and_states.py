"""Masks that layers of one's own make, take and pass on; states as tuples; both directions; cells that remember."""
import numpy as np
import tensorflow as tf
import keras
from keras import layers
from parity import check, raises

ids = np.array([[1, 2, 0, 0], [3, 1, 2, 0]])


class Lookup(layers.Layer):
    def build(self, shape):
        self.table = self.add_weight(name="table", shape=(4, 2), initializer="ones")

    def call(self, x):
        return tf.gather(self.table, x)

    def compute_mask(self, x, mask=None):
        return keras.ops.not_equal(x, 0)


class Passes(layers.Layer):
    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, x):
        return x * 2.0


class Counts(layers.Layer):
    def call(self, x, mask=None):
        return tf.reduce_sum(tf.cast(mask, "float32"), 1, keepdims=True) if mask is not None else x[:, 0]


y = Lookup()(ids)
check("made", y._keras_mask)
check("passed", Passes()(y)._keras_mask)
i = keras.Input((None,), dtype="int32")
check("in a model", keras.Model(i, Counts()(Passes()(Lookup()(i))))(ids))
x = np.linspace(-1, 1, 24).reshape(2, 4, 3).astype("float32")
ones = {"kernel_initializer": "ones", "recurrent_initializer": "ones"}
made = layers.LSTM(2, return_state=True, return_sequences=True, **ones)(x)
check("states", [type(made).__name__, *made])
made = layers.Bidirectional(layers.GRU(2, return_sequences=True, **ones), merge_mode=None)(x)
check("two ways", [type(made).__name__, *made])
back = layers.LSTM(2, go_backwards=True, activation="relu", return_sequences=True, **ones)
check("a way back", layers.Bidirectional(layers.LSTM(2, return_sequences=True, **ones), backward_layer=back)(x))
raises(ValueError, lambda: layers.LSTM(2, stateful=True)(keras.Input((4, 3))))
raises(ValueError, lambda: layers.Bidirectional(layers.LSTM(2), merge_mode="max"))


@keras.saving.register_keras_serializable()
class Adds(layers.Layer):
    state_size = 3

    def call(self, x, states):
        h = states[0] + x
        return h, [h]


keeps = layers.RNN(Adds(), stateful=True)
check("sums", [keeps(x), keeps(x)])
keeps.reset_state()
check("anew", keeps(x))
check("both ways of a cell", layers.Bidirectional(layers.RNN(Adds(), return_sequences=True), merge_mode="sum")(x))
# A mean loss is over what a mask leaves.
entry = keras.Input((4,), dtype="int32")
shown = layers.Embedding(5, 2, mask_zero=True, embeddings_initializer="ones")(entry)
masked = keras.Model(entry, layers.TimeDistributed(layers.Dense(1, kernel_initializer="ones"))(shown))
for reduction in ("sum_over_batch_size", "sum", "mean_with_sample_weight"):
    masked.compile("sgd", keras.losses.MeanSquaredError(reduction=reduction), metrics=["mae"], weighted_metrics=["mse"])
    check("masked loss", masked.evaluate(ids, np.zeros((2, 4, 1)), verbose=0), 1e-5)
    check("weights, too", masked.evaluate(ids, np.zeros((2, 4, 1)), sample_weight=np.array([[1.0], [3.0]]) * np.ones((2, 4)), verbose=0), 1e-5)
check("called", float(keras.losses.MeanSquaredError()(np.zeros((2, 4, 1)), masked(ids))), 1e-5)
check("of a class of its own", float(keras.losses.Huber()(np.zeros((2, 4, 1)), masked(ids))), 1e-5)
