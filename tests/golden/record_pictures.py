#!/usr/bin/env python3
"""Records what TensorFlow's picture operators do, for tests/test_pictures.c: tests/data/pictures.safetensors holds the picture x, the
transforms, and per call a tensor whose name is the row of ops.def with its attributes ("resize method=1 size=8,6"). The constant
outside a warped picture is 0.5. The gradient "resize_grad method=1 ..." is that of half the sum of squares of "dy of method=1".

    peers/bin/python tests/golden/record_pictures.py"""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf
from keras import ops
from record import HERE, save_safetensors

METHODS = ["nearest", "bilinear", "bicubic", "area", "lanczos3", "lanczos5"]
MODES = ["constant", "reflect", "wrap", "nearest"]
R = np.random.RandomState(3)
X = R.normal(size=(3, 5, 7, 2)).astype(np.float32)
angle = np.array([0.4, -1.1, 2.5])
TRANSFORMS = np.stack([np.cos(angle), -np.sin(angle), [0.3, 6.5, -2.2], np.sin(angle), np.cos(angle), [-1.2, 9.1, 3.7],
                       [0, 0.02, -0.01], [0, 0.01, 0.03]], axis=1).astype(np.float32)


def main():
    tensors = {"x": X, "transforms": TRANSFORMS}
    for m, method in enumerate(METHODS):
        for height, width in ((10, 14), (3, 4), (8, 3), (1, 1), (5, 7)):
            for antialias in (False, True):
                y = ops.image.resize(X, (height, width), interpolation=method, antialias=antialias)
                tensors[f"resize method={m} antialias={int(antialias)} size={height},{width}"] = np.asarray(y)
    for m, mode in enumerate(MODES):
        for nearest in (0, 1):
            y = ops.image.affine_transform(X, TRANSFORMS, interpolation="nearest" if nearest else "bilinear", fill_mode=mode, fill_value=0.5)
            tensors[f"warp mode={m} nearest={nearest} size=5,7"] = np.asarray(y)
    for m in (1, 2):
        with tf.GradientTape() as tape:
            x = tf.constant(X)
            tape.watch(x)
            y = ops.image.resize(x, (8, 4), interpolation=METHODS[m])
            loss = tf.reduce_sum(y * y) / 2
        tensors[f"dy of method={m}"] = np.asarray(y)
        tensors[f"resize_grad method={m} size=5,7"] = np.asarray(tape.gradient(loss, x))
    save_safetensors(os.path.join(HERE, "..", "data", "pictures.safetensors"), tensors)


if __name__ == "__main__":
    main()
