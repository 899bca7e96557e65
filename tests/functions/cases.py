"""The calls that record.py records, by group: (name, arguments, keyword arguments, from which argument on a list is spread)."""
import numpy as np

rng = np.random.default_rng(3)


def real(*shape, dtype=np.float32, low=-2.0, high=2.0):
    return np.round(rng.uniform(low, high, shape), 2).astype(dtype)


def whole(*shape, dtype=np.int32, low=-5, high=6):
    return rng.integers(low, high, shape).astype(dtype)


X = real(2, 3)
Y = real(2, 3)
P = real(2, 3, low=0.1, high=3.0)
U = real(2, 3, low=-0.9, high=0.9)
I = whole(2, 3)
J = np.array([[3, -2, 4], [-3, 2, 5]], np.int32)
D = real(2, 3, dtype=np.float64)
T = np.array([[True, False, True], [False, False, True]])
IMG = real(2, 5, 6, 3)
CUBE = real(2, 3, 4)

one = []
for f in "exp sin cos tan sinh cosh asinh atan math.expm1 math.erf math.erfc square abs negative sign math.ceil floor round tanh sigmoid".split():
    one.append(("tf." + f, [X]))
for f in "math.log sqrt math.rsqrt math.lgamma math.digamma math.reciprocal".split():
    one.append(("tf." + f, [P]))
for f in "asin acos atanh math.erfinv math.log1p".split():
    one.append(("tf." + f, [U]))
one += [("tf.acosh", [P + np.float32(1)]), ("tf.math.is_nan", [np.array([1, np.nan, np.inf], np.float32)]),
        ("tf.math.is_inf", [np.array([1, np.nan, -np.inf], np.float32)]), ("tf.math.is_finite", [np.array([1, np.nan, np.inf], np.float32)]),
        ("tf.round", [np.array([0.5, 1.5, -2.5, 2.4], np.float32)]), ("tf.abs", [I]), ("tf.square", [I]), ("tf.sign", [I]), ("tf.negative", [I]),
        ("tf.exp", [I]), ("tf.exp", [D]), ("tf.cast", [X, "int32"]), ("tf.cast", [I, "float32"]), ("tf.cast", [T, "float32"]), ("tf.cast", [X, "bool"]),
        ("tf.saturate_cast", [np.array([-3.0, 300.0, 7.9], np.float32), "uint8"]), ("tf.identity", [X]), ("tf.stop_gradient", [X])]
for f in "exp log1p sqrt sin cos tanh log10 log2 exp2 arcsin arctan reciprocal erf isnan isfinite deg2rad sinc floor ceil".split():
    one.append(("keras.ops." + f, [U if f not in ("sqrt", "log10", "log2", "reciprocal") else P]))
one += [("keras.ops.exp", [I]), ("keras.ops.sqrt", [np.abs(I)]), ("keras.ops.round", [X], {"decimals": 1}), ("keras.ops.isnan", [I]),
        ("keras.ops.nan_to_num", [np.array([1, np.nan, np.inf, -np.inf], np.float32)]), ("keras.ops.cast", [X, "int64"]), ("keras.ops.sign", [X])]

two = []
for f in "add subtract multiply divide maximum minimum math.floordiv math.floormod math.squared_difference equal not_equal greater greater_equal less less_equal".split():
    two.append(("tf." + f, [X, Y]))
    two.append(("tf." + f, [I, J]))
    two.append(("tf." + f, [X, 1.5]))
    two.append(("tf." + f, [2.0, X]))
for f in "add subtract multiply divide maximum math.floordiv".split():
    two.append(("tf." + f, [CUBE, real(4)]))
    two.append(("tf." + f, [I, 3]))
    two.append(("tf." + f, [X, I]))
    two.append(("tf." + f, [I, 2.5]))
    two.append(("tf." + f, [[1.0, 2.0, 3.0], X]))
two += [("tf.pow", [P, 2.0]), ("tf.pow", [P, Y]), ("tf.pow", [2.0, Y]), ("tf.pow", [X, 2]), ("tf.pow", [np.abs(I), np.abs(J)]), ("tf.atan2", [X, Y]),
        ("tf.truncatediv", [I, J]), ("tf.truncatemod", [I, J]), ("tf.math.divide_no_nan", [X, np.float32([[0, 1, 2], [3, 0, 5]])]),
        ("tf.math.xlogy", [np.float32([0, 1, 2]), np.float32([0, 2, 3])]), ("tf.math.xdivy", [np.float32([0, 1, 2]), np.float32([0, 2, 3])]),
        ("tf.math.multiply_no_nan", [X, np.float32([[0, 1, 2], [3, 0, 5]])]), ("tf.math.xlog1py", [np.float32([0, 1, 2]), np.float32([-1, 2, 3])]),
        ("tf.divide", [whole(3, dtype=np.int8, low=1), np.array([2, 3, 4], np.int8)]), ("tf.divide", [7, 2]), ("tf.add", [1, 2.5]), ("tf.add", [D, 0.1]),
        ("tf.logical_and", [T, T[::-1].copy()]), ("tf.logical_or", [T, T[::-1].copy()]), ("tf.math.logical_xor", [T, T[::-1].copy()]), ("tf.logical_not", [T]),
        ("tf.logical_and", [X, Y]), ("tf.equal", [T, True]), ("tf.where", [T, X, Y]), ("tf.where", [T, X, 0.0]), ("tf.where", [T, 1.0, X]), ("tf.where", [T]),
        ("tf.where", [np.array([0, 3, 0, -1], np.int32)]), ("tf.boolean_mask", [X, T]), ("tf.boolean_mask", [X, np.array([True, False])]),
        ("tf.boolean_mask", [X, np.array([True, False, True])], {"axis": 1}), ("tf.clip_by_value", [X, -0.5, 0.5]), ("tf.clip_by_value", [I, -1, 2]),
        ("tf.clip_by_value", [X, Y, 1.0]), ("tf.clip_by_norm", [X, 1.0]), ("tf.clip_by_norm", [X, 100.0]), ("tf.clip_by_norm", [X, 1.0], {"axes": [1]}),
        ("tf.linalg.global_norm", [[X, real(4)]]), ("tf.add_n", [[X, Y, P]]), ("tf.nn.bias_add", [IMG, real(3)])]
for f in "add subtract multiply divide maximum power mod arctan2 logaddexp equal less hypot".split():
    two.append(("keras.ops." + f, [P, Y if f not in ("mod", "divide") else P]))
two += [("keras.ops.add", [I, X]), ("keras.ops.add", [I, 2.5]), ("keras.ops.divide", [I, J]), ("keras.ops.multiply", [I, D]), ("keras.ops.where", [T, X, 0.0]),
        ("keras.ops.clip", [X, -1.0, 1.0]), ("keras.ops.isclose", [X, X]), ("keras.ops.logical_and", [T, T]), ("keras.ops.maximum", [I, 0]), ("keras.ops.nonzero", [T])]

along = []
for f in "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_logsumexp math.reduce_variance math.reduce_std math.reduce_euclidean_norm".split():
    along += [("tf." + f, [CUBE]), ("tf." + f, [CUBE], {"axis": 1}), ("tf." + f, [CUBE], {"axis": [0, 2], "keepdims": True}), ("tf." + f, [CUBE], {"axis": -1})]
along += [("tf.reduce_sum", [I]), ("tf.reduce_mean", [I]), ("tf.reduce_mean", [np.array([-3, -4], np.int32)]), ("tf.reduce_max", [I], {"axis": 1}), ("tf.reduce_sum", [3.0]),
          ("tf.reduce_sum", [[1.0, 2.0, 3.0]]), ("tf.reduce_mean", [[1, 2, 4]]), ("tf.reduce_any", [T], {"axis": 1}), ("tf.reduce_all", [T], {"axis": 0}), ("tf.reduce_sum", [X], {"axis": 5}),
          ("tf.reduce_sum", [X, 0, True]), ("tf.math.count_nonzero", [I]), ("tf.math.count_nonzero", [I], {"axis": 1, "keepdims": True}), ("tf.nn.moments", [IMG], {"axes": [0, 1, 2]}),
          ("tf.nn.moments", [X, [1]], {"keepdims": True}), ("tf.argmax", [CUBE], {"axis": -1}), ("tf.argmin", [CUBE], {"axis": 1}), ("tf.argmax", [X]), ("tf.argmax", [X, 1], {"output_type": "int32"}),
          ("tf.cumsum", [CUBE], {"axis": 1}), ("tf.cumsum", [X], {"exclusive": True, "reverse": True}), ("tf.math.cumprod", [X], {"axis": 1}), ("tf.sort", [X]), ("tf.sort", [CUBE], {"axis": 0, "direction": "DESCENDING"}),
          ("tf.argsort", [X], {"direction": "DESCENDING"}), ("tf.math.top_k", [CUBE], {"k": 2}), ("tf.math.top_k", [X, 7]), ("tf.math.in_top_k", [np.array([0, 2], np.int32), X, 2]),
          ("tf.math.bincount", [np.array([1, 2, 2, 0], np.int32)], {"minlength": 4}), ("tf.math.unsorted_segment_sum", [X, np.array([1, 1], np.int32), 3]),
          ("tf.math.unsorted_segment_mean", [X, np.array([1, 1], np.int32), 3])]
for f in "sum mean max min prod var std any all argmax argmin cumsum sort argsort median logsumexp".split():
    along += [("keras.ops." + f, [CUBE if f not in ("any", "all") else T], {"axis": 1})]
along += [("keras.ops.mean", [I]), ("keras.ops.sum", [T]), ("keras.ops.argmax", [CUBE]), ("keras.ops.cumsum", [X]), ("keras.ops.diff", [CUBE], {"axis": 1}), ("keras.ops.median", [CUBE]),
          ("keras.ops.quantile", [CUBE, 0.3], {"axis": 2}), ("keras.ops.quantile", [X, [0.25, 0.5]]), ("keras.ops.top_k", [X, 2]), ("keras.ops.count_nonzero", [I], {"axis": 0}),
          ("keras.ops.moments", [CUBE], {"axes": [1]}), ("keras.ops.segment_sum", [X, np.array([0, 1], np.int32)], {"num_segments": 2})]

shape = [("tf.reshape", [CUBE, [4, -1]]), ("tf.reshape", [CUBE, [-1]]), ("tf.reshape", [X, [6, 1]]), ("tf.reshape", [X, [4, 2]]), ("tf.reshape", [X, np.array([3, 2], np.int32)]),
         ("tf.transpose", [CUBE]), ("tf.transpose", [CUBE, [0, 2, 1]]), ("tf.transpose", [CUBE], {"perm": [2, 0, 1]}), ("tf.linalg.matrix_transpose", [CUBE]), ("tf.expand_dims", [X, 0]), ("tf.expand_dims", [X, -1]),
         ("tf.expand_dims", [X], {"axis": 1}), ("tf.squeeze", [X[:, None]]), ("tf.squeeze", [X[None, :, None]], {"axis": [0]}), ("tf.squeeze", [X], {"axis": 0}), ("tf.broadcast_to", [real(3), [2, 3]]),
         ("tf.shape", [CUBE]), ("tf.size", [CUBE]), ("tf.rank", [CUBE]), ("tf.shape", [CUBE], {"out_type": "int64"}), ("tf.concat", [[X, Y], 0]), ("tf.concat", [[X, Y, P]], {"axis": -1}), ("tf.concat", [[X, CUBE], 0]),
         ("tf.stack", [[X, Y]]), ("tf.stack", [[X, Y]], {"axis": -1}), ("tf.stack", [[1.0, 2.0]]), ("tf.unstack", [CUBE], {"axis": 1}), ("tf.split", [CUBE, 2], {"axis": 2}), ("tf.split", [CUBE, [1, 3], 2]), ("tf.split", [CUBE, [1, -1], 1]),
         ("tf.split", [X, 2, 1]), ("tf.tile", [X, [2, 1]]), ("tf.repeat", [X, 2], {"axis": 1}), ("tf.repeat", [X, 3]), ("tf.repeat", [X, [1, 2]], {"axis": 0}), ("tf.reverse", [CUBE, [1]]), ("tf.reverse", [CUBE, [0, 2]]),
         ("tf.roll", [X, 1, 1]), ("tf.roll", [CUBE, [1, -1], [0, 2]]), ("tf.pad", [X, [[1, 0], [2, 1]]]), ("tf.pad", [X, [[1, 0], [2, 1]]], {"constant_values": 9.0}), ("tf.pad", [X, [[1, 0], [2, 1]], "REFLECT"]),
         ("tf.pad", [X, [[1, 0], [2, 1]]], {"mode": "SYMMETRIC"}), ("tf.pad", [I, [[1, 1], [0, 0]]]), ("tf.slice", [CUBE, [0, 1, 1], [2, 2, -1]]), ("tf.slice", [CUBE, [0, 1, 1], [2, 5, 1]]),
         ("tf.strided_slice", [CUBE, [0, 1], [2, 3]]), ("tf.strided_slice", [CUBE, [0, 2, 3], [2, 0, 0], [1, -1, -2]]), ("tf.strided_slice", [CUBE, [1, 0, 0], [2, 3, 4]], {"shrink_axis_mask": 1}),
         ("tf.strided_slice", [CUBE, [0, 0, -1], [0, 0, 0]], {"ellipsis_mask": 1, "shrink_axis_mask": 4, "new_axis_mask": 2}), ("tf.strided_slice", [X, [5, 0], [6, 1]], {"shrink_axis_mask": 1}),
         ("tf.strided_slice", [X, [0, 0], [0, 0], [1, -1]], {"begin_mask": 3, "end_mask": 3}), ("tf.nn.space_to_depth", [real(1, 4, 6, 2), 2]), ("tf.nn.depth_to_space", [real(1, 2, 3, 8), 2])]
shape += [("keras.ops.reshape", [CUBE, [-1, 4]]), ("keras.ops.transpose", [X]), ("keras.ops.swapaxes", [CUBE, 0, 2]), ("keras.ops.moveaxis", [CUBE, 0, -1]), ("keras.ops.expand_dims", [X, 1]), ("keras.ops.squeeze", [X[None]]),
          ("keras.ops.concatenate", [[X, I]], {"axis": 1}), ("keras.ops.stack", [[X, Y]], {"axis": 1}), ("keras.ops.hstack", [[X, Y]]), ("keras.ops.vstack", [[X, Y]]), ("keras.ops.split", [CUBE, 2], {"axis": 2}), ("keras.ops.split", [CUBE, [1, 3]], {"axis": 2}),
          ("keras.ops.tile", [X, [2, 1, 2]]), ("keras.ops.repeat", [X, 2], {"axis": 0}), ("keras.ops.flip", [CUBE], {"axis": 1}), ("keras.ops.flip", [X]), ("keras.ops.roll", [X, 2]), ("keras.ops.pad", [X, [[1, 1], [0, 2]]]),
          ("keras.ops.pad", [X, [[1, 1], [0, 2]]], {"mode": "reflect"}), ("keras.ops.slice", [CUBE, [0, 1, 1], [1, 2, 2]]), ("keras.ops.ravel", [CUBE]), ("keras.ops.unstack", [CUBE])]

index = [("tf.gather", [X, np.array([1, 0, 1], np.int32)]), ("tf.gather", [X, [2, 0]], {"axis": 1}), ("tf.gather", [CUBE, np.array([[2, 0], [1, 1]], np.int64)], {"axis": 1}), ("tf.gather", [X, 1]),
         ("tf.gather", [CUBE, np.array([[2, 0], [1, 1]], np.int32)], {"batch_dims": 1}), ("tf.gather", [CUBE, np.array([[2, 0], [1, 1]], np.int32)], {"axis": 2, "batch_dims": 1}),
         ("tf.gather_nd", [CUBE, np.array([[0, 1], [1, 2]], np.int32)]), ("tf.gather_nd", [CUBE, np.array([[1], [2]], np.int32)], {"batch_dims": 1}), ("tf.scatter_nd", [np.array([[1], [3], [1]], np.int32), real(3, 2), [5, 2]]),
         ("tf.tensor_scatter_nd_update", [X, np.array([[0, 1], [1, 2]], np.int32), np.float32([9, 8])]), ("tf.tensor_scatter_nd_add", [X, np.array([[0], [0]], np.int32), real(2, 3)]),
         ("tf.tensor_scatter_nd_sub", [X, np.array([[1]], np.int32), real(1, 3)]), ("tf.zeros", [[2, 3]]), ("tf.ones", [[2], "int32"]), ("tf.zeros", [3]), ("tf.fill", [[2, 2], 7.5]), ("tf.fill", [[2], 3]),
         ("tf.zeros_like", [I]), ("tf.ones_like", [X], {"dtype": "int64"}), ("tf.range", [5]), ("tf.range", [2, 11, 3]), ("tf.range", [0.0, 1.0, 0.25]), ("tf.range", [5], {"dtype": "float32"}), ("tf.range", [300]), ("tf.linspace", [0.0, 1.0, 5]),
         ("tf.eye", [3]), ("tf.eye", [2, 3]), ("tf.eye", [2], {"batch_shape": [2]}), ("tf.one_hot", [np.array([0, 2, -1], np.int32), 3]), ("tf.one_hot", [[1, 0], 3], {"on_value": 5, "off_value": -1}),
         ("tf.one_hot", [np.array([[0, 1], [2, 0]], np.int64), 3], {"axis": 1}), ("tf.one_hot", [[1, 0], 2], {"on_value": 0.9, "off_value": 0.1}), ("tf.sequence_mask", [np.array([1, 3, 2], np.int32), 4]),
         ("tf.meshgrid", [[np.float32([1, 2, 3]), np.float32([4, 5])]], {}, 0), ("tf.meshgrid", [[np.float32([1, 2, 3]), np.float32([4, 5])]], {"indexing": "ij"}, 0), ("tf.searchsorted", [np.float32([1, 3, 5, 7]), np.float32([2, 7, 8])]),
         ("tf.searchsorted", [np.float32([1, 3, 5, 7]), np.float32([3, 7, 8])], {"side": "right"}), ("keras.ops.take", [X, [1, -1]], {"axis": 1}), ("keras.ops.take", [X, [1, 5]]), ("keras.ops.take_along_axis", [X, np.array([[0, 1], [2, 0]], np.int32)], {"axis": 1}),
         ("keras.ops.arange", [5]), ("keras.ops.arange", [1, 6, 2]), ("keras.ops.linspace", [0.0, 2.0, 5]), ("keras.ops.linspace", [0.0, 2.0], {"num": 4, "endpoint": False}), ("keras.ops.eye", [3]), ("keras.ops.tri", [3]), ("keras.ops.full", [[2, 2], 3.0]),
         ("keras.ops.full_like", [X, 2.0]), ("keras.ops.zeros", [[2, 2]]), ("keras.ops.one_hot", [np.array([0, 2], np.int32), 3]), ("keras.ops.multi_hot", [np.array([[0, 2], [1, 1]], np.int32), 3]), ("keras.ops.scatter", [np.array([[1], [3]], np.int32), real(2), [5]]),
         ("keras.ops.scatter_update", [X, np.array([[0, 1]], np.int32), np.float32([9])])]

A, B = real(3, 4), real(4, 2)
linalg = [("tf.matmul", [A, B]), ("tf.matmul", [A, real(3, 2)], {"transpose_a": True}), ("tf.matmul", [A, real(2, 4)], {"transpose_b": True}), ("tf.matmul", [real(2, 3, 4), real(2, 4, 2)]), ("tf.matmul", [real(2, 3, 4), B]), ("tf.matmul", [I, J.T.copy()]),
          ("tf.matmul", [A, A]), ("tf.linalg.matvec", [A, real(4)]), ("tf.tensordot", [CUBE, real(4, 3, 2), [[1, 2], [1, 0]]]), ("tf.tensordot", [A, B, 1]), ("tf.tensordot", [real(3), real(3), 1]), ("tf.einsum", ["ij,jk->ik", [A, B]], {}, 1),
          ("tf.einsum", ["bij,bjk->bik", [real(2, 3, 4), real(2, 4, 2)]], {}, 1), ("tf.einsum", ["ij->ji", [A]], {}, 1), ("tf.einsum", ["ij,jk", [A, B]], {}, 1), ("tf.einsum", ["ij,jk,kl->il", [A, B, real(2, 3)]], {}, 1), ("tf.einsum", ["ij->", [A]], {}, 1),
          ("tf.norm", [X]), ("tf.norm", [X], {"ord": 1, "axis": 1}), ("tf.norm", [X], {"axis": 0, "keepdims": True}), ("tf.norm", [X], {"ord": 3, "axis": 1}), ("tf.math.l2_normalize", [X], {"axis": 1}), ("tf.math.l2_normalize", [X]), ("tf.linalg.normalize", [X], {"axis": 1}),
          ("tf.linalg.diag", [real(3)]), ("tf.linalg.diag", [X]), ("tf.linalg.diag_part", [real(3, 3)]), ("tf.linalg.diag_part", [CUBE]), ("tf.linalg.trace", [real(3, 3)]), ("tf.linalg.set_diag", [real(3, 3), real(3)]), ("tf.linalg.band_part", [real(4, 4), 1, 0]),
          ("tf.linalg.band_part", [real(4, 4), -1, 1]), ("tf.linalg.cross", [real(2, 3), real(2, 3)]), ("keras.ops.matmul", [A, B]), ("keras.ops.matmul", [real(4), B]), ("keras.ops.matmul", [A, real(4)]), ("keras.ops.dot", [A, B]), ("keras.ops.outer", [real(3), real(2)]),
          ("keras.ops.tensordot", [A, B], {"axes": 1}), ("keras.ops.einsum", ["ij,jk->ik", [A, B]], {}, 1), ("keras.ops.norm", [X]), ("keras.ops.norm", [X], {"axis": 1}), ("keras.ops.normalize", [X]), ("keras.ops.diagonal", [A]), ("keras.ops.trace", [A]),
          ("keras.ops.tril", [A]), ("keras.ops.triu", [A], {"k": 1}), ("keras.ops.cross", [real(2, 3), real(2, 3)]), ("keras.ops.inner", [A, real(2, 4)])]

L = np.array([[0.2, 0.5, 0.3], [1, 0, 0]], np.float32)
SEQ, VOL = real(2, 6, 3), real(1, 4, 5, 4, 2)
nn = [("tf.nn.relu", [X]), ("tf.nn.relu6", [X * 4]), ("tf.nn.leaky_relu", [X]), ("tf.nn.leaky_relu", [X], {"alpha": 0.3}), ("tf.nn.elu", [X]), ("tf.nn.selu", [X]), ("tf.nn.gelu", [X]), ("tf.nn.gelu", [X], {"approximate": True}), ("tf.nn.silu", [X]), ("tf.nn.swish", [X]),
      ("tf.nn.sigmoid", [X]), ("tf.nn.softplus", [X]), ("tf.nn.softsign", [X]), ("tf.nn.tanh", [X]), ("tf.nn.softmax", [X]), ("tf.nn.softmax", [CUBE], {"axis": 1}), ("tf.nn.log_softmax", [X]), ("tf.math.log_sigmoid", [X]), ("tf.nn.relu", [I]),
      ("tf.nn.softmax_cross_entropy_with_logits", [], {"labels": L, "logits": X}), ("tf.nn.sparse_softmax_cross_entropy_with_logits", [], {"labels": np.array([2, 0], np.int32), "logits": X}), ("tf.nn.sigmoid_cross_entropy_with_logits", [], {"labels": L, "logits": X}),
      ("tf.nn.weighted_cross_entropy_with_logits", [L, X, 2.0]), ("tf.nn.l2_loss", [X]), ("tf.nn.conv2d", [IMG, real(3, 3, 3, 4), 1, "SAME"]), ("tf.nn.conv2d", [IMG, real(3, 2, 3, 4), [1, 2, 2, 1], "VALID"]), ("tf.nn.conv2d", [IMG, real(2, 2, 3, 4)], {"strides": [2, 1], "padding": "SAME"}),
      ("tf.nn.conv2d", [IMG, real(2, 2, 3, 2)], {"strides": 1, "padding": "VALID", "dilations": 2}), ("tf.nn.conv2d", [IMG, real(2, 2, 1, 6), 1, "SAME"]), ("tf.nn.conv1d", [SEQ, real(3, 3, 2), 2, "SAME"]), ("tf.nn.conv3d", [VOL, real(2, 2, 2, 2, 3), [1, 1, 1, 1, 1], "SAME"]),
      ("tf.nn.depthwise_conv2d", [IMG, real(3, 3, 3, 2), [1, 1, 1, 1], "SAME"]), ("tf.nn.separable_conv2d", [IMG, real(3, 3, 3, 1), real(1, 1, 3, 4), [1, 1, 1, 1], "VALID"]), ("tf.nn.conv2d_transpose", [real(2, 3, 3, 4), real(3, 3, 2, 4), [2, 6, 6, 2], 2]),
      ("tf.nn.conv2d_transpose", [real(2, 3, 3, 4), real(3, 3, 2, 4)], {"output_shape": [2, 7, 7, 2], "strides": [1, 2, 2, 1], "padding": "VALID"}), ("tf.nn.max_pool2d", [IMG, 2, 2, "VALID"]), ("tf.nn.max_pool2d", [IMG], {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}),
      ("tf.nn.avg_pool2d", [IMG, 2, 2, "SAME"]), ("tf.nn.avg_pool", [SEQ, 2, 2, "VALID"]), ("tf.nn.max_pool1d", [SEQ, 2, 1, "SAME"]), ("tf.nn.max_pool3d", [VOL, 2, 2, "SAME"]), ("tf.nn.batch_normalization", [X, real(3), P[0], real(3), real(3), 1e-3]),
      ("tf.nn.batch_normalization", [X, real(3), P[0]], {"offset": None, "scale": None, "variance_epsilon": 1e-3}), ("tf.nn.embedding_lookup", [real(5, 2), np.array([[0, 4], [1, 1]], np.int32)]), ("tf.nn.dropout", [X, 0.0])]
for f in "relu relu6 leaky_relu elu selu gelu silu sigmoid softplus softsign hard_sigmoid hard_silu log_softmax softmax log_sigmoid celu glu tanh_shrink hard_tanh hard_shrink soft_shrink squareplus sparse_plus sparse_sigmoid sparsemax".split():
    nn.append(("keras.ops." + f, [real(2, 4)]))
nn += [("keras.ops.threshold", [X, 0.5, -1.0]), ("keras.activations.relu", [X], {"negative_slope": 0.1, "max_value": 1.0, "threshold": 0.2}), ("keras.ops.conv", [IMG, real(3, 3, 3, 4)], {"padding": "same"}), ("keras.ops.max_pool", [IMG, 2]), ("keras.ops.average_pool", [IMG, 3, 2, "same"]),
       ("keras.ops.depthwise_conv", [IMG, real(3, 3, 3, 1)]), ("keras.ops.categorical_crossentropy", [L, L * 0.8 + np.float32(0.05)]), ("keras.ops.categorical_crossentropy", [L, X], {"from_logits": True}), ("keras.ops.sparse_categorical_crossentropy", [np.array([0, 2], np.int32), L * 0.8 + np.float32(0.05)]),
       ("keras.ops.binary_crossentropy", [L, L * 0.8 + np.float32(0.05)]), ("keras.ops.batch_normalization", [X, real(3), P[0], -1]), ("keras.ops.layer_normalization", [X])]

image = [("tf.image.resize", [IMG, [3, 4]]), ("tf.image.resize", [IMG[0], [7, 8]], {"method": "nearest"}), ("tf.image.resize", [whole(4, 4, 1, dtype=np.uint8, low=0, high=255), [2, 2]]), ("tf.image.flip_left_right", [IMG]), ("tf.image.flip_up_down", [IMG[0]]),
         ("tf.image.transpose", [IMG]), ("tf.image.crop_to_bounding_box", [IMG, 1, 2, 3, 2]), ("tf.image.pad_to_bounding_box", [IMG, 1, 2, 8, 9]), ("tf.image.resize_with_crop_or_pad", [IMG, 4, 8]), ("tf.image.central_crop", [IMG, 0.5]),
         ("tf.image.rgb_to_grayscale", [IMG]), ("tf.image.grayscale_to_rgb", [IMG[..., :1].copy()]), ("tf.image.adjust_brightness", [IMG, 0.2]), ("tf.image.adjust_contrast", [IMG, 1.7]), ("tf.image.per_image_standardization", [IMG]),
         ("tf.image.convert_image_dtype", [whole(2, 2, 3, dtype=np.uint8, low=0, high=255), "float32"]), ("tf.image.convert_image_dtype", [real(2, 2, 3, low=0, high=1), "uint8"])]

L3, P3 = np.array([0, 1, 2, 2], np.int32), np.array([0, 2, 2, 1], np.int32)
more = [("tf.math.scalar_mul", [2.0, X]), ("tf.math.polyval", [[2.0, 1.0, 3.0], X]), ("tf.math.cumulative_logsumexp", [X], {"axis": 1}), ("tf.math.is_strictly_increasing", [np.float32([1, 2, 3])]), ("tf.math.is_strictly_increasing", [np.float32([1, 1])]),
        ("tf.math.is_non_decreasing", [np.float32([1, 1])]), ("tf.math.confusion_matrix", [L3, P3]), ("tf.math.confusion_matrix", [L3, P3], {"num_classes": 4}), ("tf.math.segment_sum", [real(4, 2), np.array([0, 0, 1, 2], np.int32)]),
        ("tf.math.segment_mean", [real(4, 2), np.array([0, 0, 1, 1], np.int32)]), ("tf.math.bincount", [np.array([1, 5, 2, 5], np.int32)]), ("tf.math.bincount", [np.array([1, 5, 2, 5], np.int32)], {"weights": np.float32([1, 2, 3, 4])}),
        ("tf.histogram_fixed_width", [X, [-2.0, 2.0]], {"nbins": 5}), ("tf.sequence_mask", [np.array([1, 3, 2], np.int32)]), ("tf.unique", [np.array([5, 3, 5, 1, 3], np.int32)]), ("tf.unique", [np.float32([0.5, 2, 0.5])]),
        ("tf.unique_with_counts", [np.array([5, 3, 5, 1, 3, 7, 8, 8, 9], np.int32)]), ("tf.unravel_index", [np.array([5, 11], np.int32), [3, 4]]), ("tf.ensure_shape", [X, [2, None]]), ("tf.ensure_shape", [X, [3, None]]), ("tf.nn.crelu", [X]),
        ("tf.nn.zero_fraction", [np.float32([0, 1, 0, 0])]), ("tf.nn.compute_average_loss", [real(4)]), ("tf.nn.compute_average_loss", [real(4)], {"global_batch_size": 8}), ("tf.nn.local_response_normalization", [IMG], {"depth_radius": 1, "alpha": 0.5}),
        ("tf.nn.weighted_moments", [X, [0], P]), ("tf.nn.log_poisson_loss", [P, X]), ("tf.nn.log_poisson_loss", [P, X], {"compute_full_loss": True}), ("tf.nn.atrous_conv2d", [IMG, real(2, 2, 3, 2), 2, "VALID"]), ("tf.nn.pool", [IMG, [2, 2], "MAX"]),
        ("tf.nn.pool", [IMG, [2, 2], "AVG"], {"strides": [2, 2], "padding": "SAME"}), ("tf.nn.normalize_moments", [4.0, np.float32([8, 4]), np.float32([20, 10]), None]),
        ("tf.image.extract_patches", [IMG, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"]), ("tf.image.extract_patches", [IMG, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"]), ("tf.image.psnr", [IMG, IMG * np.float32(0.9), 1.0]),
        ("keras.backend.permute_dimensions", [CUBE, [2, 0, 1]]), ("keras.backend.pow", [P, 2.0]),
        ("keras.backend.concatenate", [[X, Y]]), ("keras.backend.one_hot", [np.array([0, 2], np.int32), 3])]

S = real(3, 3) @ real(3, 3) + 4 * np.eye(3, dtype=np.float32)
W = np.stack([np.array([[0, 2, 1], [3, 1, 0], [1, 1, 4]], np.float64), S.astype(np.float64)])
SPD = (lambda a: np.round(a @ a.T + 3 * np.eye(4), 2).astype(np.float64))(real(4, 4))
solve = [("tf.linalg.inv", [S]), ("tf.linalg.inv", [W]), ("tf.linalg.inv", [W], {"adjoint": True}), ("tf.linalg.det", [W]), ("tf.linalg.det", [S]), ("tf.linalg.slogdet", [W]), ("tf.linalg.logdet", [SPD]), ("tf.linalg.solve", [W, real(2, 3, 2, dtype=np.float64)]),
         ("tf.linalg.solve", [S, real(3, 2)]), ("tf.linalg.triangular_solve", [SPD, real(4, 1, dtype=np.float64)]), ("tf.linalg.triangular_solve", [SPD, real(4, 1, dtype=np.float64)], {"lower": False}), ("tf.linalg.cholesky", [SPD]), ("keras.ops.inv", [S]),
         ("keras.ops.det", [S]), ("keras.ops.solve", [S, real(3)]), ("keras.ops.cholesky", [SPD]), ("tf.linalg.adjoint", [CUBE]), ("tf.einsum", ["ii->", [S]], {}, 1), ("tf.einsum", ["ii->i", [S]], {}, 1), ("tf.einsum", ["bii,bj->bj", [W, real(2, 2, dtype=np.float64)]], {}, 1),
         ("tf.bitwise.bitwise_and", [np.array([5, 6, -3], np.int32), np.array([3, 3, 7], np.int32)]), ("tf.bitwise.bitwise_or", [np.array([5, 6, -3], np.int32), np.array([3, 3, 7], np.int32)]), ("tf.bitwise.bitwise_xor", [np.array([5, 6, -3], np.int32), np.array([3, 3, 7], np.int32)]),
         ("tf.bitwise.left_shift", [np.array([1, 2], np.int32), np.array([3, 1], np.int32)]), ("tf.bitwise.right_shift", [np.array([9, -8], np.int32), np.array([1, 2], np.int32)]), ("tf.bitwise.invert", [np.array([9, -8], np.int32)]),
         ("tf.tensor_scatter_nd_max", [X, np.array([[0, 1], [1, 2]], np.int32), np.float32([9, -8])]), ("tf.tensor_scatter_nd_min", [X, np.array([[0, 1], [1, 2]], np.int32), np.float32([9, -8])]),
         ("tf.nn.conv2d", [IMG, real(3, 3, 3, 1), 1, [[0, 0], [1, 1], [2, 0], [0, 0]]])]

H = np.array([[1, np.nan, 3], [4, 5, np.nan]], np.float32)
RGB = real(2, 4, 5, 3, low=0.0, high=1.0)
less = [("keras.ops." + f, [H]) for f in "nansum nanprod nanmax nanmin nanmean nanvar nanstd".split()] + [("keras.ops.nanmean", [H], {"axis": 1}), ("keras.ops.nanstd", [H], {"axis": 0, "keepdims": True})]
less += [("keras.ops.average", [X]), ("keras.ops.average", [X], {"axis": 1, "weights": np.float32([1, 2, 3])}), ("keras.ops.ptp", [X], {"axis": 1}), ("keras.ops.vdot", [X, Y]), ("keras.ops.trapezoid", [X], {"dx": 0.5}), ("keras.ops.cbrt", [X]),
         ("keras.ops.heaviside", [np.float32([-1, 0, 2]), 0.5]), ("tf.math.reciprocal_no_nan", [np.float32([0, 2])]), ("tf.math.ndtri", [np.float32([0.1, 0.5, 0.9])]), ("keras.ops.logaddexp2", [X, Y]), ("keras.ops.isposinf", [np.float32([1, np.inf, -np.inf])]),
         ("keras.ops.isneginf", [np.float32([1, np.inf, -np.inf])]), ("keras.ops.isin", [I, [1, 2, 3]]), ("keras.ops.fmod", [I, J]), ("keras.ops.rot90", [CUBE]), ("keras.ops.rot90", [CUBE], {"k": 3, "axes": [1, 2]}), ("tf.image.rot90", [IMG]), ("tf.image.rot90", [IMG[0]], {"k": 3}),
         ("keras.ops.flipud", [X]), ("keras.ops.fliplr", [X]), ("keras.ops.append", [X, Y]), ("keras.ops.append", [X, Y], {"axis": 0}), ("keras.ops.slice_update", [CUBE, [0, 1, 2], real(1, 2, 2)]), ("tf.reverse_sequence", [CUBE, np.array([2, 3], np.int32)], {"seq_axis": 1, "batch_axis": 0}),
         ("tf.math.unsorted_segment_max", [real(4, 2), np.array([0, 2, 0, 2], np.int32), 3]), ("tf.math.unsorted_segment_min", [real(4, 2), np.array([0, 2, 0, 2], np.int32), 4]), ("tf.math.unsorted_segment_prod", [real(4, 2), np.array([0, 2, 0, 2], np.int32), 3]),
         ("tf.math.segment_max", [real(4, 2), np.array([0, 0, 1, 1], np.int32)]), ("keras.ops.diag", [real(3)], {"k": 1}), ("keras.ops.diag", [real(3, 4)], {"k": -1}), ("keras.ops.kron", [real(2, 2), real(2, 3)]),
         ("keras.ops.dot_product_attention", [real(2, 3, 2, 4), real(2, 5, 2, 4), real(2, 5, 2, 4)]), ("keras.ops.dot_product_attention", [real(2, 3, 2, 4), real(2, 3, 2, 4), real(2, 3, 2, 4)], {"is_causal": True}), ("keras.ops.digitize", [X, np.float32([-1, 0, 1])]),
         ("tf.image.rgb_to_hsv", [RGB]), ("tf.image.hsv_to_rgb", [RGB]), ("tf.image.adjust_saturation", [RGB, 0.5]), ("tf.image.adjust_hue", [RGB, 0.2]), ("tf.image.adjust_gamma", [RGB, 2.0, 1.5]), ("tf.image.total_variation", [IMG]),
         ("tf.linalg.lstsq", [real(5, 3, dtype=np.float64), real(5, 2, dtype=np.float64)], {"l2_regularizer": 0.1}), ("tf.linalg.cholesky_solve", [SPD, real(4, 1, dtype=np.float64)]), ("keras.ops.conv_transpose", [real(2, 3, 3, 4), real(3, 3, 2, 4), 2, "same"]),
         ("keras.ops.conv_transpose", [real(2, 3, 3, 4), real(3, 3, 2, 4), 2, "valid"]), ("keras.ops.conv_transpose", [real(2, 5, 4), real(3, 2, 4), 2, "same"]), ("keras.ops.space_to_depth", [real(1, 4, 4, 2), 2]),
         ("keras.backend.tile", [X, [2, 1]]), ("tf.math.softmax", [X]), ("tf.nn.conv1d_transpose", [real(2, 3, 4), real(3, 2, 4), [2, 6, 2], 2])]

BYTES = whole(5, 6, 3, dtype=np.uint8, low=0, high=256)
BIG, OTHER = real(2, 16, 14, 2, low=0, high=1), real(2, 16, 14, 2, low=0, high=1)
BOXES = np.float32([[0, 0, 1, 1], [0.2, 0.6, 0.9, 0.1], [-0.3, 0.1, 0.5, 1.2]])
picture = [("tf.image.adjust_brightness", [BYTES, 0.2]), ("tf.image.adjust_contrast", [BYTES, 1.7]), ("tf.image.adjust_saturation", [BYTES, 1.5]),
           ("tf.image.adjust_hue", [BYTES, 0.3]), ("tf.image.adjust_gamma", [BYTES, 2.0, 1.5]), ("tf.image.rgb_to_grayscale", [BYTES]),
           ("tf.image.resize", [IMG, [4, 20]], {"preserve_aspect_ratio": True}), ("tf.image.resize", [IMG[0], [9, 3]], {"preserve_aspect_ratio": True}),
           ("tf.image.resize", [IMG, [3, 4]], {"method": "gaussian", "antialias": True}), ("tf.image.resize", [IMG, [7, 8]], {"method": "mitchellcubic"}),
           ("tf.image.rgb_to_yuv", [RGB]), ("tf.image.yuv_to_rgb", [RGB]), ("tf.image.rgb_to_yiq", [RGB]), ("tf.image.yiq_to_rgb", [RGB]),
           ("tf.image.image_gradients", [IMG]), ("tf.image.sobel_edges", [IMG]), ("tf.image.ssim", [BIG, OTHER, 1.0]),
           ("tf.image.ssim", [BIG[0], OTHER[0], 1.0], {"filter_size": 5, "filter_sigma": 0.8}), ("tf.image.resize_with_pad", [IMG, 7, 9]),
           ("tf.image.resize_with_pad", [IMG[0], 4, 3], {"method": "nearest"}), ("tf.image.resize_with_pad", [BYTES, 3, 9], {"antialias": True}),
           ("tf.image.crop_and_resize", [IMG, BOXES, np.int32([0, 1, 0]), [3, 4]]),
           ("tf.image.crop_and_resize", [IMG, BOXES, np.int32([1, 0, 1]), [2, 1]], {"method": "nearest", "extrapolation_value": 0.5})]

GROUPS = {"less": less, "solve": solve, "more": more, "one": one, "two": two, "along": along, "shape": shape, "index": index, "linalg": linalg, "nn": nn, "image": image, "picture": picture}
