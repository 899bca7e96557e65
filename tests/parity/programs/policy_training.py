"""Steps under policies: losses and metrics in float32, weights in float32, loss scaling by compile."""
import keras
import numpy as np
from keras import layers as L
from parity import check

R = np.random.RandomState(0)
x, y = R.normal(size=(32, 6)).astype("float32"), R.normal(size=(32, 1)).astype("float32")
labels = R.randint(0, 3, size=(32,))


def make(*layers):
    model = keras.Sequential([L.Input((6,)), *layers])
    rng = np.random.RandomState(2)
    model.set_weights([rng.uniform(-0.4, 0.6, size=w.shape).astype("float32") for w in model.get_weights()])
    return model


for policy, eps in (("mixed_bfloat16", 2.0 ** -8), ("mixed_float16", 2.0 ** -11), ("bfloat16", 2.0 ** -8), ("float16", 2.0 ** -11)):
    keras.config.set_dtype_policy(policy)
    for optimizer in ("sgd",) if policy == "float16" else ("sgd", "adam"):        # squares are 0 there
        model = make(L.Dense(8, activation="tanh"), L.Dense(1))
        model.compile(optimizer, "mse", metrics=["mae"])
        history = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0).history
        check(f"{policy} {optimizer}: losses", [float(v) for v in history["loss"] + history["mae"]], tol=16 * eps)
        check(f"{policy} {optimizer}", [type(model.optimizer).__name__, sorted({str(v.dtype) for v in model.trainable_weights})])
        check(f"{policy} {optimizer}: weights", [np.asarray(w, "float32") for w in model.get_weights()], tol=16 * eps)
    model = make(L.Dense(8, activation="relu"), L.BatchNormalization(), L.Dense(3, activation="softmax", dtype="float32"))
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, labels, batch_size=16, epochs=1, shuffle=False, verbose=0)
    check(f"{policy}: of classes", [float(v) for v in model.evaluate(x, labels, verbose=0)][0], tol=16 * eps)
keras.config.set_dtype_policy("mixed_float16")
model = make(L.Dense(1))
model.compile("sgd", "mse", auto_scale_loss=False)
check("not scaled", type(model.optimizer).__name__)
model.compile(keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=4.0), "mse")
check("scaled once", [type(model.optimizer).__name__, type(model.optimizer.inner_optimizer).__name__, model.optimizer.initial_scale])
model.compile("sgd", "mse")
model.train_on_batch(x[:16], y[:16])
scale = float(model.optimizer.dynamic_scale.numpy())
before = [w.copy() for w in model.get_weights()]
model.train_on_batch(x[:16] * 1e30, y[:16])
check("gradients that are not finite", [float(model.optimizer.dynamic_scale.numpy()) / scale, int(model.optimizer.step_counter.numpy()),
                                        all((a == b).all() for a, b in zip(before, model.get_weights()))])
keras.config.set_dtype_policy("float32")
