"""tf.experimental.numpy: NumPy's names and dtypes on tensors; tf.experimental.dlpack; tf.raw_ops."""
import tensorflow as tf
import tensorflow.experimental.numpy as tnp
from parity import check

x = tnp.array([[1.0, 2.0], [3.0, 4.0]])
for name, value in (("array", x), ("mean", tnp.mean(x, axis=0)), ("dot", tnp.dot(x, x)), ("arange", tnp.arange(5)), ("linspace", tnp.linspace(0, 1, 3)),
                    ("ones", tnp.ones((2, 2))), ("joined", tnp.concatenate([x, x], axis=0)), ("where", tnp.where(x > 2, x, 0)),
                    ("einsum", tnp.einsum("ij->ji", x)), ("stack", tnp.stack([x, x])), ("max", tnp.max(x)), ("argmax", tnp.argmax(x)),
                    ("clip", tnp.clip(x, 1.5, 3)), ("tile", tnp.tile([1, 2], 2)), ("sqrt", tnp.sqrt(4.0)), ("full", tnp.full((2,), 3)),
                    ("reshape", tnp.reshape(x, (4,))), ("taken", tnp.take_along_axis(x, tnp.array([[1], [0]]), 1))):
    check(name, value)
check("random", tnp.random.rand(2, 3).shape)
tnp.experimental_enable_numpy_behavior()
check("methods", [x.T, x.reshape(-1), x.max(), x.clip(2.0, 3.0), x.mean(axis=1), x.astype(tnp.float32).dtype])
check("dlpack", tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(tf.range(6.0))))
check("linspace of whole numbers", tf.linspace(0, 1, 3))

# --- tf.raw_ops -----------------------------------------------------------------------------------------
raw = tf.raw_ops
check("raw", [raw.AddV2(x=[1.0], y=[2.0]), raw.MatMul(a=[[1.0], [2.0]], b=[[1.0], [2.0]], transpose_a=True), raw.Relu(features=[-1.0, 1.0]),
              raw.Sum(input=[[1, 2], [3, 4]], axis=1), raw.Mean(input=[[1.0, 2.0]], axis=[1], keep_dims=True), raw.ArgMax(input=[1, 3], dimension=0),
              raw.Transpose(x=[[1, 2]], perm=[1, 0]), raw.ConcatV2(values=[[1], [2]], axis=0), raw.Cast(x=1.7, DstT=tf.int32),
              raw.SelectV2(condition=[True, False], t=[1, 1], e=[2, 2]), raw.ZerosLike(x=[1, 2]), raw.Einsum(inputs=[[1.0, 2.0], [3.0, 4.0]], equation="i,i->"),
              raw.BatchMatMulV2(x=[[1.0, 2.0]], y=[[3.0], [4.0]]), raw.Pad(input=[1], paddings=[[1, 0]]), raw.GatherV2(params=[1, 2], indices=[1], axis=0)])
check("spec", str(tf.type_spec_from_value(tf.ones((2, 3)))))
check("raw of whole numbers", [raw.Div(x=[7, -7, 8], y=[2, 2, 3]), raw.Select(condition=[True, False], x=[[1, 2], [3, 4]], y=[[5, 6], [7, 8]]),
                               raw.Slice(input=[[1, 2]], begin=[0, 1], size=[1, 1])])
check("several lists", [tnp.concatenate([[1], [2]]), tnp.stack([[1, 2], [3, 4]], axis=1), tnp.hstack([[1], [2]]),
                        tnp.where([True, False], [1, 2], [3, 4])])
check("floats of whole numbers", [tnp.mean([1, 2]), tnp.add(1, 2.5), tnp.var([1, 2]), tnp.divide([1, 2], [2, 2]), tnp.mean(tf.constant([1, 2]))])
