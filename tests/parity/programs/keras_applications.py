"""keras.applications: names and sizes of networks, and a classifier on a frozen one."""
import numpy as np
import tensorflow as tf
from parity import check

apps = tf.keras.applications
for name in ("VGG16", "ResNet50", "ResNet50V2", "MobileNet", "MobileNetV2", "DenseNet121", "Xception", "InceptionV3"):
    base = getattr(apps, name)(weights=None, include_top=False, input_shape=(96, 96, 3), pooling="avg")
    check(name, [base.name, base.count_params(), len(base.layers), base.layers[-2].name, list(base.output.shape)])
    tf.keras.backend.clear_session()

top = apps.MobileNetV2(weights=None, classes=7, input_shape=(64, 64, 3))
check("classes", [top.layers[-1].name, list(top.output.shape), len(top.trainable_weights)])

base = apps.MobileNetV2(weights=None, include_top=False, input_shape=(64, 64, 3))
base.trainable = False
x = tf.keras.Input((64, 64, 3))
y = base(x, training=False)
y = tf.keras.layers.GlobalAveragePooling2D()(y)
model = tf.keras.Model(x, tf.keras.layers.Dense(3, activation="softmax")(y))
check("frozen", [len(model.trainable_weights), len(model.non_trainable_weights)])

pixels = np.arange(24, dtype="float32").reshape(1, 2, 4, 3) * 10
for module in (apps.vgg16, apps.mobilenet_v2, apps.densenet, apps.resnet50, apps.efficientnet):
    check("preprocess " + module.__name__.split(".")[-1], np.asarray(module.preprocess_input(pixels.copy())))

try:
    apps.VGG16(weights="nowhere")
except ValueError as error:
    check("weights", type(error).__name__)
