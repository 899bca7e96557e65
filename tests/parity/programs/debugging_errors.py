"""tf.debugging asserts, check_numerics, the classes of tf.errors."""
import numpy as np
import tensorflow as tf
from parity import check, raises

a = tf.constant([1.0, 2.0])
E = tf.errors.InvalidArgumentError
tf.debugging.assert_equal(a, a)
tf.debugging.assert_positive(a)
tf.debugging.assert_less(a, 3.0)
tf.debugging.assert_shapes([(a, ("n",))])
tf.debugging.assert_type(a, tf.float32)
tf.debugging.assert_all_finite(a, "finite")
tf.debugging.assert_near(a, a + 1e-7)
tf.debugging.assert_rank(a, 1)
raises(E, lambda: tf.debugging.assert_equal(a, a + 1.0))
raises(E, lambda: tf.debugging.assert_less(a, 1.5))
raises(E, lambda: tf.debugging.assert_greater(a, 1.0))
raises(E, lambda: tf.debugging.assert_positive(-a))
raises(E, lambda: tf.debugging.assert_near(a, a + 0.1))
raises(ValueError, lambda: tf.debugging.assert_rank(a, 2))
raises(TypeError, lambda: tf.debugging.assert_type(a, tf.int32))
raises(ValueError, lambda: tf.debugging.assert_shapes([(a, (3,))]))
raises(E, lambda: tf.debugging.check_numerics(tf.constant([1.0, np.nan]), "bad"))
raises(E, lambda: tf.debugging.check_numerics(tf.math.log(tf.constant(0.0)), "bad"))
check("check_numerics", tf.debugging.check_numerics(a, "fine"))
raises(E, lambda: tf.debugging.Assert(tf.reduce_all(a > 1.0), [a]))
check("assert passes", tf.debugging.Assert(True, [a]))


@tf.function
def guarded(x):
    tf.debugging.assert_non_negative(x, message="negative")
    return tf.sqrt(x)


check("guarded", guarded(tf.constant(4.0)))
raises(E, lambda: guarded(tf.constant(-4.0)))
check("hierarchy", [issubclass(E, tf.errors.OpError), issubclass(tf.errors.ResourceExhaustedError, tf.errors.OpError)])
try:
    tf.matmul(tf.ones((2, 3)), tf.ones((2, 3)))
except tf.errors.InvalidArgumentError as error:
    check("message", isinstance(error.message, str) and len(error.message) > 0)
    check("code", error.error_code)
raises(tf.errors.OutOfRangeError, lambda: (_ for _ in ()).throw(tf.errors.OutOfRangeError(None, None, "end")))
raises(AttributeError, lambda: tf.no_such_function)

# --- numbers that are none ------------------------------------------------------------------------------
tf.debugging.enable_check_numerics()
raises(tf.errors.InvalidArgumentError, lambda: tf.math.log(tf.constant(-1.0)).numpy())
raises(tf.errors.InvalidArgumentError, lambda: (tf.constant([1.0, 0.0]) / tf.constant([0.0, 1.0])).numpy())
check("finite", tf.math.log(tf.constant(1.0)) + 1.0)
tf.debugging.disable_check_numerics()
check("as it is", tf.math.log(tf.constant(-1.0)))
raises(tf.errors.InvalidArgumentError, lambda: tf.one_hot([1.5], 3))
raises(tf.errors.InvalidArgumentError, lambda: tf.gather([1, 2], [0.5]))
