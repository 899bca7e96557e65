"""tf.lookup: tables of text and numbers."""
import os
import tempfile

import tensorflow as tf
from parity import check, raises

init = tf.lookup.KeyValueTensorInitializer(tf.constant(["red", "green", "blue"]), tf.constant([10, 20, 30], tf.int64))
table = tf.lookup.StaticHashTable(init, default_value=-1)
check("lookup", table.lookup(tf.constant([["red", "pink"], ["blue", "green"]])))
check("one", table[tf.constant("green")])
check("size", table.size())
back = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([10, 20], ["red", "green"]), default_value="?")
check("back", back.lookup(tf.constant([20, 5, 10])))
numbers = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [0.5, 0.25], tf.int64, tf.float32), 0.0)
check("numbers", numbers.lookup(tf.constant([2, 3, 1], tf.int64)))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "words.txt")
    with open(path, "w") as f:
        f.write("emerson\nlake\npalmer\n")
    lines = tf.lookup.TextFileInitializer(path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
    check("file", tf.lookup.StaticHashTable(lines, -1).lookup(tf.constant(["palmer", "emerson", "x"])))
raises(TypeError, lambda: table.lookup(tf.constant([1, 2])))
