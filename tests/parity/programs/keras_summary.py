"""The text of model.summary()."""
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers
from parity import check


def text(model, **more):
    lines = []
    model.summary(print_fn=lambda s, line_break=True: lines.append(s), **more)
    return "\n".join(lines).splitlines()


a = keras.Sequential([
    keras.Input((28, 28, 1)),
    layers.Conv2D(32, 3, activation="relu", name="conv"),
    layers.MaxPooling2D(name="pool"),
    layers.Flatten(name="flat"),
    layers.Dropout(0.5, name="drop"),
    layers.Dense(10, name="probabilities"),
], name="mnist")
check("sequential", text(a))
i = keras.Input((8,), name="features")
x = layers.Dense(16, name="hidden")(i)
y = layers.BatchNormalization(name="bn")(x)
z = layers.Add(name="sum")([x, y])
b = keras.Model(i, [layers.Dense(1, name="p")(z), layers.Dense(2, name="q")(z)], name="two")
check("functional", text(b))
a.layers[0].trainable = False
check("frozen", text(a)[-3:])
c = keras.Sequential([layers.Dense(4, name="late")], name="unbuilt")
check("unbuilt", text(c))
seq = keras.Input((None, 8), name="seq")
inner = keras.Sequential([layers.Dense(3, name="a"), layers.Dense(2, name="b")], name="inner")
d = keras.Model(seq, inner(layers.LSTM(4, name="l", trainable=False)(seq)), name="nested")
check("nested", text(d, expand_nested=True))
check("trainable", text(d, expand_nested=True, show_trainable=True))
check("trainable of several", text(b, show_trainable=True))
check("narrow", text(d, line_length=60))
check("positions", text(d, line_length=72, positions=[0.3, 0.8, 1.0]))
check("range", text(a, layer_range=("pool", "drop")))
