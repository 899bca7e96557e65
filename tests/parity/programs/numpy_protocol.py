"""Tensors where NumPy arrays go and the other way round."""
import numpy as np
import tensorflow as tf
from parity import check

t = tf.constant([[1.0, 2.0], [3.0, 4.0]])
check("numpy()", t.numpy())
check("scalar numpy()", tf.constant(2.5).numpy())
check("asarray", np.asarray(t))
check("array dtype", np.array(t, dtype="float64"))
check("np function", np.sum(t))
check("np sqrt", np.sqrt(t))
check("np add", np.add(t, 1.0))
check("np stack", np.stack([t, t]).shape)
check("np concatenate", np.concatenate([t, np.zeros((1, 2), "float32")]))
check("allclose", bool(np.allclose(t, [[1, 2], [3, 4]])))
check("tolist", t.numpy().tolist())
check("item", t.numpy()[1, 0].item())
check("memoryview", memoryview(t).shape)
check("len of memoryview", memoryview(t).nbytes)
a = np.arange(4.0).reshape(2, 2)
s = tf.convert_to_tensor(a)
a[0, 0] = 99.0
check("a copy was taken", s)
check("reduce of an array", tf.reduce_mean(np.array([1.0, 2.0, 6.0])))
check("transposed array", tf.constant(np.arange(6).reshape(2, 3).T))
check("strided array", tf.constant(np.arange(10, dtype="float32")[::3]))
check("big endian array", tf.constant(np.arange(3).astype(">i4").astype("i4")))
check("list of tensors", tf.convert_to_tensor([tf.constant(1.0), tf.constant(2.0)]))
check("list of arrays", tf.constant([np.zeros(2), np.ones(2)]))
check("nested mixture", tf.convert_to_tensor([[1.0, tf.constant(2.0)], [np.float32(3), 4]]))
