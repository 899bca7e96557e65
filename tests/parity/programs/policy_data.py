"""tf.data in halves into models under policies: casts in map, batches, prefetch, specs, an eager loop over the dataset."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check

R = np.random.RandomState(0)
x, y = R.normal(size=(12, 3)).astype("float32"), R.randint(0, 2, size=(12,))
f32 = lambda t: tf.cast(t, tf.float32)
for kind in ("float16", "bfloat16"):
    data = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (tf.cast(a, kind) * 2, b), num_parallel_calls=tf.data.AUTOTUNE).batch(4).prefetch(1)
    check(f"{kind}: spec", [data.element_spec[0].dtype.name, data.element_spec[1].dtype.name])
    check(f"{kind}: elements", [f32(a) for a, _ in data])
    halves = tf.data.Dataset.from_tensor_slices(tf.cast(x, kind)).batch(5)
    check(f"{kind}: of halves", [halves.element_spec.dtype.name, [f32(a) for a in halves]])
    total = data.reduce(tf.zeros((), kind), lambda s, e: s + tf.reduce_sum(e[0]))
    check(f"{kind}: reduced", [total.dtype.name, f32(total)], tol=0.1)
    check(f"{kind}: padded", [f32(a) for a in tf.data.Dataset.from_tensor_slices(tf.cast([1.0, 2.0, 3.0], kind)).map(lambda v: tf.repeat(v, tf.cast(v, tf.int32))).padded_batch(3)])
    model = keras.Sequential([L.Input((3,)), L.Dense(4, activation="relu", dtype="mixed_" + kind), L.Dense(2, activation="softmax", dtype="float32")])
    rng = np.random.RandomState(1)
    model.set_weights([rng.uniform(-0.5, 0.5, size=w.shape).astype("float32") for w in model.get_weights()])
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    check(f"{kind}: fitted", [float(v) for v in model.fit(data, epochs=2, verbose=0).history["loss"]], tol=2e-2)
    check(f"{kind}: predicted", [list(model.predict(data, verbose=0).shape), str(model.predict(data, verbose=0).dtype)])
    check(f"{kind}: given as an array", model.predict(tf.cast(x[:3], kind), verbose=0), tol=2e-2)
    seen = []
    for a, b in data:
        seen.append([model(a).dtype.name, a.dtype.name])
    check(f"{kind}: a loop", seen)
