"""In the style of "Training and evaluation with the built-in methods"."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

r = np.random.RandomState(0)
x_train = r.rand(300, 20).astype("float32")
y_train = np.argmax(x_train[:, :10], axis=1).astype("float32")
x_val, y_val = x_train[-60:], y_train[-60:]
x_train, y_train = x_train[:-60], y_train[:-60]
x_test, y_test = x_val, y_val


def get_uncompiled_model():
    inputs = keras.Input(shape=(20,), name="digits")
    x = layers.Dense(32, activation="relu", name="dense_1")(inputs)
    x = layers.Dense(32, activation="relu", name="dense_2")(x)
    outputs = layers.Dense(10, activation="softmax", name="predictions")(x)
    return keras.Model(inputs=inputs, outputs=outputs)


def get_compiled_model():
    model = get_uncompiled_model()
    model.compile(optimizer="rmsprop", loss="sparse_categorical_crossentropy", metrics=["sparse_categorical_accuracy"])
    return model


model = get_uncompiled_model()
model.compile(optimizer=keras.optimizers.RMSprop(), loss=keras.losses.SparseCategoricalCrossentropy(),
              metrics=[keras.metrics.SparseCategoricalAccuracy()])
history = model.fit(x_train, y_train, batch_size=64, epochs=2, validation_data=(x_val, y_val), verbose=0)
print(sorted(history.history))
results = model.evaluate(x_test, y_test, batch_size=128, verbose=0)
print(len(results))
predictions = model.predict(x_test[:3], verbose=0)
print("predictions shape:", predictions.shape)


def custom_mean_squared_error(y_true, y_pred):
    return tf.reduce_mean(tf.square(y_true - y_pred), axis=-1)


model = get_uncompiled_model()
model.compile(optimizer=keras.optimizers.Adam(), loss=custom_mean_squared_error)
y_train_one_hot = tf.one_hot(tf.cast(y_train, tf.int32), depth=10)
print(len(model.fit(x_train, y_train_one_hot, batch_size=64, epochs=1, verbose=0).history["loss"]))


class CustomMSE(keras.losses.Loss):
    def __init__(self, regularization_factor=0.1, name="custom_mse"):
        super().__init__(name=name)
        self.regularization_factor = regularization_factor

    def call(self, y_true, y_pred):
        mse = tf.reduce_mean(tf.square(y_true - y_pred), axis=-1)
        reg = tf.reduce_mean(tf.square(0.5 - y_pred), axis=-1)
        return mse + reg * self.regularization_factor


model = get_uncompiled_model()
model.compile(optimizer=keras.optimizers.Adam(), loss=CustomMSE())
model.fit(x_train, y_train_one_hot, batch_size=64, epochs=1, verbose=0)


class CategoricalTruePositives(keras.metrics.Metric):
    def __init__(self, name="categorical_true_positives", **kwargs):
        super().__init__(name=name, **kwargs)
        self.true_positives = self.add_weight(shape=(), name="ctp", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_pred = tf.reshape(tf.argmax(y_pred, axis=1), shape=(-1, 1))
        values = tf.cast(tf.cast(tf.reshape(y_true, (-1, 1)), "int32") == tf.cast(y_pred, "int32"), "float32")
        if sample_weight is not None:
            sample_weight = tf.cast(sample_weight, "float32")
            values = tf.multiply(values, sample_weight)
        self.true_positives.assign_add(tf.reduce_sum(values))

    def result(self):
        return self.true_positives.value

    def reset_state(self):
        self.true_positives.assign(0.0)


model = get_uncompiled_model()
model.compile(optimizer=keras.optimizers.RMSprop(learning_rate=1e-3), loss=keras.losses.SparseCategoricalCrossentropy(),
              metrics=[CategoricalTruePositives()])
h = model.fit(x_train, y_train, batch_size=64, epochs=3, verbose=0)
print(all(0 <= v <= 240 for v in h.history["categorical_true_positives"]))
model = get_compiled_model()
h = model.fit(x_train, y_train, batch_size=64, validation_split=0.2, epochs=1, verbose=0)
print(sorted(h.history))
class_weight = {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0, 5: 2.0, 6: 1.0, 7: 1.0, 8: 1.0, 9: 1.0}
print("Fit with class weight")
model = get_compiled_model()
model.fit(x_train, y_train, class_weight=class_weight, batch_size=64, epochs=1, verbose=0)
sample_weight = np.ones(shape=(len(y_train),))
sample_weight[y_train == 5] = 2.0
print("Fit with sample weight")
model = get_compiled_model()
model.fit(x_train, y_train, sample_weight=sample_weight, batch_size=64, epochs=1, verbose=0)
image_input = keras.Input(shape=(16, 16, 3), name="img_input")
timeseries_input = keras.Input(shape=(None, 10), name="ts_input")
x1 = layers.Conv2D(3, 3)(image_input)
x1 = layers.GlobalMaxPooling2D()(x1)
x2 = layers.Conv1D(3, 3)(timeseries_input)
x2 = layers.GlobalMaxPooling1D()(x2)
x = layers.concatenate([x1, x2])
score_output = layers.Dense(1, name="score_output")(x)
class_output = layers.Dense(5, name="class_output")(x)
model = keras.Model(inputs=[image_input, timeseries_input], outputs=[score_output, class_output])
model.compile(optimizer=keras.optimizers.RMSprop(1e-3),
              loss=[keras.losses.MeanSquaredError(), keras.losses.CategoricalCrossentropy(from_logits=True)],
              metrics=[[keras.metrics.MeanAbsolutePercentageError(), keras.metrics.MeanAbsoluteError()],
                       [keras.metrics.CategoricalAccuracy()]])
img_data = r.random_sample(size=(20, 16, 16, 3))
ts_data = r.random_sample(size=(20, 20, 10))
score_targets = r.random_sample(size=(20, 1))
class_targets = np.eye(5)[r.randint(0, 5, 20)]
h = model.fit([img_data, ts_data], [score_targets, class_targets], batch_size=8, epochs=1, verbose=0)
print(len(h.history), "loss" in h.history)
model.compile(optimizer=keras.optimizers.RMSprop(1e-3), loss={
    "score_output": keras.losses.MeanSquaredError(), "class_output": keras.losses.CategoricalCrossentropy(from_logits=True)},
    loss_weights={"score_output": 2.0, "class_output": 1.0})
model.fit({"img_input": img_data, "ts_input": ts_data}, {"score_output": score_targets, "class_output": class_targets},
          batch_size=8, epochs=1, verbose=0)
model = get_compiled_model()
callbacks = [keras.callbacks.EarlyStopping(monitor="val_loss", min_delta=100, patience=2, verbose=0)]
print(len(model.fit(x_train, y_train, epochs=20, batch_size=64, callbacks=callbacks, validation_split=0.2, verbose=0).history["loss"]))


class LossHistory(keras.callbacks.Callback):
    def on_train_begin(self, logs):
        self.per_batch_losses = []

    def on_batch_end(self, batch, logs):
        self.per_batch_losses.append(logs.get("loss"))


keeper = LossHistory()
model.fit(x_train, y_train, epochs=1, batch_size=64, callbacks=[keeper], verbose=0)
print(len(keeper.per_batch_losses))
initial_learning_rate = 0.1
lr_schedule = keras.optimizers.schedules.ExponentialDecay(initial_learning_rate, decay_steps=100000, decay_rate=0.96, staircase=True)
optimizer = keras.optimizers.RMSprop(learning_rate=lr_schedule)
print(round(float(optimizer.learning_rate), 4))
