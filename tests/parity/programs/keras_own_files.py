"""Layers that save, load and build in a way of their own; what a built-in layer's subclass adds; words nobody knows."""
import copy
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from parity import check, raises

folder = tempfile.mkdtemp()
ones = np.ones((2, 4), "float32")


@keras.saving.register_keras_serializable(package="own")
class Shifted(keras.layers.Dense):
    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
        self.shift = keras.Variable(np.arange(units) * 1.0, name="shift", dtype="float32")

    def save_own_variables(self, store):
        store["k"], store["b"], store["shift"] = self.kernel, self.bias, self.shift.numpy()

    def load_own_variables(self, store):
        self.kernel.assign(store["k"])
        self.bias.assign(store["b"])
        self.shift.assign(store["shift"])

    def call(self, inputs):
        return super().call(inputs) + self.shift


@keras.saving.register_keras_serializable(package="own")
class Worded(keras.layers.Layer):
    def __init__(self, words=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.words = words

    def call(self, inputs):
        return inputs

    def save_assets(self, inner_path):
        with open(os.path.join(inner_path, "words.txt"), "w") as file:
            file.write(self.words)

    def load_assets(self, inner_path):
        with open(os.path.join(inner_path, "words.txt")) as file:
            self.words = file.read() + " again"


@keras.saving.register_keras_serializable(package="own")
class Started(keras.layers.Layer):
    def build(self, input_shape, start="zeros"):
        self.start = start
        self.w = self.add_weight(shape=(input_shape[-1], 2), initializer=start)

    def call(self, inputs):
        return inputs @ self.w

    def get_build_config(self):
        return {"start": self.start, "input_shape": self.w.shape[:1]}

    def build_from_config(self, config):
        self.build((None, config["input_shape"][0]), config["start"])


started = Started()
started.build((None, 3), "ones")
check("built by hand", [started.built, started.count_params()])
model = keras.Sequential([keras.Input((4,)), Worded("two words"), Shifted(3), started])
model.layers[1].shift.assign([5.0, 6.0, 7.0])
check("weights", [[w.name.split("_")[0], list(w.shape)] for w in model.weights])
model.save(os.path.join(folder, "m.keras"))
again = keras.models.load_model(os.path.join(folder, "m.keras"))
check("again", [again.layers[0].words, again.layers[1].shift.numpy().tolist(), again.layers[2].start])
check("same", np.allclose(model(ones), again(ones)))
model.save_weights(os.path.join(folder, "m.weights.h5"))
again.layers[1].shift.assign([0.0, 0.0, 0.0])
again.load_weights(os.path.join(folder, "m.weights.h5"))
check("weights again", np.allclose(model(ones), again(ones)))
check("registered", "own>Worded" in keras.utils.get_custom_objects())

dense = keras.layers.Dense(3, name="copied")
dense(ones)
other = copy.deepcopy(dense)
check("copied", [other.name, np.allclose(other.kernel, dense.kernel), other.kernel is dense.kernel])

for word in ("kernel_initializer", "kernel_regularizer", "bias_constraint", "activation"):
    raises(ValueError, lambda: keras.layers.Dense(2, **{word: "no_such"}))
raises(ValueError, lambda: keras.layers.LSTM(2, recurrent_activation="no_such"))
raises(ValueError, lambda: keras.layers.Dropout(1.5))
raises(TypeError, lambda: keras.layers.Dense(2)(ones, no_such=1))
raises(ValueError, lambda: keras.layers.Dense(2).count_params())

keras.mixed_precision.set_global_policy("mixed_float16")
layer = keras.layers.Dense(2)
check("mixed", [layer.dtype_policy.name, layer.variable_dtype, keras.mixed_precision.global_policy().compute_dtype,
                repr(keras.config.dtype_policy()), keras.layers.Dense(2, dtype="float32").dtype_policy.name])
keras.mixed_precision.set_global_policy("float32")
check("mixed no more", [keras.layers.Dense(2).dtype_policy.name, keras.config.floatx()])


class Shifted(keras.layers.Dense):
    def build(self, input_shape):
        super().build(input_shape)
        self.shift = self.add_weight(shape=(2,), name="shift", initializer="ones")

    def call(self, inputs):
        return super().call(inputs) + self.shift


layer = Shifted(2, name="shifted")
before = layer(ones)
layer.activation = keras.activations.relu
check("another activation", [[w.path for w in layer.weights], bool(np.allclose(tf.nn.relu(before - 1) + 1, layer(ones)))])


class Best(keras.layers.Layer):
    def call(self, found):
        return found.values * 2.0


check("a named tuple", Best()(tf.math.top_k(tf.constant([[1.0, 2.0, 3.0]]), 2)))
layer = keras.layers.Dense(2, dtype="mixed_float16")
check("a policy's name is kept", [layer.get_config()["dtype"]["config"]["name"], keras.layers.Dense.from_config(layer.get_config()).dtype_policy.name])
optimizer = keras.optimizers.SGD(0.1, momentum=0.9, gradient_accumulation_steps=4, use_ema=True)
optimizer.build([keras.Variable([1.0], name="a"), keras.Variable([2.0], name="b")])
check("order of an optimizer's variables", [v.name for v in optimizer.variables])
optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)
number = tf.Variable([1.0])
for _ in range(3):
    optimizer.apply_gradients([(tf.constant([1.0]), number)])
check("steps and updates", [int(optimizer.variables[0].numpy()), int(optimizer.iterations), number])
space = keras.utils.FeatureSpace({"a": "float", "b": "string_hashed"})
check("a FeatureSpace's configuration", keras.utils.FeatureSpace.from_config(space.get_config())(
    {"a": tf.constant([1.0]), "b": tf.constant(["q"])}).shape)
check("the input by its name", keras.layers.Dense(2, kernel_initializer="ones")(inputs=ones))
