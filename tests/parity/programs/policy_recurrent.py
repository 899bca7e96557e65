"""Recurrent layers under policies: types of states, masks, stateful ones, both directions, cells, a fit."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)
R = np.random.RandomState(0)
x = R.normal(size=(2, 5, 3)).astype("float32")


def filled(layer):
    rng = np.random.RandomState(1)
    layer.set_weights([rng.uniform(-0.4, 0.4, size=w.shape).astype("float32") for w in layer.get_weights()])
    return layer


for policy, eps in (("mixed_bfloat16", 2.0 ** -8), ("mixed_float16", 2.0 ** -11)):
    for kind in (L.LSTM, L.GRU, L.SimpleRNN):
        layer = kind(4, return_sequences=True, return_state=True, dtype=policy)
        layer(x)
        y, *states = filled(layer)(x)
        check(f"{policy} {kind.__name__}", [name(y), [name(s) for s in states], [str(v.dtype) for v in layer.weights]])
        check(f"{policy} {kind.__name__}: numbers", [tf.cast(y, tf.float32), *[tf.cast(s, tf.float32) for s in states]], tol=16 * eps)
        begun = layer(x, initial_state=[tf.ones((2, 4)) for _ in states])
        check(f"{policy} {kind.__name__}: from states", tf.cast(begun[0], tf.float32), tol=16 * eps)
    both = L.Bidirectional(L.GRU(2), dtype=policy)
    both(x)
    check(f"{policy} both", [name(both(x)), [str(v.dtype) for v in both.weights]])
    cell = L.RNN([L.LSTMCell(3, dtype=policy), L.GRUCell(2, dtype=policy)], dtype=policy)
    check(f"{policy} cells", name(cell(x)))
    masked = keras.Sequential([L.Input((5, 3)), L.Masking(0.0, dtype=policy), L.LSTM(2, dtype=policy), L.Dense(1, dtype="float32")])
    filled(masked)
    holes = x.copy()
    holes[:, 3:] = 0
    check(f"{policy} masked", masked.predict(holes, verbose=0), tol=16 * eps)
    held = L.LSTM(2, stateful=True, dtype=policy)
    held(x)
    filled(held)
    held.reset_states() if hasattr(held, "reset_states") else held.reset_state()
    check(f"{policy} stateful", [tf.cast(held(x), tf.float32), tf.cast(held(x), tf.float32), str(held.states[0].dtype)], tol=16 * eps)
    keras.config.set_dtype_policy(policy)
    model = keras.Sequential([L.Input((5, 3)), L.LSTM(4), L.Dense(1, dtype="float32")])
    keras.config.set_dtype_policy("float32")
    filled(model)
    model.compile("sgd", "mse")
    check(f"{policy} fitted", [float(v) for v in model.fit(x, np.ones((2, 1), "float32"), epochs=3, verbose=0).history["loss"]], tol=16 * eps)
