"""Segmentation with a U-Net of separable and transposed convolutions, a Dice metric."""
import numpy as np, tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
def get_model(img_size, num_classes):
    inputs = keras.Input(shape=img_size + (3,))
    x = layers.Conv2D(8, 3, strides=2, padding="same")(inputs); x = layers.BatchNormalization()(x); x = layers.Activation("relu")(x)
    previous_block_activation = x
    for filters in [8, 16]:
        x = layers.Activation("relu")(x); x = layers.SeparableConv2D(filters, 3, padding="same")(x); x = layers.BatchNormalization()(x)
        x = layers.Activation("relu")(x); x = layers.SeparableConv2D(filters, 3, padding="same")(x); x = layers.BatchNormalization()(x)
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        residual = layers.Conv2D(filters, 1, strides=2, padding="same")(previous_block_activation)
        x = layers.add([x, residual]); previous_block_activation = x
    for filters in [16, 8, 4]:
        x = layers.Activation("relu")(x); x = layers.Conv2DTranspose(filters, 3, padding="same")(x); x = layers.BatchNormalization()(x)
        x = layers.UpSampling2D(2)(x)
        residual = layers.UpSampling2D(2)(previous_block_activation); residual = layers.Conv2D(filters, 1, padding="same")(residual)
        x = layers.add([x, residual]); previous_block_activation = x
    outputs = layers.Conv2D(num_classes, 3, activation="softmax", padding="same")(x)
    return keras.Model(inputs, outputs)
m = get_model((32, 32), 3); r = np.random.RandomState(0)
m.set_weights([np.abs(r.randn(*w.shape)) * 0.2 for w in m.get_weights()])
def dice(y_true, y_pred, smooth=1.0):
    y = tf.one_hot(tf.cast(tf.squeeze(y_true, -1), tf.int32), 3); i = tf.reduce_sum(y * y_pred, axis=[1, 2, 3]); u = tf.reduce_sum(y, axis=[1, 2, 3]) + tf.reduce_sum(y_pred, axis=[1, 2, 3])
    return tf.reduce_mean((2. * i + smooth) / (u + smooth))
m.compile(optimizer=keras.optimizers.Adam(1e-3), loss="sparse_categorical_crossentropy", metrics=[dice, "accuracy"])
x = r.rand(8, 32, 32, 3).astype("float32"); y = r.randint(0, 3, (8, 32, 32, 1))
h = m.fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=False); print({k: np.round(v, 3).tolist() for k, v in h.history.items()}); print(m.count_params(), len(m.layers))
skip1 = layers.Cropping2D(1)(keras.Input((10, 10, 2))); print(skip1.shape, layers.Concatenate()([skip1, skip1]).shape)
