#!/usr/bin/env python3
"""TensorFlow 1: graphs, sessions, optimizers."""
import unittest

import numpy as np

import snug
import snug.tensorflow as tf2

tf = tf2.compat.v1


class Graphs(unittest.TestCase):
    def test_placeholders_variables_and_fetch_structures(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.placeholder(tf.float32, [None, 2])
            w = tf.get_variable("w", initializer=np.ones((2, 1), "f4"))
            y = tf.matmul(x, w)
            self.assertEqual(y.shape.as_list(), [None, 1])
            sess.run(tf.global_variables_initializer())
            out = sess.run({"y": y, "w": [w]}, {x: [[1.0, 2.0]]})
            self.assertEqual((out["y"].tolist(), out["w"][0].tolist()), ([[3.0]], [[1.0], [1.0]]))
            self.assertRaises(tf.errors.InvalidArgumentError, sess.run, y)

    def test_minimize(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            w = tf.Variable(5.0)
            train = tf.train.AdamOptimizer(0.5).minimize(tf.square(w - 1.0))
            sess.run(tf.global_variables_initializer())
            for _ in range(60):
                sess.run(train)
            self.assertLess(abs(sess.run(w) - 1.0), 0.3)

    def test_gradients_of_gradients(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.placeholder(tf.float32, [])
            d = tf.gradients(x ** 3, x)[0]
            dd = tf.gradients(d, x)[0]
            self.assertEqual(sess.run([d, dd], {x: 2.0}), [12.0, 12.0])

    def test_random_is_drawn_at_each_run(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            r = tf.random_normal([4])
            a, b = sess.run([r, r + 0.0])
            self.assertEqual(a.tolist(), b.tolist())
            self.assertNotEqual(a.tolist(), sess.run(r).tolist())

    def test_closing_gives_the_bytes_back(self):
        before = snug.memory().info["variable_bytes"]
        with tf.Graph().as_default(), tf.Session() as sess:
            w = tf.Variable(np.zeros((100, 100), "f4"))
            sess.run(w.initializer)
            self.assertGreaterEqual(snug.memory().info["variable_bytes"], before + 40000)
        self.assertEqual(snug.memory().info["variable_bytes"], before)
        self.assertRaises(RuntimeError, sess.run, w)

    def test_settings_of_layers_are_heard(self):
        ones, each = tf.ones_initializer(), lambda w: tf.reduce_sum(w)
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.placeholder(tf.float32, [None, 2, 5, 5])
            h = tf.layers.conv2d(x, 3, 3, data_format="channels_first", dilation_rate=2, kernel_initializer=ones, kernel_regularizer=each)
            y = tf.layers.dense(tf.layers.flatten(h), 2, kernel_initializer=ones, kernel_regularizer=each, trainable=False)
            sess.run(tf.global_variables_initializer())
            self.assertEqual(sess.run(y, {x: np.ones((1, 2, 5, 5))}).tolist(), [[54.0, 54.0]])
            self.assertEqual([float(v) for v in sess.run(tf.losses.get_regularization_losses())], [54.0, 6.0])
            self.assertEqual([v.name for v in tf.trainable_variables()], ["conv2d/kernel:0", "conv2d/bias:0"])
            self.assertRaises(NotImplementedError, lambda: tf.layers.dense(y, 2, kernel_constraint=each))


if __name__ == "__main__":
    unittest.main()
