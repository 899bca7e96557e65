"""Layers in map functions: shapes and types, equal seeds turn pictures and masks alike, training=False changes nothing, layers of the
user's; who draws without being told."""
import numpy as np
import tensorflow as tf
from parity import check

layers, Dataset = tf.keras.layers, tf.data.Dataset
x = np.random.RandomState(0).randint(0, 255, (8, 12, 12, 3)).astype("uint8")
d = Dataset.from_tensor_slices(x)
made = {"flip": layers.RandomFlip(), "turn": layers.RandomRotation(0.2), "zoom": layers.RandomZoom(0.1),
        "move": layers.RandomTranslation(0.1, 0.2), "crop": layers.RandomCrop(8, 8), "contrast": layers.RandomContrast(0.2),
        "light": layers.RandomBrightness(0.1)}
for name, layer in made.items():
    one = d.map(lambda p: layer(tf.cast(p, tf.float32), training=True), num_parallel_calls=2)
    many = d.batch(4).map(lambda p: layer(tf.cast(p, tf.float32), training=True))
    check(name, [one.element_spec.shape, many.element_spec.shape, one.element_spec.dtype])
    check(name + " gives", [tuple(p.shape) for p in one.take(1)] + [tuple(p.shape) for p in many.take(1)])
    if name != "crop":
        check(name + " draws", any(not np.array_equal(a, b) for a, b in zip(one, x)))
        same = d.map(lambda p: layer(tf.cast(p, tf.float32), training=False))
        check(name + " rests", all(np.array_equal(a, b) for a, b in zip(same, x)))


class Augment(layers.Layer):
    def __init__(self, seed=42):
        super().__init__()
        self.pictures, self.masks = layers.RandomFlip("horizontal", seed=seed), layers.RandomFlip("horizontal", seed=seed)

    def call(self, pictures, masks):
        return self.pictures(pictures), self.masks(masks)


pairs = Dataset.from_tensor_slices((x.astype("float32"), x.astype("float32"))).batch(4).repeat(3)
check("pairs", [bool(np.array_equal(a, b)) for a, b in pairs.map(Augment())])
augment = Augment()
check("pairs outside", [bool(np.array_equal(*augment(x.astype("float32"), x.astype("float32")))) for _ in range(3)])
free = layers.RandomFlip("horizontal")
check("untold", len({free(x.astype("float32")).numpy().tobytes() for _ in range(6)}) > 1)
model = tf.keras.Sequential([layers.Input((12, 12, 3)), layers.RandomFlip("horizontal"), layers.Flatten()])
check("predict rests", len({model.predict(x.astype("float32"), verbose=0).tobytes() for _ in range(3)}))
prepare = tf.keras.Sequential([layers.Resizing(6, 6), layers.Rescaling(1 / 255.0), layers.CenterCrop(4, 4)])
check("prepared", [p for p in d.take(2).map(lambda p: prepare(p))], 1e-5)


class Scale(layers.Layer):
    def build(self, shape):
        self.factor = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, v):
        return v * self.factor


scale = Scale()
scale(tf.zeros([1, 3]))
check("weights of the user's", [v for v in Dataset.from_tensor_slices(np.eye(3, dtype="float32")).batch(2).map(scale)])

# A crop that does not train gives whole pictures, in models, too; one that has no choice stretches what there is.
small = np.arange(2 * 6 * 9, dtype="float32").reshape(2, 6, 9, 1)
check("whole", [layers.RandomCrop(3, 3)(p, training=False) for p in (small[:1], small[0])])
model = tf.keras.Sequential([layers.Input((6, 9, 1)), layers.RandomCrop(3, 3), layers.GlobalAveragePooling2D()])
check("whole in a model", [model.predict(small, verbose=0), model.layers[0].compute_output_shape((None, 6, 9, 1))], 1e-5)
for height, width in ((7, 8), (12, 3), (3, 12), (8, 12), (6, 4), (5, 9)):
    check(f"crop {height} {width}", layers.RandomCrop(height, width)(small[:1], training=True), 1e-5)
