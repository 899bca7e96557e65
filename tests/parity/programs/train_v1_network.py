"""TensorFlow 1: a two-layer classifier in a session with mini-batches, accuracy and a learning-rate placeholder."""
import numpy as np
import tensorflow.compat.v1 as tf
from parity import check

tf.disable_v2_behavior()
r = np.random.RandomState(0)
data = r.uniform(-1, 1, (60, 4)).astype("float32")
target = np.eye(3, dtype="float32")[np.argmax(data[:, :3], axis=1)]
x = tf.placeholder(tf.float32, [None, 4], name="x")
y = tf.placeholder(tf.float32, [None, 3], name="y")
rate = tf.placeholder(tf.float32, [], name="rate")
weights = {"h": tf.Variable(r.uniform(-0.5, 0.5, (4, 8)).astype("float32")), "out": tf.Variable(r.uniform(-0.5, 0.5, (8, 3)).astype("float32"))}
biases = {"h": tf.Variable(tf.zeros([8])), "out": tf.Variable(tf.zeros([3]))}
hidden = tf.nn.relu(tf.add(tf.matmul(x, weights["h"]), biases["h"]))
logits = tf.matmul(hidden, weights["out"]) + biases["out"]
cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=y))
train_op = tf.train.AdamOptimizer(learning_rate=rate).minimize(cost)
correct = tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1))
accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
costs = []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(4):
        total = 0.0
        for i in range(0, 60, 20):
            _, c = sess.run([train_op, cost], feed_dict={x: data[i:i + 20], y: target[i:i + 20], rate: 0.05 / (epoch + 1)})
            total += c / 3
        costs.append(float(total))
    check("costs", costs, tol=1e-3)
    check("accuracy", accuracy.eval({x: data, y: target}), tol=0.04)
    check("weights", sess.run(weights)["out"], tol=2e-3)
