"""What guides and posts use in passing: gradients of one's own with variables, name scopes, division by zero, complex numbers that diverge."""
import numpy as np
import tensorflow as tf
from parity import check, raises

v = tf.Variable(3.0)


@tf.custom_gradient
def scaled(x):
    def grad(dy, variables=None):
        return dy * v, [dy * x * 10.0 for _ in variables]
    return x * v, grad


x = tf.constant(2.0)
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = scaled(x) + v
check("with variables", [tape.gradient(y, x), tape.gradient(y, v)])


@tf.custom_gradient
def inner(x):
    return tf.round(x), lambda dy: dy * 2.0


@tf.custom_gradient
def outer(x):
    y = inner(x) * 3.0
    return y, lambda dy: dy * 5.0


with tf.GradientTape() as tape:
    tape.watch(x)
    y = outer(x * 1.5)
check("one within another", tape.gradient(y, x))


class Layer(tf.Module):
    @tf.Module.with_name_scope
    def __call__(self, x):
        if not hasattr(self, "w"):
            self.w = tf.Variable(tf.ones([2, 2]), name="w")
        return x @ self.w


layer = Layer()
layer(tf.ones([1, 2]))
check("scope of a module", [layer.w.name, layer.name_scope.name])
with tf.name_scope("a") as a, tf.name_scope("b") as b:
    check("scopes", [a, b, tf.Variable(1.0, name="q").name, tf.Variable(1.0).name])
check("outside", tf.Variable(1.0, name="q").name)
raises(tf.errors.InvalidArgumentError, lambda: tf.constant(1) // 0)
raises(tf.errors.InvalidArgumentError, lambda: tf.constant([1, 2]) % tf.constant([1, 0]))
check("floats", [tf.constant(1.0) // 0.0, tf.constant(7) / 0])
grid_y, grid_x = np.mgrid[-1.2:1.2:0.4, -2:1:0.5]
zs = xs = tf.constant((grid_x + 1j * grid_y).astype(np.complex64))
ns = tf.zeros(xs.shape)
for _ in range(12):
    zs = zs * zs + xs
    ns += tf.cast(tf.abs(zs) < 4, tf.float32)
check("mandelbrot", ns)
check("without offset and scale", tf.nn.batch_normalization(tf.constant([[1.0, 2.0]]), 2.0, 1.0, None, None, 1e-3))
check("next", tf.data.Dataset.range(3).as_numpy_iterator().next())

# --- settings that one device need not heed -------------------------------------------------------------
shared = tf.Variable([1.0, 2.0], synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.MEAN)
optimizer = tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5))
optimizer.apply_gradients([(tf.ones(2), shared)])
check("variables of an optimizer", [tuple(v.shape) for v in optimizer.variables])
check("bits", [tf.bitcast(tf.constant(1.0), tf.int32), tf.bitcast(tf.constant([[1, 0, 0, 0]], tf.uint8), tf.int32)])
