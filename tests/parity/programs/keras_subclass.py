"""A subclassed model with layers, call(training=), and its variables."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check


class Net(keras.Model):
    def __init__(self, units=4):
        super().__init__()
        self.hidden = keras.layers.Dense(units, activation="relu")
        self.drop = keras.layers.Dropout(0.5)
        self.out = keras.layers.Dense(2)

    def call(self, x, training=False):
        x = self.hidden(x)
        x = self.drop(x, training=training)
        return self.out(x)


net = Net()
x = np.linspace(-1, 1, 12).reshape(4, 3).astype("float32")
check("no weights yet", len(net.weights))
check("shape", net(x).shape)
r = np.random.RandomState(0)
net.set_weights([r.uniform(-1, 1, w.shape).astype("float32") for w in net.get_weights()])
check("inference", net(x))
check("predict", net.predict(x, verbose=0))
check("weights", [tuple(w.shape) for w in net.weights])
check("layers", [type(l).__name__ for l in net.layers])
dropped = net.drop(tf.ones((200, 50)), training=True).numpy()
check("kept are scaled", sorted(set(dropped.ravel().tolist())))
check("half is kept", abs(float((dropped > 0).mean()) - 0.5) < 0.03)
check("inference keeps all", net.drop(tf.ones((2, 3)), training=False))
net.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
net.drop.rate = 0.0
check("train", net.train_on_batch(x, np.ones((4, 2), "float32")) is not None)
net.hidden.trainable = False
check("frozen", len(net.trainable_variables))
