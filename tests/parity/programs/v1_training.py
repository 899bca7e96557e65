"""TensorFlow 1: linear regression with an optimizer's minimize in a session."""
import os
import tempfile

import numpy as np
import tensorflow as tf2
from parity import check

tf = tf2.compat.v1
tf.disable_v2_behavior()
r = np.random.RandomState(0)
xs = r.uniform(-1, 1, (50, 2)).astype("float32")
ys = (xs @ np.array([[2.0], [-1.0]], "float32") + 0.5).astype("float32")
for name, make in (("sgd", lambda: tf.train.GradientDescentOptimizer(0.1)), ("momentum", lambda: tf.train.MomentumOptimizer(0.05, 0.9)),
                   ("adam", lambda: tf.train.AdamOptimizer(0.05)), ("rmsprop", lambda: tf.train.RMSPropOptimizer(0.01)),
                   ("adagrad", lambda: tf.train.AdagradOptimizer(0.3))):
    tf.reset_default_graph()
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.placeholder(tf.float32, [None, 1])
    w = tf.get_variable("w", shape=[2, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", initializer=tf.constant([0.0]))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
    train = make().minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = []
        for step in range(8):
            _, value = sess.run([train, loss], feed_dict={x: xs, y: ys})
            losses.append(float(value))
        check(name, losses, tol=1e-4)
        check(name + " weights", sess.run([w, b]), tol=1e-4)

# --- float64, with a rate that decays -------------------------------------------------------------------
with tf.Graph().as_default():
    x = tf.placeholder(tf.float64, (None, 3))
    w = tf.get_variable("w64", [3, 1], dtype=tf.float64, initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.3, step, 2, 0.9, staircase=True)
    train = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
    saver = tf.train.Saver()
    with tf.Session() as sess, tempfile.TemporaryDirectory() as folder:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            sess.run(train, {x: np.ones((2, 3))})
        check("float64", sess.run(w), tol=1e-6)
        check("step in the name", os.path.basename(saver.save(sess, os.path.join(folder, "m"), global_step=step)))

with tf.Graph().as_default():
    w = tf.get_variable("w", initializer=[1.0, 2.0])
    given = tf.placeholder(tf.float32, [2])
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    gradient = optimizer.compute_gradients(w * w, grad_loss=given)[0][0]
    train = optimizer.minimize(w * w, grad_loss=given)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        check("grad_loss", sess.run([gradient, train], {given: [1.0, 10.0]})[0])
        check("minimized", sess.run(w))
