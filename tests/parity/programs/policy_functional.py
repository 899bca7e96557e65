"""Functional models of layers with several policies: what merges, operators and keras.ops make of several types."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

x = np.random.RandomState(0).normal(size=(3, 4)).astype("float32")


def filled(model):
    rng = np.random.RandomState(1)
    model.set_weights([rng.uniform(-0.5, 0.5, size=w.shape).astype("float32") for w in model.get_weights()])
    return model


for policy, eps in (("mixed_bfloat16", 2.0 ** -8), ("mixed_float16", 2.0 ** -11)):
    keras.config.set_dtype_policy(policy)
    inputs = keras.Input((4,))
    a = L.Dense(3, name="a")(inputs)
    b = L.Dense(3, dtype="float32", name="b")(inputs)
    merges = [make(name=f"merge_{k}") for k, make in enumerate((L.Add, L.Multiply, L.Concatenate, L.Average, L.Maximum, L.Subtract))] + [L.Dot(1, name="dot")]
    merged = [m([a, b]) for m in merges]
    operators = [a + 1.0, a * b, a - 0.5, keras.ops.relu(a), keras.ops.softmax(b), keras.ops.concatenate([a, b]), keras.ops.mean(a, axis=1), keras.ops.cast(a, "float32"), a[:, :2]]
    check(f"{policy}: merges", [str(t.dtype) for t in merged])
    check(f"{policy}: operators", [str(t.dtype) for t in operators])
    model = filled(keras.Model(inputs, [*merged, *operators]))
    results = model(x)
    check(f"{policy}: results", [str(tf.as_dtype(r.dtype).name) for r in results])
    check(f"{policy}: numbers", [tf.cast(r, tf.float32) for r in results], tol=16 * eps)
    shared = L.Dense(2, name="shared")
    twice = keras.Model(inputs, L.Dense(1, dtype="float32", name="out")(shared(L.Dense(4)(inputs)) + shared(inputs)))
    check(f"{policy}: shared", [str(twice.output.dtype), len(twice.weights)])
    inner = keras.Sequential([L.Input((3,)), L.Dense(2, name="in")], name="inner")
    nested = filled(keras.Model(inputs, L.Activation("softmax", dtype="float32")(inner(a))))
    check(f"{policy}: nested", nested.predict(x, verbose=0), tol=16 * eps)
    doubled = keras.Sequential([L.Input((4,)), L.Lambda(lambda t: t * 2), L.Dense(1)])
    check(f"{policy}: Lambda", [str(layer.output.dtype) for layer in doubled.layers])
    keras.config.set_dtype_policy("float32")
