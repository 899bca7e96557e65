"""from_generator: both signatures, structures, arguments, errors."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

def count():
    for i in range(3):
        yield i

check("types", list(Dataset.from_generator(count, tf.int64)))
check("types spec", repr(Dataset.from_generator(count, tf.int64).element_spec))
check("shapes", list(Dataset.from_generator(count, tf.float32, tf.TensorShape([]))))

def pairs():
    yield (1, [1.0, 2.0])
    yield (2, [3.0, 4.0])

d = Dataset.from_generator(pairs, (tf.int32, tf.float32), ([], [2]))
check("pairs", list(d))
check("pairs spec", repr(d.element_spec))
d = Dataset.from_generator(pairs, output_signature=(tf.TensorSpec((), tf.int32), tf.TensorSpec((2,), tf.float32)))
check("signature", list(d.batch(2)))
d = Dataset.from_generator(lambda: iter([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]),
                           output_signature={"a": tf.TensorSpec((), tf.int64), "b": tf.TensorSpec((), tf.string)})
check("dict", list(d))
check("arguments", list(Dataset.from_generator(lambda n: iter(range(n)), tf.int64, args=(4,))))
check("arrays", list(Dataset.from_generator(lambda: (np.full(2, i, np.float64) for i in range(2)),
                                            output_signature=tf.TensorSpec((2,), tf.float32))))
check("twice", [len(list(d)), len(list(d))])
check("cardinality", d.cardinality())

def broken():
    yield 1
    raise ValueError("no more")

raises(tf.errors.InvalidArgumentError, lambda: list(Dataset.from_generator(broken, tf.int64)))
raises(tf.errors.InvalidArgumentError, lambda: list(Dataset.from_generator(
    lambda: iter([[1, 2]]), output_signature=tf.TensorSpec((3,), tf.int64))))
raises(tf.errors.InvalidArgumentError, lambda: list(Dataset.from_generator(
    lambda: iter(["text"]), output_signature=tf.TensorSpec((), tf.int64))))
raises(TypeError, lambda: Dataset.from_generator([1, 2], tf.int64))
raises(TypeError, lambda: Dataset.from_generator(count))
