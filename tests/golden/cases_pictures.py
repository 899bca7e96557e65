"""Layers that reshape, crop, pad and repeat, and those of pictures. Random layers are recorded with factors that leave one choice:
(0.2, 0.2) is always 0.2. TensorFlow resizes and warps in f32, also in f64 models."""
import record
from record import L, R, head, keras, np, sgd, slow

IMAGES, SEQ, X, Y3 = (a[:32] for a in (record.IMAGES, record.SEQ, record.X, record.Y3))
VOLUMES = R.normal(size=(32, 3, 4, 2, 2))
BRIGHT = np.clip(IMAGES * 60 + 128, 0, 255)


def pictures(*layers):
    """A convolution before, so that the gradient passes through; one behind."""
    return lambda: [L.Input((7, 6, 3)), L.Conv2D(3, 1)] + [l() for l in layers] + [L.Conv2D(2, 2, activation="tanh"), L.Flatten()] + head()


def warped(layer):
    """Nothing before: TensorFlow's gradient of a warp is the inverse warp, which is not its adjoint."""
    return lambda: [L.Input((7, 6, 3)), layer(), L.Conv2D(2, 2, activation="tanh"), L.Flatten()] + head()


def sequences(layer):
    return lambda: [L.Input((5, 4)), L.Dense(4), layer(), L.Dense(2, activation="tanh"), L.Flatten()] + head()


def volumes(layer):
    return lambda: [L.Input((3, 4, 2, 2)), L.Dense(3), layer(), L.Dense(2, activation="tanh"), L.Flatten()] + head()


def adapted(**config):
    """Keras copies the moments when a layer is built, adapted or loaded, not when its weights are set."""
    def make():
        layer = L.Normalization(**config)
        set_weights = layer.set_weights
        layer.set_weights = lambda w: (set_weights(w), layer.finalize_state())
        return keras.Sequential([L.Input((5, 4)), layer, L.Dense(3, activation="tanh"), L.Flatten()] + head())
    return make


CASES = [
    ("repeat_vector", lambda: [L.Input((12,)), L.Dense(4), L.RepeatVector(3), L.Dense(2, activation="tanh"), L.Flatten()] + head(), X, Y3, sgd, "mse", [], 3),
    ("cropping1d", sequences(lambda: L.Cropping1D((1, 2))), SEQ, Y3, sgd, "mse", [], 3),
    ("cropping2d", pictures(lambda: L.Cropping2D(((1, 0), (2, 1)))), IMAGES, Y3, sgd, "mse", [], 3),
    ("cropping3d", volumes(lambda: L.Cropping3D(((1, 0), (1, 2), (0, 1)))), VOLUMES, Y3, sgd, "mse", [], 3),
    ("zero_padding1d", sequences(lambda: L.ZeroPadding1D((2, 1))), SEQ, Y3, sgd, "mse", [], 3),
    ("zero_padding3d", volumes(lambda: L.ZeroPadding3D(((1, 0), (0, 2), (1, 1)))), VOLUMES, Y3, sgd, "mse", [], 3),
    ("up_sampling1d", sequences(lambda: L.UpSampling1D(3)), SEQ, Y3, sgd, "mse", [], 3),
    ("up_sampling2d", pictures(lambda: L.UpSampling2D((2, 3))), IMAGES, Y3, sgd, "mse", [], 3),
    ("up_sampling3d", volumes(lambda: L.UpSampling3D((2, 1, 3))), VOLUMES, Y3, sgd, "mse", [], 3),
    ("rescaling_channels", lambda: [L.Input((7, 6, 3)), L.Rescaling([0.5, 2.0, 1.5], offset=[-0.25, 0.1, 0.3]), L.Conv2D(2, 2), L.Flatten()] + head(), IMAGES, Y3, slow, "mse", [], 3),
    ("normalization_config", lambda: [L.Input((12,)), L.Normalization(mean=[0.1 * i for i in range(12)], variance=[0.5 + i for i in range(12)])] + head(), X, Y3, sgd, "mse", [], 3),
    ("normalization_scalar", lambda: [L.Input((12,)), L.Normalization(mean=0.3, variance=2.0, invert=True)] + head(), X, Y3, slow, "mse", [], 3),
    ("normalization_adapted", adapted(), SEQ, Y3, sgd, "mse", [], 3),
    ("normalization_none", adapted(axis=None), SEQ, Y3, sgd, "mse", [], 3),
    ("normalization_axes", adapted(axis=(1, 2)), SEQ, Y3, sgd, "mse", [], 3),
    ("center_crop", pictures(lambda: L.CenterCrop(4, 3)), IMAGES, Y3, sgd, "mse", [], 3),
    ("random_rotation", warped(lambda: L.RandomRotation((0.1, 0.1))), IMAGES, Y3, sgd, "mse", [], 3),
    ("random_zoom", warped(lambda: L.RandomZoom((0.3, 0.3), fill_mode="constant", fill_value=0.5)), IMAGES, Y3, sgd, "mse", [], 3),
    ("random_zoom_apart", warped(lambda: L.RandomZoom((-0.3, -0.3), (0.2, 0.2), fill_mode="wrap")), IMAGES, Y3, sgd, "mse", [], 3),
    ("random_translation", warped(lambda: L.RandomTranslation((0.2, 0.2), (-0.3, -0.3), fill_mode="nearest")), IMAGES, Y3, sgd, "mse", [], 3),
    ("random_translation_whole", warped(lambda: L.RandomTranslation((0.2, 0.2), (-0.3, -0.3), interpolation="nearest")), IMAGES, Y3, sgd, "mse", [], 3),
    ("random_contrast", lambda: [L.Input((7, 6, 3)), L.RandomContrast((-0.2, 0.2)), L.Rescaling(0.01), L.Conv2D(2, 2, activation="tanh"), L.Flatten()] + head(), BRIGHT, Y3, sgd, "mse", [], 3),
    ("random_brightness", lambda: [L.Input((7, 6, 3)), L.RandomBrightness((-0.2, -0.2), value_range=(10, 250)), L.Rescaling(0.01), L.Conv2D(2, 2, activation="tanh"), L.Flatten()] + head(), BRIGHT, Y3, sgd, "mse", [], 3),
]
RESIZED = [
    ("up_sampling2d_bilinear", pictures(lambda: L.UpSampling2D(2, interpolation="bilinear"))),
    ("up_sampling2d_bicubic", pictures(lambda: L.UpSampling2D((2, 1), interpolation="bicubic"))),
    ("resizing", pictures(lambda: L.Resizing(4, 9))),
    ("resizing_nearest", pictures(lambda: L.Resizing(4, 9, interpolation="nearest"))),
    ("resizing_crop", pictures(lambda: L.Resizing(8, 4, crop_to_aspect_ratio=True, interpolation="bicubic"))),
    ("resizing_pad", pictures(lambda: L.Resizing(5, 9, pad_to_aspect_ratio=True, fill_value=0.7))),
    ("resizing_antialias", pictures(lambda: L.Resizing(3, 4, antialias=True))),
    ("center_crop_larger", pictures(lambda: L.CenterCrop(9, 4))),
]
CASES += [(name, make, IMAGES, Y3, sgd, "mse", [], 3) for name, make in RESIZED]
CASES += [("resizing_ints", lambda: [L.Input((7, 6, 3), dtype="int32"), L.Resizing(4, 9), L.Rescaling(0.01), L.Conv2D(2, 2, activation="tanh"), L.Flatten()] + head(),
           BRIGHT.astype(np.int32), Y3, sgd, "mse", [], 3)]
F32_ONLY = ["resizing_ints"] + [name for name, _ in RESIZED] + ["random_rotation", "random_zoom", "random_zoom_apart", "random_translation"]


def operations():
    """Functions of keras.ops that move, repeat, pad and index."""
    ops = keras.ops
    x = L.Input((5, 4))
    a = L.Dense(4)(x)
    ids = ops.argmax(a, axis=2)
    rows = [ops.flip(a, axis=1), ops.roll(a, 2, axis=1), ops.repeat(a, 2, axis=1), ops.tile(a, [1, 2, 1]), a[:, ::-1], a[:, 3:0:-2],
            ops.pad(a, ((0, 0), (1, 2), (0, 0)), mode="reflect"), ops.pad(a, ((0, 0), (1, 2), (0, 0)), mode="symmetric"),
            ops.pad(a, ((0, 0), (1, 0), (0, 0)), constant_values=0.5), ops.tril(a, k=1), ops.triu(a, k=-1),
            ops.take_along_axis(a, ops.expand_dims(ids, 2), axis=2) * a, ops.one_hot(ids, 4) * a, ops.moveaxis(ops.moveaxis(a, 1, 2), -1, 1),
            ops.take(a, 1, axis=1)[:, None], ops.unstack(a, axis=1)[2][:, None]]
    y = ops.concatenate([ops.tanh(r * (1 + 0.1 * i)) for i, r in enumerate(rows)], axis=1)
    return keras.Model(x, L.Dense(3)(L.Flatten()(y)))


CASES += [("operations_layout", operations, SEQ, Y3, slow, "mse", [], 3)]
