"""A TensorFlow 1 script: placeholders, tf.layers-free network, summary of accuracy, saver-free checkpoint by hand."""
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(1)
r = np.random.RandomState(0)
images = r.rand(120, 64).astype("float32")
labels = np.argmax(images @ r.randn(64, 4), axis=1)
onehot = np.eye(4)[labels].astype("float32")


def weight_variable(shape):
    return tf.Variable(tf.truncated_normal(shape, stddev=0.1))


def bias_variable(shape):
    return tf.Variable(tf.constant(0.1, shape=shape))


def conv2d(x, W):
    return tf.nn.conv2d(x, W, strides=[1, 1, 1, 1], padding="SAME")


def max_pool_2x2(x):
    return tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


x = tf.placeholder(tf.float32, shape=[None, 64])
y_ = tf.placeholder(tf.float32, shape=[None, 4])
keep_prob = tf.placeholder(tf.float32)
x_image = tf.reshape(x, [-1, 8, 8, 1])
W_conv1, b_conv1 = weight_variable([3, 3, 1, 8]), bias_variable([8])
h_pool1 = max_pool_2x2(tf.nn.relu(conv2d(x_image, W_conv1) + b_conv1))
W_fc1, b_fc1 = weight_variable([4 * 4 * 8, 32]), bias_variable([32])
h_fc1 = tf.nn.relu(tf.matmul(tf.reshape(h_pool1, [-1, 4 * 4 * 8]), W_fc1) + b_fc1)
h_drop = tf.nn.dropout(h_fc1, keep_prob=keep_prob)
W_fc2, b_fc2 = weight_variable([32, 4]), bias_variable([4])
y_conv = tf.matmul(h_drop, W_fc2) + b_fc2
cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y_conv))
train_step = tf.train.AdamOptimizer(3e-3).minimize(cross_entropy)
correct_prediction = tf.equal(tf.argmax(y_conv, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    first = cross_entropy.eval(feed_dict={x: images, y_: onehot, keep_prob: 1.0})
    for i in range(60):
        j = (i * 20) % 120
        train_step.run(feed_dict={x: images[j:j + 20], y_: onehot[j:j + 20], keep_prob: 0.9})
    last, acc = sess.run([cross_entropy, accuracy], feed_dict={x: images, y_: onehot, keep_prob: 1.0})
    print("falls:", bool(last < first), "accuracy above 0.5:", bool(acc > 0.5))
    print("variables:", len(tf.trainable_variables()), sum(int(np.prod(v.shape)) for v in tf.trainable_variables()))
    kept = sess.run(tf.trainable_variables())
    probabilities = sess.run(tf.nn.softmax(y_conv), {x: images[:2], keep_prob: 1.0})
    print(probabilities.shape, np.round(probabilities.sum(axis=1), 3))
with tf.Session() as sess:
    sess.run([v.assign(k) for v, k in zip(tf.trainable_variables(), kept)])
    again = sess.run(cross_entropy, feed_dict={x: images, y_: onehot, keep_prob: 1.0})
    print("restored:", bool(abs(again - last) < 1e-5))
