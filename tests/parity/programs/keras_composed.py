"""A metric made of metrics; cloning a model with layers of one's own; a functional model of keras.ops."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from keras import ops
from parity import check


class F1(keras.metrics.Metric):
    def __init__(self, name="f1", **kwargs):
        super().__init__(name=name, **kwargs)
        self.p, self.r = keras.metrics.Precision(), keras.metrics.Recall()

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.p.update_state(y_true, y_pred, sample_weight)
        self.r.update_state(y_true, y_pred, sample_weight)

    def result(self):
        p, r = self.p.result(), self.r.result()
        return 2 * p * r / (p + r + keras.backend.epsilon())

    def reset_state(self):
        self.p.reset_state()
        self.r.reset_state()


class Scaled(layers.Layer):
    def __init__(self, factor=2.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor
        self.dense = layers.Dense(3, kernel_initializer="ones")

    def call(self, x):
        return self.dense(x) * self.factor

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


r = np.random.RandomState(0)
x = r.uniform(-1, 1, (40, 3)).astype("float32")
y = (x.sum(axis=1, keepdims=True) > 0).astype("float32")
m = keras.Sequential([keras.Input((3,)), layers.Dense(1, activation="sigmoid", kernel_initializer=keras.initializers.Constant(0.3))])
m.compile(keras.optimizers.SGD(0.5), "binary_crossentropy", metrics=[F1()])
h = m.fit(x, y, epochs=3, batch_size=10, shuffle=False, verbose=0, validation_data=(x[:20], y[:20])).history
check("keys", sorted(h))
check("f1", h["f1"], tol=0.03)
check("val_f1", h["val_f1"], tol=0.03)
f = F1()
f.update_state([[1.0], [0.0], [1.0]], [[0.9], [0.8], [0.2]])
check("by hand", float(f.result()))
i = keras.Input((3,))
model = keras.Model(i, layers.Dense(2)(Scaled(3.0)(i)))
clone = keras.models.clone_model(model)
clone.set_weights(model.get_weights())
check("clone", bool(np.allclose(model(x), clone(x), atol=1e-6)))
check("layers", [type(l).__name__ for l in clone.layers])
check("factor", clone.layers[1].factor)
s = keras.Input((4, 3))
q = ops.softmax(ops.matmul(s, ops.transpose(s, (0, 2, 1))) / ops.sqrt(3.0), axis=-1)
out = ops.concatenate([ops.mean(q, axis=1), ops.max(s, axis=1)], axis=-1)
attention = keras.Model(s, out)
check("shape", attention.output_shape)
check("ops model", attention(np.sin(np.arange(24.0)).reshape(2, 4, 3).astype("float32")))


class Distiller(keras.Model):
    def __init__(self, student, teacher):
        super().__init__()
        self.teacher, self.student = teacher, student

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, **kwargs):
        return tf.reduce_mean(tf.square(self.teacher(x, training=False) - y_pred))

    def call(self, x):
        return self.student(x)


def small(value):
    return keras.Sequential([keras.Input((3,)), layers.Dense(1, kernel_initializer=keras.initializers.Constant(value))])


teacher = small(0.5)
teacher.compile("sgd", "mse", metrics=["mae"])
teacher.fit(x, y, epochs=1, verbose=0, shuffle=False)
teacher.trainable = False
distiller = Distiller(small(0.1), teacher)
distiller.compile(keras.optimizers.SGD(0.2), metrics=["mae"])
h = distiller.fit(x, y, epochs=3, batch_size=10, shuffle=False, verbose=0).history
check("keys of the outer model", sorted(h))
check("losses of the outer model", h["loss"], tol=1e-4)
check("evaluate", distiller.evaluate(x, y, verbose=0), tol=1e-4)
