"""The global policy and floatx: layers made before and after, policies in force by scope of code, names by which it is reached."""
import keras
import tensorflow as tf
from keras import layers as L
from parity import check, raises

state = lambda: [keras.config.dtype_policy().name, keras.config.floatx(), tf.keras.mixed_precision.global_policy().name, keras.backend.floatx()]
check("first", state())
before = L.Dense(2)
tf.keras.mixed_precision.set_global_policy("mixed_float16")
after = L.Dense(2)
check("set", [state(), before.dtype_policy.name, after.dtype_policy.name, before.compute_dtype, after.compute_dtype])
check("given", [L.Dense(1, dtype="float32").dtype_policy.name, L.Dense(1, dtype=tf.float16).dtype_policy.name, L.Dense(1, dtype=None).dtype_policy.name,
                L.Dense(1, dtype=keras.DTypePolicy("bfloat16")).dtype_policy.name])
tf.keras.mixed_precision.set_global_policy(tf.keras.mixed_precision.Policy("mixed_bfloat16"))
check("an object", [state(), tf.keras.mixed_precision.Policy("mixed_bfloat16").compute_dtype])
keras.config.set_dtype_policy("float32")
keras.config.set_floatx("float16")
check("floatx", [keras.config.floatx(), L.Dense(1).dtype_policy.name, keras.config.dtype_policy().name, str(keras.Variable(1.0).dtype), str(keras.Input((2,)).dtype)])
keras.config.set_floatx("float64")
check("floatx 64", [L.Dense(1).compute_dtype, str(keras.ops.convert_to_tensor(1.0).dtype.name), str(keras.Input((2,)).dtype)])
keras.config.set_floatx("bfloat16")
check("floatx bfloat16", [keras.config.floatx(), L.Dense(1).compute_dtype])
raises(ValueError, lambda: keras.config.set_floatx("int32"))
raises(ValueError, lambda: keras.config.set_floatx("mixed_float16"))
keras.config.set_floatx("float32")
keras.config.set_dtype_policy("mixed_bfloat16")
check("inputs under a policy", [str(keras.Input((2,)).dtype), str(keras.Input((2,), dtype="int32").dtype), [str(t.dtype) for t in keras.Sequential([L.Input((3,)), L.Dense(1)]).inputs]])
check("state of an optimizer", [str(v.dtype) for v in keras.optimizers.Adam().variables])
check("layers without weights", [L.ReLU().compute_dtype, L.Flatten().dtype_policy.name, L.Rescaling(2.0).compute_dtype])
check("a layer that is changed", [after.dtype_policy.name, setattr(after, "dtype_policy", "float32"), after.compute_dtype])
keras.config.set_dtype_policy("float32")
check("last", state())
