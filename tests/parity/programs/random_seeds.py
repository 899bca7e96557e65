"""The same seeds give the same numbers: set_seed, op seeds, Generator, stateless."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check


def draw():
    return [tf.random.normal((4,)).numpy(), tf.random.uniform((4,)).numpy(), tf.random.uniform((3,), seed=5).numpy()]


def same(a, b):
    return [bool(np.array_equal(p, q)) for p, q in zip(a, b)]


tf.random.set_seed(1)
first = draw()
second = draw()
tf.random.set_seed(1)
check("after the same seed", same(first, draw()))
check("next", same(second, draw()))
check("different", any(same(first, second)))
tf.random.set_seed(2)
check("other seed", any(same(first, draw())))
a = tf.random.Generator.from_seed(1234)
b = tf.random.Generator.from_seed(1234)
check("generators", bool(tf.reduce_all(a.normal((5,)) == b.normal((5,)))))
check("generator goes on", bool(tf.reduce_any(a.normal((5,)) != a.normal((5,)))))
check("generator uniform", a.uniform((2, 3), 0, 10, dtype=tf.int32).shape)
check("split", len(a.split(3)))
s = [tf.random.stateless_normal((3,), seed=(1, 2)).numpy() for _ in range(2)]
check("stateless", bool(np.array_equal(s[0], s[1])))
t = tf.random.stateless_uniform((3,), seed=[1, 3])
check("stateless range", bool(tf.reduce_all((t >= 0) & (t < 1))))
check("stateless ints", tf.random.stateless_uniform((3,), [1, 3], 0, 9, dtype=tf.int32).dtype)
keras.utils.set_random_seed(3)
w1 = keras.layers.Dense(4)
w1.build((None, 3))
keras.utils.set_random_seed(3)
w2 = keras.layers.Dense(4)
w2.build((None, 3))
check("layers", bool(np.array_equal(w1.kernel.numpy(), w2.kernel.numpy())))


@tf.function
def drawn():
    return tf.random.normal((3,))


check("each call draws", bool(np.array_equal(drawn().numpy(), drawn().numpy())))
