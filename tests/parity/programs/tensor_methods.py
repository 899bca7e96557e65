"""Attributes and methods of tensors and variables; isinstance; ids and names."""
import copy
import numpy as np
import tensorflow as tf
from parity import check, raises

t = tf.constant([[1.0, 2.0], [3.0, 4.0]])
v = tf.Variable(t, name="weights")
check("isinstance", [isinstance(t, tf.Tensor), isinstance(v, tf.Tensor), isinstance(v, tf.Variable), isinstance(np.ones(1), tf.Tensor)])
check("is_tensor", [tf.is_tensor(t), tf.is_tensor(v), tf.is_tensor([1])])
check("dtype is", t.dtype is tf.float32)
check("dtype in", t.dtype in (tf.float32, tf.float64))
check("shape in", 2 in t.shape.as_list())
check("nbytes", t.numpy().nbytes)
check("variable name", v.name)
check("ref", t.ref() == t.ref())
check("ref in a dict", {t.ref(): 1}[t.ref()])
check("deref", t.ref().deref() is t)
check("eq none", (t == None) is not None)  # noqa: E711
check("identity is", tf.identity(t) is t)
check("list of variables", v in [v])
t.set_shape((2, 2))
raises(ValueError, lambda: t.set_shape((3, 3)))
check("T by transpose", tf.transpose(t))
check("numpy is a copy", t.numpy() is not t.numpy())
a = t.numpy()
try:
    a[0, 0] = 50.0
except ValueError:
    pass
check("unchanged", t.shape)


def set_item():
    t[0] = 1.0


raises(TypeError, set_item)
raises(AttributeError, lambda: t.no_such_attribute)
check("iter of shape", [int(d) for d in t.shape])
check("deepcopy", copy.deepcopy(t))
check("copy of a variable", copy.deepcopy(v))
check("bool array index", t[:, 0] > 1.0)
check("complex chain", (t[0] + 1)[tf.newaxis] @ t)
check("variable device", isinstance(v.device, str))
check("count_up", [int(i) for i in tf.range(3)])
check("dtype of arange", tf.range(3).dtype)
check("spec", tf.TensorSpec.from_tensor(t).shape)
check("spec compatible", tf.TensorSpec((None, 2), tf.float32).is_compatible_with(t))
check("min max", [float(min(t[0])), float(max(t[0]))])
check("sum builtin", sum([t, t, t]))
check("sorted", [float(s) for s in sorted(tf.constant([3.0, 1.0, 2.0]))])
check("round builtin", round(float(t[0, 1]) * 1.005, 2))
