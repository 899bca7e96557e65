"""Settings of layers as they hold and write them."""
import tensorflow as tf
from parity import check

L = tf.keras.layers
layers = [L.Conv2D(3, 3), L.Conv1D(3, 2, strides=2), L.Conv3D(2, (1, 2, 3)), L.Conv2DTranspose(3, 3, 2), L.DepthwiseConv2D(3), L.MaxPooling2D(),
          L.MaxPooling1D(3), L.AveragePooling2D(3, 2), L.ZeroPadding2D(2), L.ZeroPadding2D((1, 2)), L.ZeroPadding1D(1), L.Cropping2D(1),
          L.UpSampling2D(2), L.UpSampling1D(3), L.Dense(3), L.LSTM(4), L.BatchNormalization(), L.GlobalAveragePooling2D()]
NAMES = ("kernel_size", "strides", "dilation_rate", "pool_size", "padding", "cropping", "size", "units", "filters", "data_format", "rate")
for layer in layers:
    kind = type(layer).__name__
    check(kind, {n: str(getattr(layer, n)) for n in NAMES if hasattr(layer, n)})
    config = layer.get_config()
    check(kind + " config", {n: str(config[n]) for n in NAMES + ("activation",) if n in config})
    for n in ("bias_initializer", "recurrent_initializer", "gamma_initializer"):
        if n in config:
            check(f"{kind} {n}", [config[n]["class_name"], config[n]["module"]])
    again = type(layer).from_config(config)
    check(kind + " again", str(again.get_config().get("kernel_size")))
