"""Time-series forecasting: windows, baseline, linear, dense, convolution and LSTM models compared."""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(42)
t = np.arange(600)
series = np.sin(2 * np.pi * t / 24) + 0.3 * np.sin(2 * np.pi * t / 7) + 0.001 * t
split = 450
mean, std = series[:split].mean(), series[:split].std()
series = ((series - mean) / std).astype("float32")
WINDOW = 24


def make_windows(values):
    x = np.stack([values[i:i + WINDOW] for i in range(len(values) - WINDOW)])
    y = values[WINDOW:]
    return x[..., np.newaxis], y[:, np.newaxis]


x_train, y_train = make_windows(series[:split])
x_val, y_val = make_windows(series[split:])
print(x_train.shape, y_train.shape, x_val.shape)


class Baseline(tf.keras.Model):
    def call(self, inputs):
        return inputs[:, -1, :]


baseline = Baseline()
baseline.compile(loss=tf.keras.losses.MeanSquaredError(), metrics=[tf.keras.metrics.MeanAbsoluteError()])
loss, mae = baseline.evaluate(x_val, y_val, verbose=0)
print(f"baseline {loss:.4f} {mae:.4f}")


def compile_and_fit(model, epochs=6):
    early_stopping = tf.keras.callbacks.EarlyStopping(monitor="val_loss", patience=3, mode="min")
    model.compile(loss=tf.keras.losses.MeanSquaredError(), optimizer=tf.keras.optimizers.Adam(0.01), metrics=[tf.keras.metrics.MeanAbsoluteError()])
    return model.fit(x_train, y_train, epochs=epochs, batch_size=64, validation_data=(x_val, y_val), callbacks=[early_stopping], verbose=0)


linear = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(units=1)])
dense = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1)])
conv = tf.keras.Sequential([tf.keras.layers.Conv1D(8, kernel_size=5, activation="relu"), tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
lstm = tf.keras.Sequential([tf.keras.layers.LSTM(8, return_sequences=False), tf.keras.layers.Dense(units=1)])
for name, model in (("linear", linear), ("dense", dense), ("conv", conv), ("lstm", lstm)):
    history = compile_and_fit(model)
    print(f"{name}: input {model.input_shape}, {model.count_params()} parameters, beats the start: "
          f"{history.history['val_loss'][-1] < history.history['val_loss'][0]}, under 1: {history.history['val_mean_absolute_error'][-1] < 1.0}")
window = x_val[:1].copy()
forecast = []
for _ in range(12):
    p = dense(window).numpy()[0, 0]
    forecast.append(p)
    window = np.roll(window, -1, axis=1)
    window[0, -1, 0] = p
print(len(forecast), bool(np.all(np.abs(forecast) < 5)))
