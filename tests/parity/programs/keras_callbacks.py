"""Callbacks: custom, EarlyStopping, LearningRateScheduler, ReduceLROnPlateau, ModelCheckpoint, LambdaCallback, CSVLogger."""
import os
import tempfile
import numpy as np
from tensorflow import keras
from parity import check

x = np.linspace(-1, 1, 32).reshape(16, 2).astype("float32")
y = (x[:, :1] * 2 - x[:, 1:]).astype("float32")


def build(rate=0.1):
    m = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, kernel_initializer="ones")])
    m.compile(keras.optimizers.SGD(rate), "mse", metrics=["mae"])
    return m


events = []


class Log(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        events.append("train begin")

    def on_epoch_begin(self, epoch, logs=None):
        events.append(f"epoch {epoch}")

    def on_train_batch_end(self, batch, logs=None):
        events.append(f"batch {batch} {sorted(logs)}")

    def on_epoch_end(self, epoch, logs=None):
        events.append(f"end {epoch} {sorted(logs)}")
        if epoch == 1:
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        events.append("train end")


build().fit(x, y, epochs=5, batch_size=8, verbose=0, callbacks=[Log()], validation_data=(x, y))
check("events", events)
stop = keras.callbacks.EarlyStopping(monitor="loss", patience=2, min_delta=1e3, restore_best_weights=True)
m = build()
check("early stopping", len(m.fit(x, y, epochs=20, verbose=0, shuffle=False, callbacks=[stop]).history["loss"]))
check("stopped", stop.stopped_epoch)
m = build()
rates = []
m.fit(x, y, epochs=3, verbose=0, callbacks=[
    keras.callbacks.LearningRateScheduler(lambda epoch, lr: lr * 0.5),
    keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: rates.append(float(m.optimizer.learning_rate)))])
check("rates", rates)
m = build()
m.fit(x, y, epochs=4, verbose=0, callbacks=[keras.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.1, patience=1, min_delta=1e3)])
check("plateau", float(m.optimizer.learning_rate))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "w.weights.h5")
    m = build()
    m.fit(x, y, epochs=2, verbose=0, callbacks=[
        keras.callbacks.ModelCheckpoint(path, save_weights_only=True, monitor="loss", save_best_only=True),
        keras.callbacks.CSVLogger(os.path.join(folder, "log.csv"))])
    check("checkpoint", os.path.exists(path))
    lines = open(os.path.join(folder, "log.csv")).read().splitlines()
    check("csv", [lines[0], len(lines)])
m = build(1e30)
check("nan", len(m.fit(x, y, epochs=3, batch_size=4, verbose=0, callbacks=[keras.callbacks.TerminateOnNaN()]).history["loss"]))
h = keras.callbacks.History()
build().fit(x, y, epochs=2, verbose=0, callbacks=[h])
check("history", sorted(h.history))


class Order(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        check(f"order of batch {batch}", list(logs))


sorted_logs = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
sorted_logs.compile("sgd", "mse", metrics=["mae", "accuracy"])
sorted_logs.fit(np.ones((4, 2)), np.ones((4, 1)), batch_size=2, verbose=0, callbacks=[Order()])
