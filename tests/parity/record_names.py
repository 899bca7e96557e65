#!/usr/bin/env python3
"""Writes tests/parity/names.txt: the public names of TensorFlow and Keras, module by module. Run with a Python that has
TensorFlow: record_names.py > tests/parity/names.txt. tools/compat_md.py compares Snug with the list."""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras            # noqa: E402
import tensorflow as tf  # noqa: E402

MODULES = """
tf tf.math tf.nn tf.linalg tf.random tf.image tf.io tf.io.gfile tf.strings tf.data tf.data.Dataset tf.config tf.config.experimental
tf.debugging tf.errors tf.autodiff tf.train tf.summary tf.sparse tf.sets tf.signal tf.ragged tf.bitwise tf.audio tf.lookup tf.queue
tf.saved_model tf.distribute tf.experimental tf.quantization tf.test tf.types tf.version tf.xla tf.compat.v1
keras keras.layers keras.losses keras.metrics keras.optimizers keras.optimizers.schedules keras.callbacks keras.initializers
keras.regularizers keras.constraints keras.activations keras.utils keras.ops keras.ops.image keras.ops.linalg keras.ops.nn
keras.ops.numpy keras.random keras.datasets keras.preprocessing keras.preprocessing.image keras.preprocessing.sequence keras.applications
keras.backend keras.config keras.models keras.saving keras.mixed_precision keras.export keras.tree keras.distribution keras.quantizers
keras.dtype_policies""".split()


def names_of(module):
    at = {"tf": tf, "keras": keras}[module.split(".")[0]]
    for part in module.split(".")[1:]:
        at = getattr(at, part)
    return sorted(n for n in dir(at) if not n.startswith("_"))


for m in MODULES:
    sys.stdout.write(f"{m}: {' '.join(names_of(m))}\n")
