"""Functions scripts use now and then."""
import numpy as np
import tensorflow as tf
from parity import check

x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
check("histogram", tf.histogram_fixed_width([0.0, 0.4, 2.0, 5.0], [0.0, 5.0], nbins=5))
check("confusion", tf.math.confusion_matrix([0, 1, 2, 2], [0, 2, 2, 2]))
check("ensure_shape", tf.ensure_shape(x, (None, 3)))
check("softmax_cross", tf.keras.losses.categorical_crossentropy(tf.one_hot([1], 3), tf.nn.softmax(x[:1])))
check("edit", tf.math.reduce_euclidean_norm(x, axis=0))
check("scalar_mul", tf.math.scalar_mul(2.0, x))
check("sigmoid", tf.math.sigmoid(x))
check("top", tf.math.argmax(x, axis=1))
check("nextafter", tf.math.is_strictly_increasing([1, 2, 3]))
check("global_norm", tf.linalg.global_norm([x, x]))
check("bool mask sum", tf.reduce_sum(tf.boolean_mask(x, x > 2.0)))
check("repeat stack", tf.stack([x] * 2, axis=1).shape)
check("map", list(map(float, tf.unstack(x[0]))))
check("clip grads", [g for g in tf.clip_by_global_norm([x], 1.0)[0]])
check("constant_initializer", tf.constant_initializer(2.0)((2,)))
check("random_normal_initializer", tf.random_normal_initializer(stddev=0.1)((3, 3)).shape)
check("newaxis", x[:, tf.newaxis, :].shape)
check("function of numpy", tf.function(lambda a: tf.reduce_sum(a))(np.ones((2, 2))))
