"""TensorFlow 1 style with the names of TensorFlow 2: tf.Variable, tf.matmul and tf.gradients beside tf.compat.v1."""
import numpy as np
import tensorflow as tf
from parity import check

tf.compat.v1.disable_eager_execution()
x = tf.compat.v1.placeholder(tf.float32, [None, 3])
w = tf.Variable(np.ones((3, 1), "float32"))
b = tf.Variable(0.5)
y = tf.matmul(x, w) + b
loss = tf.reduce_mean(tf.square(y - 1.0))
g = tf.gradients(loss, [w, b])
train = tf.compat.v1.train.GradientDescentOptimizer(0.01).minimize(loss)
larger = tf.cond(loss > 5.0, lambda: loss * 2.0, lambda: loss)
step = tf.Variable(0, trainable=False)
bump = step.assign_add(1)
with tf.control_dependencies([bump]):
    after = tf.identity(step)
both = tf.group(train, bump)
check("eager", tf.executing_eagerly())
check("shape", y.shape)
data = np.ones((2, 3), "float32")
with tf.compat.v1.Session() as sess:
    sess.run(tf.compat.v1.global_variables_initializer())
    check("gradients", sess.run(g, {x: data}))
    check("cond", sess.run(larger, {x: data}))
    for _ in range(3):
        check("loss", sess.run([train, loss], {x: data})[1], tol=1e-4)
    check("control dependency", sess.run(after))
    sess.run(both, {x: data})
    check("step", sess.run(step))
    check("weights", sess.run([w, b]), tol=1e-4)
    check("trainable", len(tf.compat.v1.trainable_variables()))
