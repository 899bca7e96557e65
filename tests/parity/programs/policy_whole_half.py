"""Models that are float16 or bfloat16 as a whole: weights, slots, steps, predictions, and the change of one to another."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)
f32 = lambda arrays: [np.asarray(a, "float32") for a in arrays]
R = np.random.RandomState(0)
x, y = R.normal(size=(16, 4)).astype("float32"), R.normal(size=(16, 1)).astype("float32")


def make():
    model = keras.Sequential([L.Input((4,)), L.Dense(6, activation="tanh"), L.Dense(1)])
    rng = np.random.RandomState(2)
    model.set_weights([rng.uniform(-0.4, 0.6, size=w.shape).astype("float32") for w in model.get_weights()])
    return model


for policy, eps in (("float16", 2.0 ** -11), ("bfloat16", 2.0 ** -8)):
    keras.config.set_dtype_policy(policy)
    model = make()
    check(policy, [[str(v.dtype) for v in model.weights], [str(t.dtype) for t in model.inputs], [str(t.dtype) for t in model.outputs], model.compute_dtype])
    model.compile(keras.optimizers.SGD(0.1, momentum=0.5), "mse", metrics=["mae"])
    history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
    check(f"{policy}: losses", [float(v) for v in history["loss"] + history["mae"]], tol=16 * eps)
    check(f"{policy}: weights", f32(model.get_weights()), tol=16 * eps)
    check(f"{policy}: slots", [str(v.dtype) for v in model.optimizer.variables])
    check(f"{policy}: called", [name(model(x)), name(model(x.astype("float64"))), str(model.predict(x, verbose=0).dtype) in ("float16", "bfloat16", "float32")])
    check(f"{policy}: evaluated", [float(v) for v in model.evaluate(x, y, verbose=0)], tol=16 * eps)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - tf.cast(y, model.compute_dtype)))
    check(f"{policy}: gradients", [name(loss), [name(g) for g in tape.gradient(loss, model.trainable_weights)]])
    wide = keras.Sequential([L.Input((4,)), L.Dense(6, activation="tanh", dtype="float32"), L.Dense(1, dtype="float32")])
    wide.set_weights(f32(model.get_weights()))
    check(f"{policy}: in float32", wide.predict(x[:4], verbose=0), tol=16 * eps)
keras.config.set_dtype_policy("float32")
