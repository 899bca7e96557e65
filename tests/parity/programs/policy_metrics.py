"""Metrics beside half predictions: their own type, asked for or not, in compile and by themselves."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from keras import metrics as M
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)
values = np.array([0.1, 0.2, 0.30001, 5000.25], "float32")
for policy in ("float32", "mixed_float16", "mixed_bfloat16", "float16"):
    keras.config.set_dtype_policy(policy)
    for make in (lambda: M.Mean(), lambda: M.Sum(), lambda: M.MeanAbsoluteError(), lambda: M.BinaryAccuracy()):
        m = make()
        m.update_state(values, np.zeros(4, "float32")) if type(m) not in (M.Mean, M.Sum) else m.update_state(values)
        check(f"{policy} {type(m).__name__}", [str(m.dtype), name(m.result())])
    for given in (tf.float16, tf.bfloat16):
        m = M.Mean()
        m.update_state(tf.cast(values, given))
        check(f"{policy}: of {given.name}", [str(m.dtype), tf.cast(m.result(), tf.float32)], tol=5e-3)
keras.config.set_dtype_policy("float32")
for kind in ("float16", "bfloat16", "float64"):
    m = M.Mean(dtype=kind)
    m.update_state([1.0, 2.0])
    check(f"asked for {kind}", [str(m.dtype), name(m.result()), tf.cast(m.result(), tf.float32)])
labels, scores = np.array([0, 2, 1, 1]), np.random.RandomState(0).uniform(size=(4, 3)).astype("float32")
for given in (tf.float16, tf.bfloat16):
    half = tf.cast(scores, given)
    check(f"classes in {given.name}", [float(M.sparse_categorical_accuracy(labels, half)[1]), float(M.SparseCategoricalAccuracy()(labels, half))])
keras.config.set_dtype_policy("mixed_bfloat16")
model = keras.Sequential([L.Input((3,)), L.Dense(3, kernel_initializer="identity"), L.Softmax()])
model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
found = model.evaluate(scores, labels, verbose=0, return_dict=True)
check("in a model", [sorted(found), [str(m.dtype) for m in model.metrics], [type(v).__name__ for v in found.values()]])
check("their values", [found["accuracy"], found["loss"]], tol=2e-2)
keras.config.set_dtype_policy("float32")
