"""Random tensors by shape, dtype, moments, range and reproducibility."""
import numpy as np
import tensorflow as tf
from parity import check

tf.random.set_seed(7)
n = tf.random.normal((200, 100), mean=3.0, stddev=2.0)
check("normal", [n.shape, n.dtype])
check("normal moments", [abs(float(tf.reduce_mean(n)) - 3.0) < 0.1, abs(float(tf.math.reduce_std(n)) - 2.0) < 0.1])
u = tf.random.uniform((200, 100), minval=-1.0, maxval=3.0)
check("uniform range", [float(tf.reduce_min(u)) >= -1.0, float(tf.reduce_max(u)) < 3.0])
check("uniform mean", abs(float(tf.reduce_mean(u)) - 1.0) < 0.05)
i = tf.random.uniform((1000,), 0, 5, dtype=tf.int32)
check("integers", sorted(set(i.numpy().tolist())))
check("dtype", i.dtype)
t = tf.random.truncated_normal((100, 100), stddev=0.5)
check("truncated", float(tf.reduce_max(tf.abs(t))) <= 1.0)
check("truncated std", abs(float(tf.math.reduce_std(t)) - 0.44) < 0.03)
s = tf.random.shuffle(tf.range(50))
check("shuffled", sorted(s.numpy().tolist()) == list(range(50)))
check("not the same order", s.numpy().tolist() != list(range(50)))
c = tf.random.categorical(tf.math.log([[0.1, 0.2, 0.7]]), 5000)
check("categorical", [c.shape, c.dtype])
check("frequencies", bool(np.all(np.abs(np.bincount(c.numpy()[0], minlength=3) / 5000 - [0.1, 0.2, 0.7]) < 0.04)))
check("double", tf.random.normal((2,), dtype=tf.float64).dtype)
check("two draws differ", bool(tf.reduce_any(tf.random.normal((3,)) != tf.random.normal((3,)))))

# --- limits that are tensors ----------------------------------------------------------------------------
count = tf.Variable(7)
drawn = tf.random.uniform((500,), 0, count, tf.int32)
check("below a variable", [drawn.dtype, int(tf.reduce_min(drawn)) == 0, int(tf.reduce_max(drawn)) == 6])
