"""What layers make under each policy: types of results and variables, and numbers within the type's bits."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

R = np.random.RandomState(0)
x, pictures, steps, ids = (R.normal(size=(2, 6)), R.normal(size=(1, 5, 4, 2)), R.normal(size=(2, 4, 3)), np.array([[1, 2, 0], [3, 1, 4]]))
EPS = {"mixed_bfloat16": 2.0 ** -8, "bfloat16": 2.0 ** -8, "mixed_float16": 2.0 ** -11, "float16": 2.0 ** -11, "float64": 1e-9}
WHOLE = [lambda: (L.Dense(4, activation="tanh"), x), lambda: (L.LayerNormalization(), x), lambda: (L.BatchNormalization(), x),
         lambda: (L.Embedding(5, 4), ids), lambda: (L.Rescaling(0.5, 1.0), x)]
MIXED = WHOLE + [
    lambda: (L.Conv2D(4, 3, activation="relu"), pictures), lambda: (L.DepthwiseConv2D(3), pictures), lambda: (L.Conv1D(4, 2), steps),
    lambda: (L.MaxPooling2D(), pictures), lambda: (L.AveragePooling2D(2), pictures), lambda: (L.GlobalAveragePooling2D(), pictures),
    lambda: (L.GroupNormalization(3), x), lambda: (L.RMSNormalization(), x), lambda: (L.UnitNormalization(), x),
    lambda: (L.LSTM(3), steps), lambda: (L.GRU(3, return_sequences=True), steps), lambda: (L.SimpleRNN(3), steps),
    lambda: (L.Bidirectional(L.LSTM(2)), steps), lambda: (L.TimeDistributed(L.Dense(2)), steps), lambda: (L.EinsumDense("ab,bc->ac", 3), x),
    lambda: (L.Softmax(), x), lambda: (L.PReLU(), x), lambda: (L.LeakyReLU(), x), lambda: (L.Activation("gelu"), x), lambda: (L.Flatten(), pictures),
    lambda: (L.UpSampling2D(), pictures), lambda: (L.ZeroPadding2D(), pictures), lambda: (L.Dropout(0.5), x), lambda: (L.Cropping1D(1), steps),
    lambda: (L.RepeatVector(2), x)]


def show(name, layer, y, eps):
    y = y[0] if isinstance(y, (list, tuple)) else y
    check(name, [str(tf.as_dtype(y.dtype).name), sorted({str(v.dtype) for v in layer.weights}), layer.compute_dtype, layer.variable_dtype])
    check(name + ": numbers", tf.cast(y, tf.float64 if y.dtype == tf.float64 else tf.float32), tol=16 * eps)


for policy, eps in EPS.items():
    for make in MIXED if policy.startswith("mixed") else WHOLE:
        keras.config.set_dtype_policy(policy)
        layer, given = make()
        rng = np.random.RandomState(1)
        given = tf.constant(given, tf.int32 if given.dtype.kind == "i" else tf.float64 if policy == "float64" else tf.float32)
        layer(given)
        layer.set_weights([rng.uniform(0.2, 0.6, size=w.shape).astype("float32") for w in layer.get_weights()])
        show(f"{policy} {type(layer).__name__}", layer, layer(given), eps)
keras.config.set_dtype_policy("float32")
for given in ("float16", "bfloat16", "float32", "float64"):
    layer = L.Dense(2, kernel_initializer="ones")
    check(f"{given} into float32", str(tf.as_dtype(layer(tf.ones((1, 2), given)).dtype).name))
    layer = L.Dense(2, kernel_initializer="ones", dtype="mixed_bfloat16")
    check(f"{given} into mixed_bfloat16", str(tf.as_dtype(layer(tf.ones((1, 2), given)).dtype).name))
check("whole numbers stay", str(tf.as_dtype(L.Flatten(dtype="mixed_float16")(tf.ones((1, 2), tf.int32)).dtype).name))
check("kept as they are", [str(tf.as_dtype(L.Flatten(dtype="mixed_float16", autocast=False)(tf.ones((1, 2), tf.float32)).dtype).name),
                           L.Embedding(2, 2, dtype="mixed_float16").autocast, L.LayerNormalization().autocast, L.Dense(2).autocast])
