"""More of TensorFlow 1: InteractiveSession, collections, decay with global_step, while_loop, losses, assign ops, moving average."""
import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf
from parity import check, raises

tf.disable_eager_execution()
tf.reset_default_graph()
sess = tf.InteractiveSession()
a = tf.constant([1.0, 2.0, 3.0])
check("eval", (a * 2.0).eval())
check("graph of a tensor", a.graph is tf.get_default_graph())
v = tf.get_variable("v", [2, 2], initializer=tf.ones_initializer())
u = tf.Variable(0, name="u", trainable=False, dtype=tf.int32)
sess.run(tf.global_variables_initializer())
check("collection", [x.name for x in tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)])
check("assign_add", [sess.run(tf.assign_add(u, 2)) for _ in range(3)])
check("assign_sub", sess.run(tf.assign_sub(v, tf.fill([2, 2], 0.5))))
check("load by feed", sess.run(v.assign(np.arange(4.0).reshape(2, 2))))
check("value stays", v.eval())
check("while", sess.run(tf.while_loop(lambda i: i < 10, lambda i: i + 3, [tf.constant(0)])))
step = tf.placeholder(tf.int32, [])
rate = tf.train.exponential_decay(0.1, step, 10, 0.5, staircase=True)
check("decay", [sess.run(rate, {step: s}) for s in (0, 9, 10, 25)])
x = tf.placeholder(tf.float32, [None, 2])
y = tf.placeholder(tf.float32, [None])
w = tf.get_variable("w", initializer=np.zeros((2, 1), "float32"))
out = tf.squeeze(tf.matmul(x, w), axis=1)
loss = tf.losses.mean_squared_error(y, out)
global_step = tf.Variable(0, trainable=False)
train = tf.train.GradientDescentOptimizer(tf.train.exponential_decay(0.5, global_step, 2, 0.5)).minimize(loss, global_step=global_step)
sess.run(tf.global_variables_initializer())
data, target = np.array([[1.0, 2.0], [3.0, -1.0]], "float32"), np.array([1.0, -1.0], "float32")
check("losses", [sess.run([loss, train], {x: data, y: target})[0] for _ in range(5)], tol=1e-4)
check("step", sess.run(global_step))
check("sigmoid loss", sess.run(tf.losses.sigmoid_cross_entropy([[1.0, 0.0]], [[0.5, -0.5]])))
check("softmax loss", sess.run(tf.losses.sparse_softmax_cross_entropy([1], [[0.5, 1.5]])))
random = tf.random_normal([3], seed=1)
check("random changes", bool(np.array_equal(sess.run(random), sess.run(random))))
check("same within a run", (lambda p: bool(np.array_equal(p[0], p[1])))(sess.run([random + 0.0, random * 1.0])))
check("reduce kept", sess.run(tf.reduce_sum(a, keep_dims=True)))
check("to_float", sess.run(tf.to_float(u)))
check("shape", sess.run(tf.shape(x), {x: data}))
check("uninitialized", list(sess.run(tf.report_uninitialized_variables())))
check("group", sess.run(tf.group(tf.assign(u, 7))))
check("after group", sess.run(u))
check("py_func", sess.run(tf.py_func(lambda q: q * 2, [a], tf.float32)))
check("placeholder shape", x.get_shape().as_list())
sess.close()

# --- elements of datasets as tensors --------------------------------------------------------------------
tf.reset_default_graph()
rows = tf.data.Dataset.from_tensor_slices({"x": np.arange(6, dtype=np.float32).reshape(3, 2), "y": np.arange(3)})
element = tf.data.make_one_shot_iterator(rows.map(lambda e: {**e, "z": e["x"] * 2.0})).get_next()
check("shapes", [element["x"].shape.as_list(), element["y"].dtype])
total = tf.reduce_sum(element["z"])
with tf.Session() as sess:
    check("one shot", [sess.run([total, element["y"]]) for _ in range(3)])
    raises(tf.errors.OutOfRangeError, lambda: sess.run(total))
    raises(tf.errors.OutOfRangeError, lambda: sess.run(total))
iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(4).batch(2))
following = iterator.get_next()
either = tf.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
taken, first, second = either.get_next(), either.make_initializer(tf.data.Dataset.range(2)), either.make_initializer(tf.data.Dataset.range(7, 9))
with tf.Session() as sess:
    raises(tf.errors.FailedPreconditionError, lambda: sess.run(following))
    for round in range(2):
        sess.run(iterator.initializer)
        check(f"round {round}", [sess.run(following), sess.run(following)])
    for begin in (first, second):
        sess.run(begin)
        check("of one structure", [sess.run(taken), sess.run(taken)])
check("types", [tf.data.get_output_types(iterator), tf.data.get_output_shapes(iterator).as_list()])

# --- records, one after the other -----------------------------------------------------------------------
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "r.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for text in (b"one", b"two"):
            writer.write(text)
    check("records", [list(tf.python_io.tf_record_iterator(path)), list(tf.io.tf_record_iterator(path))])
check("a feature", str(tf.train.Feature(float_list=tf.train.FloatList(value=[2.7182818, 0.5, 1e10, 0.9876]))))

# --- loops ----------------------------------------------------------------------------------------------
with tf.Graph().as_default(), tf.Session() as sess:
    check("one variable", sess.run(tf.while_loop(lambda i: i < 5, lambda i: i + 2, [tf.constant(0)])))
    check("so often", sess.run(tf.while_loop(lambda i, j: i < 9, lambda i, j: (i + 1, j * 2), [0, 1], maximum_iterations=3)))

# --- what variables cost --------------------------------------------------------------------------------
with tf.Graph().as_default(), tf.Session() as sess:
    with tf.variable_scope("cheap", regularizer=lambda w: 0.5 * tf.reduce_sum(w * w)):
        tf.get_variable("w", [2], initializer=tf.constant_initializer(2.0))
    tf.get_variable("v", [3], initializer=tf.ones_initializer(), regularizer=lambda w: 0.1 * tf.reduce_sum(w))
    tf.get_variable("u", [3], initializer=tf.ones_initializer())
    tf.losses.mean_squared_error(tf.ones(2), tf.zeros(2))
    sess.run(tf.global_variables_initializer())
    check("of each", sess.run(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)))
    check("of all", sess.run([tf.losses.get_regularization_loss(), tf.losses.get_total_loss(), tf.losses.get_total_loss(False)]))
