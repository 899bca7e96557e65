"""tf.print, tf.group, tf.identity, tf.no_op, tf.stop_gradient in functions; py_function and numpy_function."""
import os
import tempfile
import numpy as np
import tensorflow as tf
from parity import check

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "out.txt")
    tf.print("step", tf.constant(3), tf.constant([1.0, 2.5]), output_stream="file://" + path)
    tf.print(tf.constant([[1, 2], [3, 4]]), "end", sep="|", output_stream="file://" + path)
    tf.print("loss:", tf.constant(0.25), {"a": tf.constant(1)}, output_stream="file://" + path)
    tf.print(tf.range(10), summarize=2, output_stream="file://" + path)
    check("text", open(path).read().splitlines())
a, b = tf.Variable(1.0), tf.Variable(2.0)


@tf.function
def update():
    tf.group(a.assign_add(1.0), b.assign(10.0))
    return a + b


check("group", update())
check("variables", [a, b])
calls = []


def host(x):
    calls.append(float(x))
    return np.float32(x * 2)


@tf.function
def through(x):
    return tf.numpy_function(host, [x], tf.float32) + 1.0


check("numpy_function", through(tf.constant(4.0)))
check("again", through(tf.constant(5.0)))
check("called", calls)
check("py_function", tf.py_function(lambda x: x + 1, [tf.constant(1)], tf.int32))
with tf.control_dependencies([a.assign(7.0)]):
    c = tf.identity(a)
check("control_dependencies", c)
with tf.name_scope("scope"):
    check("name_scope", tf.add(1, 2))
check("init_scope", tf.init_scope is not None)
check("nest map", tf.nest.map_structure(lambda t: t * 2, {"x": [1, 2], "y": (3,)}))
check("nest flatten", tf.nest.flatten({"b": 1, "a": [2, (3,)]}))
check("timestamp", float(tf.timestamp()) > 1e9)
