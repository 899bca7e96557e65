"""save and load, snapshot."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    d = Dataset.from_tensor_slices({"x": np.arange(4.0), "s": ["a", "b", "c", "d"]})
    path = os.path.join(folder, "saved")
    d.save(path)
    again = Dataset.load(path)
    check("loaded", sorted((float(e["x"]), e["s"].numpy().decode()) for e in again))
    check("spec", repr(again.element_spec))
    s = Dataset.range(3).map(lambda x: x + 1).snapshot(os.path.join(folder, "snap"))
    check("snapshot", [[int(v) for v in s], [int(v) for v in s]])
