"""Initializers by their statistics."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check

shape = (200, 300)
expected = {
    "glorot_uniform": np.sqrt(2.0 / 500), "glorot_normal": np.sqrt(2.0 / 500), "he_normal": np.sqrt(2.0 / 200),
    "he_uniform": np.sqrt(2.0 / 200), "lecun_normal": np.sqrt(1.0 / 200), "random_normal": 0.05,
    "random_uniform": 0.1 / np.sqrt(12.0), "truncated_normal": 0.05 * 0.88,
}
for name, std in expected.items():
    w = keras.initializers.get(name)(shape).numpy()
    check(name, [w.shape, str(w.dtype), abs(float(w.std()) / std - 1.0) < 0.03, abs(float(w.mean())) < 0.01])
limit = np.sqrt(6.0 / 500)
w = keras.initializers.GlorotUniform(seed=1)(shape).numpy()
check("limit", bool(np.abs(w).max() <= limit))
check("seeded", bool(np.array_equal(w, keras.initializers.GlorotUniform(seed=1)(shape).numpy())))
check("zeros", keras.initializers.Zeros()((2, 2)))
check("ones", keras.initializers.Ones()((2,)))
check("constant", keras.initializers.Constant(3.0)((2, 2)))
check("identity", keras.initializers.Identity()((3, 3)))
q = keras.initializers.Orthogonal(gain=2.0)((6, 4)).numpy()
check("orthogonal", q.T @ q / 4.0, tol=1e-4)
v = keras.initializers.VarianceScaling(scale=2.0, mode="fan_avg", distribution="uniform")(shape).numpy()
check("variance scaling", abs(float(v.var()) / (2.0 / 250) - 1.0) < 0.05)
check("config", keras.initializers.HeNormal(seed=4).get_config()["seed"])
layer = keras.layers.Dense(3, kernel_initializer="ones", bias_initializer=keras.initializers.Constant(0.5))
check("used by a layer", layer(np.ones((1, 2), "float32")))
check("conv fans", abs(float(keras.initializers.HeNormal()((3, 3, 64, 128)).numpy().std()) / np.sqrt(2 / 576) - 1) < 0.03)
