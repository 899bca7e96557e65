"""The networks of the speed table, in Keras: what every engine of bench/run.py trains or runs.
usage: cases.py FOLDER CASE... writes FOLDER/CASE.json for Snug, and CASE.onnx where it is for predictions."""
import os
import sys

# case: batch, example shape, loss, classes or outputs
TRAIN = {
    "mlp": (20000, (100,), "mse", 10),
    "conv": (32, (128, 128, 3), "mse", 10),
    "conv2": (32, (128, 128, 3), "mse", 10),
    "resnet20": (128, (32, 32, 3), "sparse_categorical_crossentropy", 10),
    "lstm": (64, (100, 64), "mse", 10),
    "transformer": (16, (128,), "sparse_categorical_crossentropy", 1000),
    "vgg": (32, (128, 128, 3), "mse", 10),
}
# the six of bench/budget.py, at batches where what a step needs for itself is most of its memory, and two more
BUDGET = {
    "deep": (6144, (256,), "mse", 10),
    "cnn": (64, (64, 64, 3), "sparse_categorical_crossentropy", 10),
    "resnet20": TRAIN["resnet20"],
    "unet": (8, (128, 128, 3), "mse", 1),
    "lstm": (128, (100, 64), "mse", 10),
    "transformer": (32, (128,), "sparse_categorical_crossentropy", 1000),
    "conv1024": (8, (1024, 1024, 3), "mse", 10),
    "vgg": TRAIN["vgg"],
}
# those of bench/precision.py
PRECISION = {"wide": (1024, (1024,), "mse", 10), **{case: TRAIN[case] for case in ("mlp", "conv", "conv2", "resnet20", "lstm", "transformer")}}
ALL = {**BUDGET, **TRAIN, **PRECISION}
PREDICT = {"mobilenetv2": (1, (224, 224, 3)), "resnet50": (1, (224, 224, 3))}
WIDTH, HEADS, LAYERS = 256, 4, 4


def resnet20(K, L, inputs):
    def block(x, filters, stride):
        y = L.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
        y = L.Activation("relu")(L.BatchNormalization()(y))
        y = L.BatchNormalization()(L.Conv2D(filters, 3, padding="same", use_bias=False)(y))
        if stride > 1:
            x = L.BatchNormalization()(L.Conv2D(filters, 1, strides=stride, use_bias=False)(x))
        return L.Activation("relu")(L.Add()([x, y]))

    x = L.Conv2D(16, 3, padding="same", use_bias=False)(inputs)
    x = L.Activation("relu")(L.BatchNormalization()(x))
    for filters in (16, 32, 64):
        for i in range(3):
            x = block(x, filters, 2 if filters > 16 and i == 0 else 1)
    return L.Dense(10, activation="softmax")(L.GlobalAveragePooling2D()(x))


def transformer(K, L, inputs):
    x = L.Embedding(1000, WIDTH)(inputs)
    for _ in range(LAYERS):
        h = L.LayerNormalization()(x)
        x = L.Add()([x, L.MultiHeadAttention(HEADS, WIDTH // HEADS)(h, h, use_causal_mask=True)])
        h = L.Dense(4 * WIDTH, activation="gelu")(L.LayerNormalization()(x))
        x = L.Add()([x, L.Dense(WIDTH)(h)])
    return L.Dense(1000, activation="softmax")(L.LayerNormalization()(x))


def unet(K, L, inputs):
    def two(x, n):
        for _ in range(2):
            x = L.Conv2D(n, 3, padding="same", activation="relu")(x)
        return x

    x, kept = inputs, []
    for n in (16, 32, 64):
        x = two(x, n)
        kept.append(x)
        x = L.MaxPooling2D()(x)
    x = two(x, 128)
    for n in (64, 32, 16):
        x = two(L.Concatenate()([kept.pop(), L.Conv2DTranspose(n, 2, strides=2)(x)]), n)
    return L.Conv2D(1, 1, activation="sigmoid")(x)


def chain(K, L, inputs, layers):
    for layer in layers:
        inputs = layer(inputs)
    return inputs


def build(case):
    import keras as K
    L = K.layers
    if case in PREDICT:
        return {"mobilenetv2": K.applications.MobileNetV2, "resnet50": K.applications.ResNet50}[case](weights=None)
    inputs = L.Input(ALL[case][1], dtype="int32" if case == "transformer" else "float32")
    conv = lambda n, padding="same": L.Conv2D(n, 3, padding=padding, activation="relu")
    graphs = {"resnet20": resnet20, "transformer": transformer, "unet": unet}
    if case in graphs:
        return K.Model(inputs, graphs[case](K, L, inputs))
    layers = {
        "mlp": lambda: [L.Dense(64, activation="relu")],
        "wide": lambda: [L.Dense(2048, activation="relu") for _ in range(3)],
        "deep": lambda: [L.Dense(512, activation="relu") for _ in range(8)],
        "cnn": lambda: [conv(32), conv(32), L.MaxPooling2D(), conv(64), conv(64), L.MaxPooling2D(), L.Dropout(0.25), L.Flatten(), L.Dense(64, activation="relu")],
        "conv": lambda: [conv(32, "valid"), L.MaxPooling2D(), L.Flatten()],
        "conv1024": lambda: [conv(32, "valid"), L.MaxPooling2D(), L.Flatten()],
        "conv2": lambda: [conv(64), L.MaxPooling2D(), conv(128), L.GlobalAveragePooling2D()],
        "lstm": lambda: [L.LSTM(128)],
        "vgg": lambda: [conv(256), conv(256), L.MaxPooling2D(), conv(512), conv(512), L.MaxPooling2D(), conv(1024), conv(1024), L.GlobalAveragePooling2D()],
    }[case]()
    last = L.Dense(10, activation="softmax" if case == "cnn" else None)
    return K.Model(inputs, chain(K, L, inputs, layers + [last]))


def write(folder, case):
    model = build(case)
    with open(os.path.join(folder, case + ".json"), "w") as f:
        f.write(model.to_json())
    if case in PREDICT:
        import numpy as np
        model(np.zeros((1,) + PREDICT[case][1], "float32"))  # Keras exports what has run
        model.export(os.path.join(folder, case + ".onnx"), format="onnx", verbose=False)


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    for name in sys.argv[2:]:
        write(sys.argv[1], name)
