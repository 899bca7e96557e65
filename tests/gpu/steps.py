"""The networks of tests/gpu/budgets.py, in their size for a card and in a small one for the emulated card, and three training steps of each
by one door of Python.
usage: python -m snug steps.py models FOLDER card|small              writes FOLDER/NAME.json
       python -m snug steps.py fit|function|eager NAME card|small    says "Epoch" on stderr after the first step"""
import os
import sys
import time

# name: shape of a row, classes or outputs, loss, batch; the same, small
CROSS = "sparse_categorical_crossentropy"
SIZES = {
    "mlp": {"card": ((100,), 10, "mse", 20000), "small": ((100,), 10, "mse", 64)},
    "wide": {"card": ((512,), 10, "mse", 512), "small": ((256,), 10, "mse", 2)},
    "cnn": {"card": ((256, 256, 3), 10, "mse", 128), "small": ((64, 64, 3), 10, "mse", 16)},
    "unet": {"card": ((128, 128, 3), 1, "mse", 32), "small": ((64, 64, 3), 1, "mse", 8)},
    "lstm": {"card": ((100, 64), 10, "mse", 512), "small": ((5, 4), 10, "mse", 8)},
    "resnet20": {"card": ((32, 32, 3), 10, CROSS, 128), "small": ((32, 32, 3), 10, CROSS, 8)},
    "vgg": {"card": ((128, 128, 3), 10, "mse", 32), "small": ((32, 32, 3), 10, "mse", 8)},
    "resnet50": {"card": ((224, 224, 3), 1000, CROSS, 64), "small": ((32, 32, 3), 10, CROSS, 8)},
    "transformer": {"card": ((1024,), 1000, CROSS, 8), "small": ((8,), 20, CROSS, 4)},
}
STEPS = 3


def residual(L, x, widths, blocks):
    for filters in widths:
        for i in range(blocks):
            stride = 2 if i == 0 and filters > widths[0] else 1
            y = L.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
            y = L.Conv2D(filters, 3, padding="same", use_bias=False)(L.Activation("relu")(L.BatchNormalization()(y)))
            x = L.Conv2D(filters, 1, strides=stride, use_bias=False)(x)
            x = L.Activation("relu")(L.Add()([x, L.BatchNormalization()(y)]))
    return L.GlobalAveragePooling2D()(x)


def transformer(L, x, layers, width, heads, words):
    x = L.Embedding(words, width)(x)
    for _ in range(layers):
        h = L.LayerNormalization()(x)
        x = L.Add()([x, L.MultiHeadAttention(heads, width // heads)(h, h, use_causal_mask=True)])
        x = L.Add()([x, L.Dense(width)(L.Dense(4 * width, activation="gelu")(L.LayerNormalization()(x)))])
    return x


def unet(L, x, widths):
    conv = lambda n, x: L.Conv2D(n, 3, padding="same", activation="relu")(x)
    kept = []
    for n in widths[:-1]:
        kept.append(conv(n, conv(n, x)))
        x = L.MaxPooling2D()(kept[-1])
    x = conv(widths[-1], x)
    for n in reversed(widths[:-1]):
        x = conv(n, L.Concatenate()([kept.pop(), L.Conv2DTranspose(n, 2, strides=2)(x)]))
    return x


def body(K, L, name, big, inputs):
    """Up to the last layer, a Dense."""
    conv = lambda n, x: L.Conv2D(n, 3, padding="same", activation="relu")(x)
    if name == "mlp":
        return L.Dense(64, activation="relu")(inputs)
    if name == "wide":
        return L.Dense(8192 if big else 256, activation="relu")(L.Dense(4096 if big else 1024, activation="relu")(inputs))
    if name == "cnn":
        return L.Flatten()(L.MaxPooling2D()(conv(32 if big else 8, inputs)))
    if name == "unet":
        return unet(L, inputs, (32, 64, 128) if big else (4, 8))
    if name == "lstm":
        return L.LSTM(256 if big else 132)(inputs)
    if name == "resnet20":
        return residual(L, inputs, (16, 32, 64) if big else (4, 8), 3 if big else 1)
    if name == "vgg":
        x = inputs
        for n in (256, 512, 1024) if big else (8, 16):
            x = L.MaxPooling2D()(conv(n, conv(n, x)))
        return L.GlobalAveragePooling2D()(x)
    if name == "resnet50":
        return residual(L, inputs, (4, 8, 16), 1)
    return transformer(L, inputs, *((12, 768, 12, 1000) if big else (1, 16, 2, 20)))


def make(name, size):
    import keras as K
    shape, classes, loss, _ = SIZES[name][size]
    if name == "resnet50" and size == "card":
        return K.applications.ResNet50(weights=None)
    inputs = K.layers.Input(shape, dtype="int32" if name == "transformer" else "float32")
    last = K.layers.Dense(classes, activation="softmax" if loss == CROSS else None)
    return K.Model(inputs, last(body(K, K.layers, name, size == "card", inputs)))


def write(folder, size):
    os.makedirs(folder, exist_ok=True)
    for name in SIZES:
        with open(os.path.join(folder, name + ".json"), "w") as f:
            f.write(make(name, size).to_json())


def batches(name, size, model):
    """Inputs and targets of one batch, as NumPy has them."""
    import numpy as np
    shape, classes, loss, batch = SIZES[name][size]
    draw = np.random.default_rng(1)
    x = draw.integers(0, classes, (batch, *shape), "i4") if name == "transformer" else draw.random((batch, *shape), "f4")
    y = (batch, *model.output_shape[1:])
    return x, draw.integers(0, classes, y[:-1], "i4") if loss == CROSS else draw.random(y, "f4")


def say_first(step):
    if step == 0:
        print("Epoch", file=sys.stderr, flush=True)


def by_fit(tf, model, loss, x, y):
    class Say(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            say_first(batch)

    model.compile("adam", loss)
    model.fit(x.repeat(STEPS, 0), y.repeat(STEPS, 0), batch_size=len(x), epochs=1, verbose=0, callbacks=[Say()])


def by_steps(tf, model, loss, x, y, traced):
    optimizer, loss = tf.keras.optimizers.Adam(), tf.keras.losses.get(loss)

    def step(x, y):
        with tf.GradientTape() as tape:
            value = tf.reduce_mean(loss(y, model(x, training=True)))
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
        return value

    step = tf.function(step) if traced else step
    for i in range(STEPS):
        float(step(x, y))
        say_first(i)


def main(door, name, size):
    if door == "models":
        return write(name, size)
    import snug.tensorflow as tf
    model = make(name, size)
    x, y = batches(name, size, model)
    loss = SIZES[name][size][2]
    by_fit(tf, model, loss, x, y) if door == "fit" else by_steps(tf, model, loss, x, y, door == "function")
    time.sleep(0.05)  # so that somebody sees what the card holds
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
