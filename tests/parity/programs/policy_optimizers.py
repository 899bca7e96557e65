"""Optimizers under mixed_bfloat16 and mixed_float16: types of slots, clipping, averages, accumulated gradients, decay, masters that stay float32."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from keras import optimizers as O
from parity import check

R = np.random.RandomState(0)
x, y = R.normal(size=(12, 4)).astype("float32"), R.normal(size=(12, 1)).astype("float32")
MAKE = {"sgd": lambda: O.SGD(0.05, momentum=0.9, nesterov=True), "adam": lambda: O.Adam(0.02), "adamw": lambda: O.AdamW(0.02, weight_decay=0.01), "rmsprop": lambda: O.RMSprop(0.01),
        "clipped": lambda: O.SGD(0.1, clipnorm=0.5), "whole": lambda: O.SGD(0.1, global_clipnorm=0.5), "value": lambda: O.Adam(0.01, clipvalue=0.1),
        "average": lambda: O.SGD(0.1, use_ema=True, ema_momentum=0.5), "accumulated": lambda: O.SGD(0.1, gradient_accumulation_steps=2), "lion": lambda: O.Lion(0.01),
        "scheduled": lambda: O.SGD(O.schedules.ExponentialDecay(0.1, 2, 0.5))}
for policy in ("mixed_bfloat16", "mixed_float16"):
    keras.config.set_dtype_policy(policy)
    for key, make in MAKE.items():
        model = keras.Sequential([L.Input((4,)), L.Dense(5, activation="tanh"), L.Dense(1)])
        rng = np.random.RandomState(2)
        model.set_weights([rng.uniform(-0.4, 0.6, size=w.shape).astype("float32") for w in model.get_weights()])
        model.compile(make(), "mse")
        losses = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"]
        inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
        check(f"{policy} {key}", [sorted({str(v.dtype) for v in inner.variables}), int(inner.iterations.numpy()), [str(w.dtype) for w in model.weights]])
        check(f"{policy} {key}: losses", [float(v) for v in losses], tol=3e-2)
keras.config.set_dtype_policy("float32")
v = keras.Variable(np.ones(3), dtype="float16")
optimizer = O.SGD(0.1, momentum=0.9)
optimizer.build([v])
optimizer.apply([tf.constant([1.0, 2.0, 3.0], tf.float16)], [v])
check("of a float16 variable", [[str(s.dtype) for s in optimizer.variables], np.asarray(v)])
w = keras.Variable(np.ones(3), dtype="float32")
optimizer = O.SGD(0.1)
optimizer.build([w])
optimizer.apply([tf.constant([1.0, 2.0, 3.0], tf.float16)], [w])
check("a half gradient of a float32 variable", [str(w.dtype), np.asarray(w)], tol=1e-3)
