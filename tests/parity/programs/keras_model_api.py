"""Smaller parts of Model: build, reset_metrics, compile options, metrics attributes, steps_per_execution, losses by list."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check, raises

m = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(1)])
m.build((None, 4))
check("built", [w.shape for w in m.weights])
check("input spec", m.input_shape)
m.set_weights([np.full(w.shape, 0.1, "float32") for w in m.get_weights()])
m.compile(optimizer="sgd", loss="mse", metrics=["mae", keras.metrics.MeanSquaredError(name="m2")], weighted_metrics=[], steps_per_execution=1, jit_compile=False)
x, y = np.ones((6, 4), "float32"), np.ones((6, 1), "float32")
check("evaluate", sorted(m.evaluate(x, y, verbose=0, return_dict=True).items()), tol=1e-4)
m.reset_metrics()
check("optimizer", type(m.optimizer).__name__)
check("loss", m.loss)
check("stop_training", m.stop_training)
check("predict batches", m.predict(x, batch_size=4, verbose=0).shape)
check("predict steps", m.predict(x, batch_size=2, steps=2, verbose=0).shape)
check("compute_metrics keys", sorted(m.get_metrics_result()))
check("trainable_variables are the same", m.trainable_variables[0] is m.layers[0].kernel)
check("non trainable", len(m.non_trainable_weights))
check("variables after compile", len(m.optimizer.variables) >= 2)
check("jit", m.jit_compile)
check("model is a layer", isinstance(m, keras.layers.Layer))
check("name", m.name.startswith("sequential"))


class Tracked(keras.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [keras.layers.Dense(2, kernel_initializer="ones") for _ in range(3)]
        self.heads = {"a": keras.layers.Dense(1), "b": keras.layers.Dense(2)}
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")
        self.free = tf.Variable(2.0)

    def call(self, x):
        for b in self.blocks:
            x = b(x)
        return {k: h(x) * self.scale for k, h in self.heads.items()}


t = Tracked()
out = t(np.ones((2, 2), "float32"))
check("dict output", {k: out[k].shape for k in sorted(out)})
check("lists and dicts are tracked", len(t.layers))
check("weights", len(t.trainable_weights))
check("predict dict", sorted(t.predict(np.ones((2, 2), "float32"), verbose=0)))


class Bad(keras.layers.Layer):
    def __init__(self):
        self.d = 1


raises((RuntimeError, AttributeError, ValueError), lambda: Bad()(tf.ones((1, 1))))
raises((ValueError, NotImplementedError), lambda: keras.Model()(tf.ones((1, 1))))
lr = keras.optimizers.Adam(1e-3)
m.compile(lr, "mse")
m.fit(x, y, epochs=1, verbose=0)
m.optimizer.learning_rate = 0.5
check("rate", float(lr.learning_rate))
check("iterations", int(m.optimizer.iterations))
check("fit returns", type(m.fit(x, y, verbose=0)).__name__)
check("params of history", m.fit(x, y, epochs=2, batch_size=3, verbose=0).params)
