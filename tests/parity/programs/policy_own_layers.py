"""Layers of one's own under policies: what variables are read as, layers inside, autocast."""
import keras
import tensorflow as tf
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)
seen = []


class Scale(keras.layers.Layer):
    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1],), initializer="ones", name="w")
        self.u = self.add_weight(shape=(shape[-1],), initializer="ones", name="u", autocast=False)
        self.n = self.add_weight(shape=(), initializer="zeros", dtype="int32", trainable=False, name="n")

    def call(self, x):
        seen.append([name(x), name(tf.convert_to_tensor(self.w)), name(tf.convert_to_tensor(self.u)), name(tf.convert_to_tensor(self.n)), str(self.w.dtype)])
        return x * tf.cast(self.w, x.dtype)


class Outer(keras.layers.Layer):
    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner
        self.v = self.add_weight(shape=(), initializer="ones", name="v")

    def call(self, x):
        y = self.inner(x)
        seen.append([name(x), name(y), name(tf.convert_to_tensor(self.v))])
        return tf.cast(y, x.dtype) * self.v


x = tf.ones((2, 3))
for policy in ("mixed_bfloat16", "mixed_float16", "float16", "bfloat16", "float64", "float32"):
    layer = Scale(dtype=policy)
    y = layer(x)
    check(policy, [name(y), seen, str(layer.w.dtype), name(tf.convert_to_tensor(layer.w))])
    seen.clear()
with tf.GradientTape() as tape:
    layer = Scale(dtype="mixed_bfloat16")
    loss = tf.reduce_sum(layer(x))
check("of variables' type", name(tape.gradient(loss, layer.w)))
seen.clear()
for outer, inner in (("mixed_bfloat16", "float32"), ("float32", "mixed_bfloat16"), ("mixed_float16", "mixed_bfloat16"), ("mixed_float16", "float16")):
    layer = Outer(Scale(dtype=inner), dtype=outer)
    layer(x)
    seen.clear()
    y = layer(x)
    check(f"{inner} in {outer}", [name(y), seen])
    seen.clear()
layer = Scale(dtype="mixed_bfloat16", autocast=False)
check("without autocast", [name(layer(x)), seen])
seen.clear()
keras.config.set_dtype_policy("mixed_bfloat16")
inner = Scale()
model = keras.Sequential([keras.Input((3,)), inner, keras.layers.Dense(2, dtype="float32")])
check("a model", [[str(t.dtype) for t in model.inputs], [str(layer.output.dtype) for layer in model.layers], model.dtype_policy.name, model.compute_dtype])
check("its result", [name(model(x)), name(model(tf.ones((2, 3), tf.float64)))])
keras.config.set_dtype_policy("float32")
ids = tf.constant([[1, 2, 0]])
y = keras.layers.Embedding(4, 2, mask_zero=True, dtype="mixed_bfloat16")(ids)
seen.clear()


class Masked(keras.layers.Layer):
    def call(self, x, mask=None):
        seen.append([name(x), mask is not None])
        return x


Masked(dtype="float32")(y)
check("masks come along", seen)
