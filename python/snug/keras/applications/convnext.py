"""ConvNeXt: blocks of one wide filter per channel and two dense layers, between steps that halve the picture."""
from snug import _C
from snug.keras import layers as L
from snug.keras.applications.imagenet_utils import (DEVIATION, MEAN, check, decode_predictions, entry, finish, of_mode,  # noqa: F401
                                                    pooled)

preprocess_input = of_mode(None)
#           blocks of each stage, their channels
_KINDS = {"Tiny": ((3, 3, 9, 3), (96, 192, 384, 768)), "Small": ((3, 3, 27, 3), (96, 192, 384, 768)),
          "Base": ((3, 3, 27, 3), (128, 256, 512, 1024)), "Large": ((3, 3, 27, 3), (192, 384, 768, 1536)),
          "XLarge": ((3, 3, 27, 3), (256, 512, 1024, 2048))}


class LayerScale(L._Built):
    """One factor per channel, learnt; the engine's."""
    _row = _C.layer_row("LayerScale")


def _norm(name=None):
    return L.LayerNormalization(epsilon=1e-6, name=name)


def _block(inputs, channels, name):
    x = L.Conv2D(channels, 7, padding="same", groups=channels, name=name + "_depthwise_conv")(inputs)
    x = _norm(name + "_layernorm")(x)
    x = L.Dense(4 * channels, name=name + "_pointwise_conv_1")(x)
    x = L.Activation("gelu", name=name + "_gelu")(x)
    x = L.Dense(channels, name=name + "_pointwise_conv_2")(x)
    x = LayerScale(1e-6, channels, name=name + "_layer_scale")(x)
    return inputs + L.Activation("linear", name=name + "_identity")(x)


def _halvings(channels, name):
    """What comes before each of the four stages."""
    from snug.keras import Sequential
    stem = [L.Conv2D(channels[0], 4, strides=4, name=f"{name}_stem_conv"), _norm(f"{name}_stem_layernorm")]
    return [Sequential(stem, name=f"{name}_stem")] + [
        Sequential([_norm(f"{name}_downsampling_layernorm_{i}"),
                    L.Conv2D(wide, 2, strides=2, name=f"{name}_downsampling_conv_{i}")], name=f"{name}_downsampling_block_{i}")
        for i, wide in enumerate(channels[1:])]


def _end(x, settings, name):
    include_top, pooling, classes, activation = settings
    if not include_top:
        return _norm()(pooled(x, pooling, names=False))
    x = _norm(f"{name}_head_layernorm")(L.GlobalAveragePooling2D(name=f"{name}_head_gap")(x))
    return L.Dense(classes, activation=activation, name=f"{name}_head_dense")(x)


def _network(kind, depths, channels):
    def make(include_top=True, include_preprocessing=True, weights="imagenet", input_tensor=None, input_shape=None, pooling=None,
             classes=1000, classifier_activation="softmax", name=f"convnext_{kind.lower()}"):
        check(weights, include_top, classes)
        x = inputs = entry(input_shape, input_tensor, 224, 32, include_top)
        if include_preprocessing and x.shape[-1] == 3:
            x = L.Normalization(mean=[255 * m for m in MEAN["torch"]], variance=[(255 * d)**2 for d in DEVIATION],
                                name=f"{name}_prestem_normalization")(x)
        for i, halved in enumerate(_halvings(channels, name)):
            x = halved(x)
            for j in range(depths[i]):
                x = _block(x, channels[i], f"{name}_stage_{i}_block_{j}")
        x = _end(x, (include_top, pooling, classes, classifier_activation), name)
        return finish(inputs, x, name, weights)
    make.__name__ = make.__qualname__ = f"ConvNeXt{kind}"
    return make


globals().update({f"ConvNeXt{kind}": _network(kind, *row) for kind, row in _KINDS.items()})
