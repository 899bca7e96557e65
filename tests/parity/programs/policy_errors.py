"""What is refused, and what the message names: unknown policies, dtypes that do not go together, optimizers, saved policies."""
import re

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from parity import check, raises


def says(name, function, *words):
    try:
        function()
    except Exception as error:
        check(name, [isinstance(error, (ValueError, TypeError, tf.errors.InvalidArgumentError)), [bool(re.search(w, str(error))) for w in words]])
    else:
        check(name, "nothing raised")


says("unknown", lambda: keras.DTypePolicy("mixed_half"), "mixed_half", "mixed precision", "mixed_float16")
says("no name", lambda: keras.DTypePolicy(16), "16", "string")
says("global", lambda: keras.config.set_dtype_policy("float15"), "float15", "mixed_bfloat16")
says("global number", lambda: keras.config.set_dtype_policy(16), "policy", "16")
says("old door", lambda: tf.keras.mixed_precision.set_global_policy("mixed_float32"), "mixed_float32")
says("of a layer", lambda: L.Dense(2, dtype="float99"), "float99")
raises((ValueError, TypeError), lambda: L.Dense(2, dtype=object()))
raises((ValueError, TypeError), lambda: L.Dense(2, dtype=5))
says("in a map", lambda: keras.dtype_policies.DTypePolicyMap().__setitem__("a", "float99"), "float99")
says("mixed operands", lambda: tf.constant(1.0, tf.float16) + tf.constant(1.0), "half|float16|f16", "float|f32")
says("assigned", lambda: tf.Variable(1.0, dtype=tf.float16).assign(tf.constant(1.0)), "half|float16|f16", "float|f32")
says("joined", lambda: tf.concat([tf.ones((1,), tf.float16), tf.ones((1,))], 0), "half|float16|f16", "float|f32")
says("converted", lambda: tf.convert_to_tensor(tf.ones((1,), tf.float16), tf.float32), "float32", "float16")
says("scaled twice", lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(), dynamic=False), "dynamic=False")
raises((ValueError, TypeError), lambda: keras.optimizers.LossScaleOptimizer())
int_policy = keras.DTypePolicy("int32")
check("whole numbers", [int_policy.compute_dtype, int_policy.variable_dtype])
layer = L.Flatten(dtype="int32")
check("a layer of whole numbers", layer(np.ones((2, 3), "int32")).dtype.name)
raises((ValueError, TypeError), lambda: keras.Variable([1.0], dtype="float99"))
raises(ValueError, lambda: keras.backend.set_floatx("half"))
