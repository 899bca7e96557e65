"""Five steps of each optimizer on a fixed problem."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check

O = keras.optimizers
makers = {
    "sgd": lambda: O.SGD(0.1), "momentum": lambda: O.SGD(0.05, momentum=0.9), "nesterov": lambda: O.SGD(0.05, momentum=0.9, nesterov=True),
    "adam": lambda: O.Adam(0.05), "amsgrad": lambda: O.Adam(0.05, amsgrad=True), "adamw": lambda: O.AdamW(0.05, weight_decay=0.01),
    "adamax": lambda: O.Adamax(0.05), "nadam": lambda: O.Nadam(0.05), "rmsprop": lambda: O.RMSprop(0.02),
    "rmsprop centered": lambda: O.RMSprop(0.02, momentum=0.5, centered=True), "adagrad": lambda: O.Adagrad(0.3),
    "adadelta": lambda: O.Adadelta(1.0), "ftrl": lambda: O.Ftrl(0.3), "lion": lambda: O.Lion(0.01), "adafactor": lambda: O.Adafactor(0.05),
    "lamb": lambda: O.Lamb(0.05), "clipnorm": lambda: O.SGD(0.1, clipnorm=0.5), "clipvalue": lambda: O.SGD(0.1, clipvalue=0.1),
    "global_clipnorm": lambda: O.SGD(0.1, global_clipnorm=0.5), "ema": lambda: O.SGD(0.1, use_ema=True, ema_momentum=0.5),
    "decay": lambda: O.SGD(0.1, weight_decay=0.1),
}
start = np.array([[1.0, -2.0], [0.5, 3.0]], "float32")
for name, make in makers.items():
    w, b = tf.Variable(start), tf.Variable([0.5, -0.5])
    opt = make()
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(w @ w - 1.0)) * 0.05 + tf.reduce_sum(tf.square(b - w))
        grads = tape.gradient(loss, [w, b])
        opt.apply_gradients(zip(grads, [w, b]))
    check(name, [w, b], tol=1e-4)
    check(name + " iterations", int(opt.iterations.numpy()))
v = tf.Variable(4.0)
opt = O.SGD(0.5)
opt.apply_gradients([(2 * v, v)])
check("one step", v)
check("learning rate", opt.learning_rate.numpy())
opt.learning_rate = 0.25
check("set", float(opt.learning_rate))
opt.learning_rate.assign(0.125)
opt.apply_gradients([(tf.constant(1.0), v)])
check("assigned", v)
check("by name", type(O.get("adam")).__name__)
check("by dict", O.get({"class_name": "SGD", "config": {"learning_rate": 0.3}}).get_config()["learning_rate"], tol=1e-6)
check("config", sorted(k for k in O.Adam().get_config() if k in ("learning_rate", "beta_1", "beta_2", "epsilon", "amsgrad")))

# --- gradients that add up over steps, in fit -----------------------------------------------------------
rows = np.arange(24, dtype="float32").reshape(8, 3) / 24
model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1, kernel_initializer="zeros")])
model.compile(O.SGD(0.1, gradient_accumulation_steps=4), "mse")
model.fit(rows, rows.sum(1, keepdims=True), batch_size=2, epochs=2, shuffle=False, verbose=0)
check("accumulated in fit", model.get_weights())
check("updates", int(model.optimizer.iterations))

# --- variables that build was told ----------------------------------------------------------------------
told, built = [tf.Variable([1.0, 2.0]), tf.Variable(3.0)], O.Adam(0.1)
built.build(told)
built.apply([tf.constant([0.5, -1.0]), tf.constant(2.0)])
check("applied to what was built", told)
