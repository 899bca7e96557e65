"""What elements are: tensors of their own, arrays, scalars."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

x = np.arange(6.0).reshape(3, 2)
d = Dataset.from_tensor_slices(x)
first = next(iter(d))
check("kind", first)
check("dtype", first.dtype)
check("add", first + 1.0)
check("numpy kinds", [type(v).__name__ for v in next(iter(Dataset.from_tensors((1, 2.0, "a", [1, 2])).as_numpy_iterator()))])
check("loop", [[float(v) for v in r] for r in d])
check("enumerate", [(i, v) for i, v in enumerate(Dataset.range(2))])
check("uint8", list(Dataset.from_tensor_slices(np.arange(3, dtype=np.uint8)).batch(3)))
check("bool", list(Dataset.from_tensor_slices([True, False])))
check("half", list(Dataset.from_tensor_slices(np.arange(2, dtype=np.float16))))
check("not contiguous", list(Dataset.from_tensor_slices(np.arange(12).reshape(3, 4)[:, ::2])))
check("fortran", list(Dataset.from_tensor_slices(np.asfortranarray(np.arange(6).reshape(2, 3)))))
