"""Further distributions, by their means."""
import tensorflow as tf
from parity import check

g = tf.random.gamma((2000,), alpha=2.0)
check("gamma", abs(float(tf.reduce_mean(g)) - 2.0) < 0.2)
check("poisson", abs(float(tf.reduce_mean(tf.random.poisson((2000,), 3.0))) - 3.0) < 0.2)
