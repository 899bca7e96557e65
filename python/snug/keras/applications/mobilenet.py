"""MobileNet: depthwise 3x3 and pointwise 1x1 convolutions in turn."""
from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import check, decode_predictions, entry, finish, of_mode, pooled  # noqa: F401

preprocess_input = of_mode("tf")
#           filters of the pointwise convolution, stride of the depthwise one
_BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1))


def _norm_act(x, name):
    x = L.BatchNormalization(axis=-1, name=name + "_bn")(x)
    return L.ReLU(6.0, name=name + "_relu")(x)


def _block(x, filters, multiplier, stride, i):
    if stride == 2:
        x = L.ZeroPadding2D(((0, 1), (0, 1)), name=f"conv_pad_{i}")(x)
    x = L.DepthwiseConv2D((3, 3), padding="same" if stride == 1 else "valid", depth_multiplier=multiplier, strides=(stride, stride),
                          use_bias=False, name=f"conv_dw_{i}")(x)
    x = _norm_act(x, f"conv_dw_{i}")
    x = L.Conv2D(filters, (1, 1), padding="same", use_bias=False, strides=(1, 1), name=f"conv_pw_{i}")(x)
    return _norm_act(x, f"conv_pw_{i}")


def MobileNet(input_shape=None, alpha=1.0, depth_multiplier=1, dropout=1e-3, include_top=True, weights="imagenet", input_tensor=None,
              pooling=None, classes=1000, classifier_activation="softmax", name=None):
    check(weights, include_top, classes)
    inputs = entry(input_shape, input_tensor, 224, 32, include_top)
    x = L.Conv2D(int(32 * alpha), (3, 3), padding="same", use_bias=False, strides=(2, 2), name="conv1")(inputs)
    x = L.BatchNormalization(axis=-1, name="conv1_bn")(x)
    x = L.ReLU(6.0, name="conv1_relu")(x)
    for i, (filters, stride) in enumerate(_BLOCKS, 1):
        x = _block(x, int(filters * alpha), depth_multiplier, stride, i)
    if include_top:
        x = L.GlobalAveragePooling2D(keepdims=True)(x)
        x = L.Dropout(dropout, name="dropout")(x)
        x = L.Conv2D(classes, (1, 1), padding="same", name="conv_preds")(x)
        x = L.Reshape((classes,), name="reshape_2")(x)
        x = L.Activation(activation=classifier_activation, name="predictions")(x)
    else:
        x = pooled(x, pooling, names=False)
    return finish(inputs, x, name or f"mobilenet_{alpha:0.2f}_{inputs.shape[1]}", weights)
