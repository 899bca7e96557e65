"""A base under mixed_bfloat16 that is frozen, a head in float32, then all of it: who trains, types, steps."""
import keras
import numpy as np
from keras import layers as L
from parity import check

R = np.random.RandomState(0)
x, y = R.uniform(size=(6, 8, 8, 3)).astype("float32"), np.array([0, 1, 2, 0, 1, 2])


def filled(model):
    rng = np.random.RandomState(1)
    model.set_weights([rng.uniform(-0.2, 0.3, size=w.shape).astype("float32") for w in model.get_weights()])
    return model


for policy in ("mixed_bfloat16", "mixed_float16"):
    keras.config.set_dtype_policy(policy)
    base = filled(keras.Sequential([L.Input((8, 8, 3)), L.Conv2D(4, 3, activation="relu", name="c1"), L.MaxPooling2D(), L.Conv2D(6, 3, name="c2")], name="base"))
    base.trainable = False
    inputs = keras.Input((8, 8, 3))
    hidden = L.GlobalAveragePooling2D()(base(inputs, training=False))
    outputs = L.Dense(3, name="head")(hidden)
    model = keras.Model(inputs, L.Activation("softmax", dtype="float32", name="predictions")(outputs))
    model.get_layer("head").set_weights([np.full((6, 3), 0.1, "float32"), np.zeros(3, "float32")])
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    before = [w.copy() for w in base.get_weights()]
    losses = model.fit(x, y, batch_size=3, epochs=2, shuffle=False, verbose=0).history["loss"]
    check(f"{policy}: types", [[str(layer.output.dtype) for layer in model.layers], [v.path.split("/")[-2] for v in model.trainable_weights], len(model.non_trainable_weights)])
    check(f"{policy}: the head", [float(v) for v in losses], tol=2e-2)
    check(f"{policy}: the base stays", all((a == b).all() for a, b in zip(before, base.get_weights())))
    base.trainable = True
    model.compile(keras.optimizers.SGD(0.05), "sparse_categorical_crossentropy")
    check(f"{policy}: all of it", [float(v) for v in model.fit(x, y, batch_size=3, epochs=2, shuffle=False, verbose=0).history["loss"]], tol=2e-2)
    check(f"{policy}: the base trains", [len(model.trainable_weights), any((a != b).any() for a, b in zip(before, base.get_weights()))])
    check(f"{policy}: predicted", model.predict(x[:2], verbose=0), tol=2e-2)
keras.config.set_dtype_policy("float32")
