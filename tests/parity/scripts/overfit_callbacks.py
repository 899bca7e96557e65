"""Overfitting and underfitting: models of several sizes, regularisers, schedule, early stopping, checkpoints."""
import os
import tempfile
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, regularizers

tf.random.set_seed(0)
r = np.random.RandomState(0)
x = r.randn(200, 10).astype("float32")
y = ((x[:, :3].sum(axis=1, keepdims=True) + 0.5 * r.randn(200, 1)) > 0).astype("float32")
BATCH_SIZE, STEPS_PER_EPOCH = 25, 6
lr_schedule = tf.keras.optimizers.schedules.InverseTimeDecay(0.01, decay_steps=STEPS_PER_EPOCH * 10, decay_rate=1, staircase=False)
print([round(float(lr_schedule(s)), 5) for s in (0, 60, 120)])


def get_optimizer():
    return tf.keras.optimizers.Adam(lr_schedule)


def compile_and_fit(model, name, max_epochs=8):
    model.compile(optimizer=get_optimizer(), loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
                  metrics=[tf.keras.metrics.BinaryCrossentropy(from_logits=True, name="binary_crossentropy"), "accuracy"])
    callbacks = [tf.keras.callbacks.EarlyStopping(monitor="val_binary_crossentropy", patience=20)]
    return model.fit(x[:150], y[:150], batch_size=BATCH_SIZE, epochs=max_epochs, validation_data=(x[150:], y[150:]), callbacks=callbacks, verbose=0)


tiny = tf.keras.Sequential([layers.Dense(4, activation="elu", input_shape=(10,)), layers.Dense(1)])
large = tf.keras.Sequential([layers.Dense(32, activation="elu", input_shape=(10,)), layers.Dense(32, activation="elu"), layers.Dense(1)])
l2 = tf.keras.Sequential([layers.Dense(32, activation="elu", kernel_regularizer=regularizers.l2(0.001), input_shape=(10,)),
                          layers.Dense(1, kernel_regularizer=regularizers.l2(0.001))])
dropout = tf.keras.Sequential([layers.Dense(32, activation="elu", input_shape=(10,)), layers.Dropout(0.5), layers.Dense(1)])
histories = {}
for name, model in (("Tiny", tiny), ("Large", large), ("L2", l2), ("Dropout", dropout)):
    histories[name] = compile_and_fit(model, name)
    h = histories[name].history
    print(f"{name}: {model.count_params()} parameters, {len(h['loss'])} epochs, falls: {h['loss'][-1] < h['loss'][0]}")
print(sorted(histories["L2"].history))
result = l2(x)
regularization_loss = tf.add_n(l2.losses)
print("regularisation is positive:", bool(regularization_loss > 0), len(l2.losses))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "cp-{epoch:02d}.weights.h5")
    model = tf.keras.Sequential([layers.Dense(4, activation="relu", input_shape=(10,)), layers.Dense(1)])
    model.compile("adam", tf.keras.losses.BinaryCrossentropy(from_logits=True))
    model.fit(x, y, epochs=3, verbose=0, callbacks=[tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True)])
    print(sorted(os.listdir(folder)))
    loss = model.evaluate(x, y, verbose=0)
    again = tf.keras.Sequential([layers.Dense(4, activation="relu", input_shape=(10,)), layers.Dense(1)])
    again.compile("adam", tf.keras.losses.BinaryCrossentropy(from_logits=True))
    again.load_weights(os.path.join(folder, "cp-03.weights.h5"))
    print("same after loading:", abs(again.evaluate(x, y, verbose=0) - loss) < 1e-5)
