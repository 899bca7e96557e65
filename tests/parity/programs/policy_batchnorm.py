"""BatchNormalization under policies: statistics in float32, training and inference, frozen, with gradients, in a model that is fitted."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)
R = np.random.RandomState(0)
x = R.normal(1.0, 2.0, size=(16, 5)).astype("float32")
pictures = R.normal(size=(4, 3, 3, 2)).astype("float32")
for policy, eps in (("mixed_bfloat16", 2.0 ** -8), ("mixed_float16", 2.0 ** -11), ("bfloat16", 2.0 ** -8), ("float16", 2.0 ** -11), ("float32", 1e-6)):
    layer = L.BatchNormalization(momentum=0.5, dtype=policy)
    with tf.GradientTape() as tape:
        y = layer(x, training=True)
        loss = tf.reduce_sum(tf.cast(y, tf.float32) ** 3)
    gradients = tape.gradient(loss, layer.trainable_weights)
    check(policy, [name(y), [str(v.dtype) for v in layer.weights], [name(g) for g in gradients]])
    check(f"{policy}: numbers", [tf.cast(y, tf.float32), tf.cast(layer.moving_mean, tf.float32), tf.cast(layer.moving_variance, tf.float32)], tol=8 * eps)
    check(f"{policy}: inference", tf.cast(layer(x, training=False), tf.float32), tol=8 * eps)
    layer.trainable = False
    before = tf.cast(layer.moving_mean, tf.float32).numpy()
    layer(x, training=True)
    check(f"{policy}: frozen", bool((before == tf.cast(layer.moving_mean, tf.float32).numpy()).all()))
for policy in ("mixed_bfloat16", "mixed_float16"):
    keras.config.set_dtype_policy(policy)
    model = keras.Sequential([L.Input((3, 3, 2)), L.Conv2D(3, 2, kernel_initializer=keras.initializers.Constant(0.1)), L.BatchNormalization(), L.ReLU(),
                              L.GlobalAveragePooling2D(), L.Dense(1, kernel_initializer="ones", dtype="float32")])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    history = model.fit(pictures, np.ones((4, 1), "float32"), epochs=2, batch_size=4, shuffle=False, verbose=0).history["loss"]
    check(f"{policy}: fitted", [float(v) for v in history], tol=3e-2)
    check(f"{policy}: of the model", [[str(v.dtype) for v in model.weights], [str(layer.output.dtype) for layer in model.layers]])
keras.config.set_dtype_policy("float32")
