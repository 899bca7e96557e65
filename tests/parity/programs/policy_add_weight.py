"""Weights of a layer's own under policies: dtypes that were asked for, what reads give, updates within call, what the layer lists."""
import keras
import numpy as np
import tensorflow as tf
from parity import check

name = lambda t: str(tf.as_dtype(t.dtype).name)


class Counted(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.total = self.add_weight(shape=(), initializer="zeros", trainable=False, name="total")
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, dtype="int32", name="calls")

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], 2), initializer=keras.initializers.Constant(0.1), name="kernel")
        self.half = self.add_weight(shape=(2,), initializer="ones", dtype="float16", name="half")
        self.exact = self.add_weight(shape=(2,), initializer="ones", dtype="float64", name="exact", autocast=False)

    def call(self, x):
        self.total.assign_add(tf.reduce_sum(tf.cast(x, self.total.dtype)))
        self.calls.assign_add(1)
        y = tf.matmul(x, self.kernel)
        self.seen = [name(y), name(tf.convert_to_tensor(self.half)), name(tf.convert_to_tensor(self.exact)), name(self.kernel + 0), name(self.kernel * 2.0)]
        return y + tf.cast(self.half, y.dtype)


for policy in ("float32", "mixed_float16", "mixed_bfloat16", "float16", "float64"):
    layer = Counted(dtype=policy)
    y = layer(tf.ones((3, 4)))
    layer(tf.ones((3, 4)))
    check(policy, [name(y), layer.seen, [str(v.dtype) for v in layer.weights], [v.name for v in layer.trainable_weights]])
    check(f"{policy}: numbers", [tf.cast(y, tf.float32), float(np.asarray(tf.cast(layer.total, tf.float32))), int(layer.calls.numpy())], tol=1e-2)
    check(f"{policy}: outside of a call", [name(tf.convert_to_tensor(layer.kernel)), str(layer.kernel.dtype), layer.count_params()])
layer = keras.layers.Dense(2, dtype="mixed_bfloat16")
layer.build((None, 3))
check("of Dense", [str(layer.kernel.dtype), str(layer.bias.dtype), layer.kernel.shape.as_list() if hasattr(layer.kernel.shape, "as_list") else list(layer.kernel.shape)])
v = keras.Variable(np.ones(2), dtype="bfloat16")
v.assign([1.5, 2.00390625])
check("a variable of bfloat16", [str(v.dtype), tf.cast(v, tf.float32)])
