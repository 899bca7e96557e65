"""TensorFlow 1: tf.gradients, variable scopes, several graphs, compute_gradients, layers by hand."""
import numpy as np
import tensorflow.compat.v1 as tf
from parity import check, raises

g = tf.Graph()
with g.as_default():
    x = tf.placeholder_with_default(tf.constant([[1.0, 2.0]]), [None, 2], name="x")
    with tf.variable_scope("layer1"):
        w = tf.get_variable("w", initializer=np.array([[0.5, -0.5], [0.25, 1.0]], "float32"))
        h = tf.nn.relu(tf.matmul(x, w))
    with tf.variable_scope("layer2"):
        v = tf.get_variable("w", initializer=np.array([[1.0], [2.0]], "float32"))
        out = tf.reduce_sum(tf.matmul(h, v))
    with tf.variable_scope("layer1", reuse=True):
        again = tf.get_variable("w")
    check("names", [t.name for t in tf.global_variables()])
    check("shared", again is w)
    grads = tf.gradients(out, [w, v, x])
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    pairs = optimizer.compute_gradients(out, [w, v])
    clipped = [(tf.clip_by_value(gr, -1.0, 1.0), var) for gr, var in pairs]
    step = tf.train.get_or_create_global_step()
    apply = optimizer.apply_gradients(clipped, global_step=step)
    init = tf.global_variables_initializer()
    with tf.variable_scope("layer1"):
        raises(ValueError, lambda: tf.get_variable("w", [2, 2]))
with tf.Session(graph=g) as sess:
    sess.run(init)
    check("default", sess.run(out))
    check("fed", sess.run(out, {x: [[3.0, 4.0], [5.0, 6.0]]}))
    check("gradients", sess.run(grads))
    sess.run(apply)
    check("after", sess.run([w, v]))
    check("global step", sess.run(step))
config = tf.ConfigProto(allow_soft_placement=True)
config.gpu_options.allow_growth = True
config.gpu_options.per_process_gpu_memory_fraction = 0.5
h = tf.Graph()
with h.as_default(), tf.Session(config=config) as sess:
    a = tf.constant(2.0)
    b = tf.Variable(3.0)
    sess.run(b.initializer)
    up = tf.assign(b, b + a)
    with tf.control_dependencies([up]):
        c = tf.identity(b) * 10.0
    check("control dependencies", sess.run(c))
    check("default session", tf.get_default_session() is sess)
    check("cond", sess.run(tf.cond(a > 1.0, lambda: a, lambda: -a)))
raises((ValueError, RuntimeError), lambda: tf.Session(graph=h).run(out))
