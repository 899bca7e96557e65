"""Metric classes, one of them made of others, and callbacks that watch and steer."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import backend as K
class CategoricalTruePositives(keras.metrics.Metric):
    def __init__(self, name="categorical_true_positives", **kwargs):
        super().__init__(name=name, **kwargs)
        self.true_positives = self.add_weight(name="ctp", initializer="zeros")
    def update_state(self, y_true, y_pred, sample_weight=None):
        y_pred = tf.reshape(tf.argmax(y_pred, axis=1), shape=(-1, 1))
        values = tf.cast(y_true, "int32") == tf.cast(y_pred, "int32")
        values = tf.cast(values, "float32")
        if sample_weight is not None:
            sample_weight = tf.cast(sample_weight, "float32")
            values = tf.multiply(values, sample_weight)
        self.true_positives.assign_add(tf.reduce_sum(values))
    def result(self):
        return self.true_positives
    def reset_state(self):
        self.true_positives.assign(0.0)
class F1(tf.keras.metrics.Metric):
    def __init__(self, name="f1", **kw):
        super().__init__(name=name, **kw)
        self.p = tf.keras.metrics.Precision(); self.r = tf.keras.metrics.Recall()
    def update_state(self, y_true, y_pred, sample_weight=None):
        self.p.update_state(y_true, y_pred, sample_weight); self.r.update_state(y_true, y_pred, sample_weight)
    def result(self):
        p, r = self.p.result(), self.r.result()
        return 2 * p * r / (p + r + K.epsilon())
    def reset_state(self):
        self.p.reset_state(); self.r.reset_state()
class LossHistory(keras.callbacks.Callback):
    def on_train_begin(self, logs={}):
        self.losses = []; self.lr = []
    def on_batch_end(self, batch, logs={}):
        self.losses.append(logs.get("loss"))
    def on_epoch_end(self, epoch, logs=None):
        self.lr.append(float(keras.backend.get_value(self.model.optimizer.learning_rate)))
        if logs.get("accuracy", 0) > 2: self.model.stop_training = True
        print("epoch", epoch, sorted(logs))
class LRSched(keras.callbacks.Callback):
    def __init__(self, schedule):
        super().__init__(); self.schedule = schedule
    def on_epoch_begin(self, epoch, logs=None):
        lr = float(self.model.optimizer.learning_rate)
        new = self.schedule(epoch, lr)
        self.model.optimizer.learning_rate.assign(new) if epoch % 2 else setattr(self.model.optimizer, "learning_rate", new)
        print(f"\nEpoch {epoch}: Learning rate is {float(np.array(self.model.optimizer.learning_rate))}.")
r = np.random.RandomState(0)
x = r.rand(96, 6).astype("float32"); y = (x.sum(1) > 3).astype("float32")
m = keras.Sequential([keras.layers.Dense(8, activation="tanh", input_dim=6), keras.layers.Dense(1, activation="sigmoid")])
m.set_weights([r.randn(*w.shape) * 0.5 for w in m.get_weights()])
m.compile("sgd", "binary_crossentropy", metrics=["accuracy", F1()])
lh = LossHistory()
h = m.fit(x, y, epochs=4, batch_size=32, verbose=0, shuffle=False, callbacks=[lh, LRSched(lambda e, lr: lr * 0.9),
   keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print("lam", epoch, round(logs["loss"], 4))), keras.callbacks.TerminateOnNaN()])
for k in sorted(h.history): print(k, np.round(np.array(h.history[k], dtype="float64"), 4))
print(np.round(lh.losses, 4), np.round(lh.lr, 6))
m2 = keras.Sequential([keras.layers.Dense(3, activation="softmax", input_shape=(6,))])
m2.set_weights([r.randn(*w.shape) * 0.5 for w in m2.get_weights()])
m2.compile(keras.optimizers.RMSprop(1e-3), loss="sparse_categorical_crossentropy", metrics=[CategoricalTruePositives()])
h = m2.fit(x, r.randint(0, 3, (96, 1)), batch_size=32, epochs=2, verbose=0, shuffle=False, class_weight={0: 1., 1: 2., 2: 0.5})
print({k: np.round(np.array(v, dtype="float64"), 3).tolist() for k, v in h.history.items()})
met = CategoricalTruePositives(); met.update_state([[0], [1]], [[.9, .1], [.2, .8]]); print(met.result().numpy(), float(met.result()))
