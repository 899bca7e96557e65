"""Layers on pictures whose settings leave nothing to chance, and what the others keep: shapes, dtypes, ranges."""
import numpy as np
import tensorflow as tf
from parity import check, raises
from tensorflow import keras
from tensorflow.keras import layers

r = np.random.RandomState(0)
x = r.randint(0, 255, (3, 6, 6, 3)).astype("float32")
y = np.eye(3, dtype="float32")

check("auto contrast", layers.AutoContrast()(x), 1e-4)
check("auto contrast while predicting", layers.AutoContrast()(x, training=False), 1e-4)
check("equalization", layers.Equalization()(x), 1e-4)
check("invert", layers.RandomInvert(factor=1.0)(x)[0])
check("grayscale", layers.RandomGrayscale(factor=1.0)(x)[0, :2], 1e-4)
check("posterization", layers.RandomPosterization(factor=(4, 4))(x)[0])
check("solarization", layers.Solarization(threshold_factor=(0.0, 0.0), addition_factor=(0.0, 0.0))(x)[0])
check("sharpness", layers.RandomSharpness(factor=(0.25, 0.25))(x)[1], 1e-4)
check("degeneration", layers.RandomColorDegeneration(factor=(0.5, 0.5))(x)[0], 1e-4)
check("saturation", layers.RandomSaturation(factor=(0.5, 0.5))(x)[0], 1e-3)
check("shear", layers.RandomShear(x_factor=0.0, y_factor=0.0)(x)[0], 1e-4)
check("pipeline", layers.Pipeline([layers.RandomInvert(factor=1.0), layers.AutoContrast()])(x)[0], 1e-4)
for name, settings in [("RandomHue", {"factor": 0.5}), ("RandomErasing", {}), ("RandomGaussianBlur", {}), ("RandomPerspective", {}),
                       ("RandAugment", {}), ("RandomColorJitter", {"brightness_factor": 0.1, "hue_factor": 0.1})]:
    layer = getattr(layers, name)(**settings)
    made = np.asarray(layer(x))
    check(name, [made.shape, str(made.dtype), bool(np.isfinite(made).all()), tuple(layer(x[0]).shape),
                 bool(np.array_equal(layer(x, training=False), x))])
for name in ("MixUp", "CutMix"):
    made = getattr(layers, name)()({"images": x, "labels": y})
    check(name, [tuple(made["images"].shape), np.asarray(made["labels"]).sum(1).round(4).tolist()])
model = keras.Sequential([keras.Input((6, 6, 3)), layers.RandomHue(0.1), layers.RandomErasing(), layers.Flatten(), layers.Dense(3)])
model.compile("adam", "mse")
model.fit(x, y, verbose=0)
check("in a model", model.output_shape)
check("hashing", layers.Hashing(num_bins=3)([["A"], ["B"], ["C"], ["D"], ["E"]]))
check("hashing with a mask", layers.Hashing(num_bins=3, mask_value="")([["A"], [""], ["B"]]))
check("hashing with salt", layers.Hashing(num_bins=64, salt=1337)(np.array([[1], [500], [3]])))
check("hashing with two", layers.Hashing(num_bins=5, salt=[133, 137], mask_value="")(tf.constant([["A"], [""], ["a longer text"]])))
check("hashing of fractions", layers.Hashing(num_bins=5)(np.array([1.7, 2.2])))
check("strong buckets", tf.strings.to_hash_bucket_strong(["", "a", "abcdefgh", "abcdefghi", "more than sixteen bytes"], 1000003, key=[1, 2]))
raises(ValueError, lambda: layers.Hashing(num_bins=5, salt="a"))
check("hashing of numbers", layers.Hashing(num_bins=4, output_mode="one_hot")(np.array([[1], [2], [7]])))
