"""GradientTape over layers of several policies: dtypes of gradients, of inputs and of what is between; persistent and nested tapes."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)
x = tf.constant(np.random.RandomState(0).normal(size=(4, 3)).astype("float32"))


def filled(layer, shape):
    layer.build(shape)
    rng = np.random.RandomState(1)
    layer.set_weights([rng.uniform(-0.5, 0.5, size=w.shape).astype("float32") for w in layer.get_weights()])
    return layer


for first, second in (("mixed_bfloat16", "float32"), ("float32", "mixed_bfloat16"), ("mixed_float16", "mixed_bfloat16"), ("float16", "float32"), ("float32", "float64")):
    a, b = filled(L.Dense(5, activation="tanh", dtype=first), (None, 3)), filled(L.Dense(1, dtype=second), (None, 5))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        h = a(x)
        y = b(h)
        loss = tf.reduce_mean(tf.square(tf.cast(y, tf.float32)))
    wanted = [x, h, y, *a.trainable_weights, *b.trainable_weights]
    gradients = tape.gradient(loss, wanted)
    check(f"{first} then {second}", [name(h), name(y), [name(g) for g in gradients]])
    check(f"{first} then {second}: numbers", [tf.cast(g, tf.float32) for g in gradients], tol=3e-2)
layer = filled(L.Dense(2, dtype="mixed_float16"), (None, 3))
with tf.GradientTape() as outer:
    outer.watch(x)
    with tf.GradientTape() as inner:
        inner.watch(x)
        y = tf.reduce_sum(tf.cast(layer(x), tf.float32) ** 2)
    g = inner.gradient(y, x)
    penalty = tf.reduce_sum(g * g)
check("a penalty", [name(g), name(outer.gradient(penalty, layer.kernel))])
with tf.GradientTape() as tape:
    y = layer(x)
check("of a result that is no number", name(tape.gradient(y, layer.kernel)))
with tf.GradientTape() as tape:
    scaled = tf.reduce_sum(layer(x)) * 1000.0
check("times a number", [name(scaled), name(tape.gradient(scaled, layer.bias))])
