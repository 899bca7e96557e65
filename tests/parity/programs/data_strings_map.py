"""tf.strings in map functions: names of files, lines."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

paths = Dataset.from_tensor_slices(["root/cats/a_1.jpg", "root/dogs/b_22.jpg"])
classes = np.array(["cats", "dogs"])

def label(path):
    parts = tf.strings.split(path, "/")
    return parts[-2], tf.argmax(tf.cast(parts[-2] == classes, tf.int32)), parts[-1]

check("label", list(paths.map(label)))
check("label spec", repr(paths.map(lambda p: tf.strings.split(p, "/")).element_spec))
check("number", list(paths.map(lambda p: tf.strings.to_number(
    tf.strings.regex_replace(tf.strings.split(p, "_")[-1], r"\.jpg", ""), tf.int32))))
check("join", list(paths.map(lambda p: tf.strings.join(["<", p, ">"]))))
check("add", list(paths.map(lambda p: p + "!")))
check("upper", list(paths.map(lambda p: tf.strings.upper(tf.strings.substr(p, 0, 4)))))
check("length", list(paths.map(tf.strings.length)))
check("match", list(paths.map(lambda p: tf.strings.regex_full_match(p, ".*dogs.*"))))
check("filter", list(paths.filter(lambda p: tf.strings.regex_full_match(p, ".*cats.*"))))
check("as_string", list(Dataset.range(3).map(lambda i: tf.strings.as_string(i))))
check("format", list(Dataset.range(2).map(lambda i: tf.strings.join([tf.constant("n"), tf.strings.as_string(i)], "="))))
lines = Dataset.from_tensor_slices(["1,2.5,x", "3,4.5,y"])

def columns(line):
    c = tf.strings.split(line, ",")
    return tf.strings.to_number(c[:2]), c[2]

check("csv", list(lines.map(columns)))
check("strip", list(Dataset.from_tensor_slices(["  a ", "b\t"]).map(tf.strings.strip)))
check("reduce_join", list(lines.map(lambda l: tf.strings.reduce_join(tf.strings.split(l, ","), separator=";"))))
check("bytes", list(lines.map(lambda l: tf.io.decode_raw(l, tf.uint8)[:3])))
