"""Named tuples, nested structures."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

import collections

Pair = collections.namedtuple("Pair", ["left", "right"])
d = Dataset.from_tensor_slices(Pair(np.arange(3), np.arange(3) * 2.0))
first = next(iter(d))
check("named", [type(first).__name__, first.left, first.right])
check("mapped", [type(e).__name__ for e in d.map(lambda p: Pair(p.right, p.left)).take(1)])
deep = Dataset.range(2).map(lambda x: {"b": (x, {"c": x + 1}), "a": x + 2})
check("deep", list(deep))
check("deep spec", repr(deep.element_spec))
check("again", list(deep.map(lambda e: e["b"][1]["c"] + e["a"])))
check("zip map", list(Dataset.zip((deep, d)).map(lambda e, p: (e["a"], p.right))))
check("batch", list(deep.batch(2)))
