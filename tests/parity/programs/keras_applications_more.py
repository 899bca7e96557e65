"""keras.applications of later years: names and sizes of networks, their settings, a classifier on a frozen one."""
import numpy as np
import tensorflow as tf
from parity import check, raises

apps = tf.keras.applications


def names(model):
    """A number that changes with any layer's name or place, and with any weight's shape."""
    words = [layer.name for layer in model.layers] + [str(tuple(w.shape)) for w in model.weights]
    return sum((i + 1) * sum(word.encode()) for i, word in enumerate(words)) % 1000003


for name in ("MobileNetV3Small", "EfficientNetV2B0"):
    base = getattr(apps, name)(weights=None, include_top=False, input_shape=(96, 96, 3), pooling="avg")
    check(name, [base.name, base.count_params(), len(base.layers), names(base), list(base.output.shape)])
    tf.keras.backend.clear_session()

top = apps.MobileNetV3Small(weights=None, classes=7, input_shape=(64, 64, 3), minimalistic=True, include_preprocessing=False)
check("classes", [top.layers[-1].name, list(top.output.shape), top.count_params(), len(top.layers), names(top)])
rng = np.random.RandomState(0)
top.set_weights([rng.uniform(0.5, 1.0, w.shape) if w.path.endswith("variance") else rng.normal(size=w.shape) * 0.1 for w in top.weights])
check("predictions", top(rng.uniform(size=(1, 64, 64, 3)).astype("float32")), 1e-4)

base = apps.MobileNetV3Small(weights=None, include_top=False, input_shape=(64, 64, 3))
base.trainable = False
for layer in base.layers[-4:]:
    layer.trainable = True
check("some frozen", [len(base.trainable_weights), len(base.non_trainable_weights)])
pixels = np.arange(24, dtype="float32").reshape(1, 2, 4, 3)
for module in (apps.mobilenet_v3, apps.efficientnet_v2, apps.convnext, apps.inception_resnet_v2, apps.nasnet):
    check("preprocess " + module.__name__.split(".")[-1], np.asarray(module.preprocess_input(pixels.copy())))
raises(ValueError, lambda: apps.MobileNetV3Large(weights=None, input_shape=(16, 16, 3)))
raises(ValueError, lambda: apps.ConvNeXtTiny(weights="nowhere"))
