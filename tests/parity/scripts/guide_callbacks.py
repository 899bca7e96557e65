"""In the style of "Writing your own callbacks"."""
import numpy as np
import keras


def get_model():
    model = keras.Sequential()
    model.add(keras.layers.Dense(1, kernel_initializer="ones"))
    model.compile(optimizer=keras.optimizers.RMSprop(learning_rate=0.1), loss="mean_squared_error", metrics=["mean_absolute_error"])
    return model


r = np.random.RandomState(0)
x_train, y_train = r.rand(256, 8).astype("float32"), r.rand(256).astype("float32")
x_test, y_test = r.rand(128, 8).astype("float32"), r.rand(128).astype("float32")


class CustomCallback(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        print("Starting training; got log keys: {}".format(list(logs.keys())))

    def on_train_end(self, logs=None):
        print("Stop training; got log keys: {}".format(sorted(logs.keys())))

    def on_epoch_begin(self, epoch, logs=None):
        print("Start epoch {} of training; got log keys: {}".format(epoch, list(logs.keys())))

    def on_epoch_end(self, epoch, logs=None):
        print("End epoch {} of training; got log keys: {}".format(epoch, sorted(logs.keys())))

    def on_test_begin(self, logs=None):
        print("Start testing; got log keys: {}".format(list(logs.keys())))

    def on_test_end(self, logs=None):
        print("Stop testing; got log keys: {}".format(sorted(logs.keys())))

    def on_predict_begin(self, logs=None):
        print("Start predicting; got log keys: {}".format(list(logs.keys())))

    def on_predict_end(self, logs=None):
        print("Stop predicting; got log keys: {}".format(list(logs.keys())))

    def on_train_batch_begin(self, batch, logs=None):
        print("...Training: start of batch {}; got log keys: {}".format(batch, list(logs.keys())))

    def on_train_batch_end(self, batch, logs=None):
        print("...Training: end of batch {}; got log keys: {}".format(batch, sorted(logs.keys())))

    def on_test_batch_begin(self, batch, logs=None):
        print("...Evaluating: start of batch {}; got log keys: {}".format(batch, list(logs.keys())))

    def on_test_batch_end(self, batch, logs=None):
        print("...Evaluating: end of batch {}; got log keys: {}".format(batch, sorted(logs.keys())))

    def on_predict_batch_begin(self, batch, logs=None):
        print("...Predicting: start of batch {}; got log keys: {}".format(batch, list(logs.keys())))

    def on_predict_batch_end(self, batch, logs=None):
        print("...Predicting: end of batch {}; got log keys: {}".format(batch, sorted(logs.keys())))


model = get_model()
model.fit(x_train, y_train, batch_size=128, epochs=1, verbose=0, validation_split=0.5, callbacks=[CustomCallback()])
res = model.evaluate(x_test, y_test, batch_size=128, verbose=0, callbacks=[CustomCallback()])
res = model.predict(x_test, batch_size=128, callbacks=[CustomCallback()], verbose=0)


class EarlyStoppingAtMinLoss(keras.callbacks.Callback):
    def __init__(self, patience=0):
        super().__init__()
        self.patience = patience
        self.best_weights = None

    def on_train_begin(self, logs=None):
        self.wait = 0
        self.stopped_epoch = 0
        self.best = np.inf

    def on_epoch_end(self, epoch, logs=None):
        current = logs.get("loss")
        if np.less(current, self.best):
            self.best = current
            self.wait = 0
            self.best_weights = self.model.get_weights()
        else:
            self.wait += 1
            if self.wait >= self.patience:
                self.stopped_epoch = epoch
                self.model.stop_training = True
                self.model.set_weights(self.best_weights)


model = get_model()
model.fit(x_train, y_train, batch_size=64, steps_per_epoch=5, epochs=10, verbose=0, callbacks=[EarlyStoppingAtMinLoss()])


class CustomLearningRateScheduler(keras.callbacks.Callback):
    def __init__(self, schedule):
        super().__init__()
        self.schedule = schedule

    def on_epoch_begin(self, epoch, logs=None):
        lr = self.model.optimizer.learning_rate
        scheduled_lr = self.schedule(epoch, lr)
        self.model.optimizer.learning_rate = scheduled_lr
        print(f"Epoch {epoch}: Learning rate is {float(np.array(scheduled_lr)):.4f}.")


LR_SCHEDULE = [(3, 0.05), (6, 0.01), (9, 0.005)]


def lr_schedule(epoch, lr):
    if epoch < LR_SCHEDULE[0][0] or epoch > LR_SCHEDULE[-1][0]:
        return lr
    for i in range(len(LR_SCHEDULE)):
        if epoch == LR_SCHEDULE[i][0]:
            return LR_SCHEDULE[i][1]
    return lr


model = get_model()
model.fit(x_train, y_train, batch_size=64, epochs=8, verbose=0, callbacks=[CustomLearningRateScheduler(lr_schedule)])
