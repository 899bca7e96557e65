"""Whole models as .h5, exports and tf.saved_model, interrupted fits."""
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from parity import check, raises

os.chdir(tempfile.mkdtemp())
r = np.random.RandomState(0)
x, y = r.rand(8, 4).astype("float32"), r.rand(8, 2).astype("float32")


def new_model():
    inputs = keras.Input((4,))
    hidden = layers.Dense(3, activation="relu", name="hidden")(inputs)
    model = keras.Model(inputs, layers.Dense(2, name="out")(layers.Add()([hidden, layers.BatchNormalization()(hidden)])))
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), keras.losses.MeanSquaredError())
    return model


model = new_model()
state = np.random.RandomState(1)
model.set_weights([state.uniform(0.1, 1, w.shape).astype("float32") for w in model.get_weights()])
model.fit(x, y, epochs=2, shuffle=False, verbose=0)
model.save("m.h5")
back = keras.models.load_model("m.h5", compile=False)
check("h5", back.predict(x, verbose=0), 1e-4)
check("h5 layers", [layer.name for layer in back.layers])
other = new_model()
other.load_weights("m.h5")
check("weights of it", bool(np.allclose(other.predict(x, verbose=0), model.predict(x, verbose=0), atol=1e-6)))
model.export("out", verbose=False)
loaded = tf.saved_model.load("out")
check("served", loaded.serve(x), 1e-4)
check("as a layer", keras.layers.TFSMLayer("out", call_endpoint="serve")(x), 1e-4)
raises(ValueError, lambda: model.save("no_ending"))


class Stop(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2:
            raise RuntimeError("now")


backup = keras.callbacks.BackupAndRestore("backup")
raises(RuntimeError, lambda: model.fit(x, y, epochs=4, shuffle=False, verbose=0, callbacks=[backup, Stop()]))
history = model.fit(x, y, epochs=4, shuffle=False, verbose=0, callbacks=[backup])
check("goes on", [len(history.history["loss"]), history.epoch, os.path.exists("backup")])
check("loss", history.history["loss"], 1e-3)


class Scale(tf.Module):
    def __init__(self):
        super().__init__()
        self.factor, self.parts = tf.Variable(3.0), [tf.Variable([1.0, 2.0])]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, t):
        return t * self.factor + self.parts[0]


scale = Scale()
scale.factor.assign(5.0)
tf.saved_model.save(scale, "scale")
loaded = tf.saved_model.load("scale")
check("module", loaded(tf.constant([1.0, 2.0])))
check("is one", tf.saved_model.contains_saved_model("scale"))
