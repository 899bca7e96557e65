#!/usr/bin/env python3
"""Writes the model files beside it with Keras' own model.to_json(): what a user would bring along."""
import json
import os

import keras
from keras import layers as L

HERE = os.path.dirname(os.path.abspath(__file__))


def save(name, model, loss="sparse_categorical_crossentropy"):
    model.compile(optimizer=keras.optimizers.Adam(0.001), loss=loss, metrics=["accuracy"] if loss != "mse" else None)
    with open(os.path.join(HERE, name), "w") as f:
        json.dump(json.loads(model.to_json()), f, indent=1)
        f.write("\n")


def conv(filters):
    return [L.Conv2D(filters, 3, padding="same", use_bias=False), L.BatchNormalization(momentum=0.9), L.Activation("relu"), L.MaxPooling2D()]


save("shapes_cnn.json", keras.Sequential([L.Input((32, 32, 3)), L.Rescaling(1 / 255)] + conv(16) + conv(32) + conv(64)
                                         + [L.Flatten(), L.Dropout(0.2), L.Dense(64, activation="relu"), L.Dense(8, activation="softmax")], name="shapes_cnn"))
save("shapes_linear.json", keras.Sequential([L.Input((32, 32, 3)), L.Rescaling(1 / 255), L.Flatten(), L.Dense(8, activation="softmax")], name="shapes_linear"))
save("blobs_mlp.json", keras.Sequential([L.Input((16,)), L.Dense(32, activation="relu"), L.Dense(6, activation="softmax")], name="blobs_mlp"))
save("mnist_mlp.json", keras.Sequential([L.Input((28, 28)), L.Rescaling(1 / 255), L.Flatten(), L.Dense(64, activation="relu"), L.Dense(10, activation="softmax")], name="mnist_mlp"))
save("conv1024.json", keras.Sequential([L.Input((1024, 1024, 3)), L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(), L.Dense(10)], name="conv1024"), "mse")


def resnet20():
    """ResNet-20 for pictures of 32 x 32 (He et al. 2015, table 6), with projections where the picture shrinks."""
    def unit(x, filters, kernel=3, strides=1):
        x = L.Conv2D(filters, kernel, strides=strides, padding="same", use_bias=False, kernel_initializer="he_normal")(x)
        return L.BatchNormalization(momentum=0.9)(x)

    inputs = L.Input((32, 32, 3))
    x = L.ReLU()(unit(L.Rescaling(1 / 255)(inputs), 16))
    for filters in (16, 32, 64):
        for block in range(3):
            strides = 2 if block == 0 and filters > 16 else 1
            y = unit(L.ReLU()(unit(x, filters, strides=strides)), filters)
            shortcut = unit(x, filters, 1, strides) if strides == 2 else x
            x = L.ReLU()(L.Add()([shortcut, y]))
    outputs = L.Dense(10, activation="softmax")(L.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, outputs, name="resnet20")


save("resnet20.json", resnet20())


def unet():
    """A small U-Net (Ronneberger et al. 2015) for masks of pictures of 128 x 128: skip connections live through most of a step."""
    def two(x, filters):
        for _ in range(2):
            x = L.Conv2D(filters, 3, padding="same", activation="relu")(x)
        return x

    x = inputs = L.Input((128, 128, 3))
    kept = []
    for filters in (16, 32, 64):
        kept.append(two(x, filters))
        x = L.MaxPooling2D()(kept[-1])
    x = two(x, 128)
    for filters in (64, 32, 16):
        x = two(L.Concatenate()([kept.pop(), L.Conv2DTranspose(filters, 2, strides=2)(x)]), filters)
    return keras.Model(inputs, L.Conv2D(1, 1, activation="sigmoid")(x), name="unet")


save("unet.json", unet(), "binary_crossentropy")
