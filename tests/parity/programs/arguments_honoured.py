"""Arguments and operands that change a result although it looks right without them: empty axes, norms of matrices, None as an axis, numbers
that a dtype does not hold, weights of one more axis, variables without decay."""
import numpy as np
import keras
import tensorflow as tf
from keras import ops
from parity import check, raises

m = np.array([[1, -2, 3], [3, 4, -5]], "float32")
small, bytes_ = np.array([[100, -128, 127], [3, 0, 5]], "int8"), np.array([[200, 255, 3], [3, 0, 5]], "uint8")
refused = (tf.errors.InvalidArgumentError, TypeError, ValueError)

for name in "reduce_sum reduce_max reduce_logsumexp math.reduce_std math.reduce_variance math.reduce_euclidean_norm math.l2_normalize".split():
    function = tf
    for word in name.split("."):
        function = getattr(function, word)
    check(f"{name} over no axis", function(m, axis=[]))
check("nansum over no axis", ops.nansum(m, axis=()))
check("length of a scalar", tf.math.reduce_euclidean_norm(tf.constant(-2.0)))
check("any and all of numbers", [tf.reduce_any(m, 0), tf.reduce_all(m), tf.reduce_any(bytes_, 1)])
check("means of small numbers", [tf.reduce_mean(small), tf.reduce_mean(small, 0), tf.reduce_mean(bytes_), tf.reduce_mean(bytes_, 1)])
check("numbers beside bytes", [tf.constant(bytes_) + -2, tf.constant(small) - 200, tf.constant(bytes_) < -2, ops.add(bytes_, 300)])
check("truncated", [tf.truncatediv(small, 2), tf.truncatediv(small, -2)])
check("shifts", [tf.bitwise.left_shift(1, [-2, 3, 31, 40]), tf.bitwise.right_shift(-8, [-2, 1, 31, 40]),
                 tf.bitwise.right_shift(tf.constant([-2**62, 2**62], tf.int64), [63, 70])])
check("xor of numbers", tf.math.logical_xor(np.array([1, 0, 2]), np.array([3, 3, 0])))
check("limits that cross", [tf.clip_by_value(m, 2, 1), ops.clip(m, 2, 1)])
check("a list of two kinds", [tf.stack([1, 2.5]), tf.stack([tf.constant(1.5), 2])])
raises(refused, lambda: tf.reduce_sum([tf.constant(1), 2.5]))
raises(refused, lambda: tf.stack([tf.constant(1), 2.5]))
raises(refused, lambda: tf.clip_by_value(tf.constant([1, 5]), 0.5, 2.5))
raises(refused, lambda: tf.bitwise.left_shift(m, m))
raises(refused, lambda: tf.constant(1) / tf.constant(2, tf.int64))
raises(refused, lambda: tf.meshgrid([1, 2], [3], indexing="xx"))
raises(refused, lambda: tf.norm([1.0, 2.0], ord="length"))

for order in (1, 2, np.inf, "fro", "euclidean"):
    check(f"norm {order}", [tf.norm(m, ord=order, axis=(0, 1)), tf.norm(m[None], ord=order, axis=[-2, -1], keepdims=True)])
for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    check(f"keras norm {order}", [ops.norm(m, ord=order), ops.norm(np.stack([m, 2 * m]), ord=order, axis=(1, 2), keepdims=True)])
check("softmax of all", [ops.softmax(m, axis=None), ops.log_softmax(m, axis=None)])
check("order of all", [ops.sort(m, axis=None), ops.argsort(m, axis=None)])
check("kept axes", ops.argmax(m, keepdims=True))
check("new axes", [ops.expand_dims(m, (1, 0)).shape, ops.expand_dims(m, (-1, 0)).shape])
check("rounded", ops.round(np.array([123, 235, 245, -15]), decimals=-1))
check("differences", ops.diff(np.array([[1, 2], [4, 3]]), n=2, axis=0))
check("places", ops.where(np.array([1, 2, 3]) > 1))
check("nothing known", ops.nanargmax(np.array([[np.nan, np.nan], [1, np.nan]], "float32"), axis=1))
check("windows of one", ops.kaiser(1, 14.0))
check("fabs", ops.fabs(np.array([-1, 2])))
check("tensors", [tf.is_tensor(tf.sparse.from_dense(m)), tf.is_tensor(tf.ragged.constant([[1], [2, 3]]))])

t = np.eye(3, dtype="float32")
p = np.array([[.8, .1, .1], [.05, .9, .05], [.6, .3, .1]], "float32")
label, w = np.argmax(t, 1), np.array([[.1], [.2], [.7]], "float32")


def metric(name, y, weight, **k):
    made = getattr(keras.metrics, name)(**k)
    made.update_state(y, p, sample_weight=weight)
    return np.asarray(made.result())


for name in "CategoricalAccuracy KLDivergence CosineSimilarity CategoricalHinge MeanSquaredError CategoricalCrossentropy".split():
    check(f"{name} weighed", metric(name, t, w))
for name in "SparseCategoricalAccuracy SparseCategoricalCrossentropy".split():
    check(f"{name} weighed", metric(name, label, w))
check("an ignored class", metric("SparseCategoricalCrossentropy", label, w[:, 0], ignore_class=1))
for name in "Precision Recall TruePositives TrueNegatives FalsePositives FalseNegatives".split():
    check(f"{name} weighed by class", [metric(name, t, np.array([[1, 2, 5]], "float32")), metric(name, t, w, thresholds=[.3, .7])])
check("circle", keras.losses.Circle()(np.array([1, 1, 2]), p / np.linalg.norm(p, axis=1, keepdims=True),
                                      sample_weight=np.array([2, 1, .5], "float32")))


class Same(keras.layers.Layer):
    def call(self, x):
        return x


layer = Same(activity_regularizer="l2")
layer(2 * np.ones((10, 5), "float32"))
check("activity by the batch", layer.losses)
weight, bias = keras.Variable([2.0, 3.0]), keras.Variable([2.0], name="bias")
optimizer = keras.optimizers.AdamW(learning_rate=0.5, weight_decay=0.1)
optimizer.exclude_from_weight_decay(var_names=["bias"])
for _ in range(2):
    optimizer.apply_gradients([(ops.ones((2,)), weight), (ops.zeros((1,)), bias)])
    check("decay of some", [weight.numpy(), bias.numpy()])
scale = keras.Variable([0.0, 0.0])
scale.overwrite_with_gradient = True
keras.optimizers.SGD(0.1).apply_gradients([(7 * ops.ones((2,)), scale), (ops.ones((2,)), weight)])
check("overwritten", [scale.numpy(), weight.numpy()])

model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, kernel_initializer="ones", bias_initializer="ones")])
optimizer = keras.optimizers.SGD(learning_rate=0.1, weight_decay=0.5)
optimizer.exclude_from_weight_decay(var_list=[model.layers[0].bias])
model.compile(optimizer, "mse")
history = model.fit(np.ones((4, 2), "float32"), np.ones((4, 1), "float32"), batch_size=2, epochs=2, shuffle=False, verbose=0)
check("fit without decay of the bias", [history.history["loss"], model.get_weights()])

keras.config.set_image_data_format("channels_first")
x = np.arange(144, dtype="float32").reshape((1, 3, 6, 8))
check("channels first", [keras.layers.ZeroPadding2D(1)(x), keras.layers.GlobalAveragePooling2D()(x)])
keras.config.set_image_data_format("channels_last")
