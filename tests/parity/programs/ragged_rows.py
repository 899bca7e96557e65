"""Rows of several lengths, as far as texts need them."""
import numpy as np
import tensorflow as tf
from parity import check

rows = tf.ragged.constant([[1, 2, 3], [], [4]])
check("list", rows.to_list())
check("padded", rows.to_tensor())
check("padded with", rows.to_tensor(default_value=-1))
check("lengths", rows.row_lengths())
check("shape", rows.shape)
check("text", str(rows))
check("row", rows[0])
check("rows", [r.numpy().tolist() for r in rows])
check("values", rows.values)
check("from lengths", tf.RaggedTensor.from_row_lengths(tf.constant([5, 6, 7]), tf.constant([1, 0, 2])).to_list())
check("from splits", tf.RaggedTensor.from_row_splits(tf.constant([5, 6, 7]), tf.constant([0, 2, 3])).to_list())
check("from a tensor", tf.RaggedTensor.from_tensor(tf.constant([[1, 2, 0], [3, 0, 0]]), padding=0).to_list())
words = tf.strings.split(tf.constant(["a b c", "d e"]))
check("words", words.to_list())
check("words padded", words.to_tensor())
letters = tf.strings.unicode_split(tf.constant(["cat", "ox"]), "UTF-8")
check("letters", letters.to_list())
ids = tf.keras.layers.StringLookup(vocabulary=list("acotx"), mask_token=None)
check("numbers", ids(letters).to_tensor())
lines = tf.keras.layers.TextVectorization(ragged=True, vocabulary=["a", "b", "c"])
check("words of lines", lines(tf.constant(["a b", "c", "b d a"])).to_list())

# --- functions of rows ----------------------------------------------------------------------------------
digits = tf.ragged.constant([[3, 1, 4, 1], [], [5, 9, 2], [6], []])
check("add", str(tf.add(digits, 3)))
check("operators", [str(digits * 2 - 1), str(1 + digits), str(-digits), (digits > 3).to_list()])
check("two", (digits + digits).to_list())
check("a column beside", (digits * tf.constant([[1], [2], [3], [4], [5]])).to_list())
check("sums", tf.reduce_sum(digits, axis=1))
check("means", tf.reduce_mean(tf.ragged.constant([[1.0, 2.0], [3.0]]), axis=1))
check("largest", tf.reduce_max(tf.ragged.constant([[1, 2], [3]]), axis=1))
check("all", tf.reduce_sum(digits))
check("columns", tf.reduce_sum(digits, axis=0))
check("below", tf.concat([digits, tf.ragged.constant([[5, 3]])], axis=0).to_list())
check("beside", tf.concat([rows, tf.ragged.constant([[7], [8], [9]])], axis=1).to_list())
check("tiled", tf.tile(digits, [1, 2]).to_list())
check("mapped", tf.ragged.map_flat_values(lambda x: x * 2 + 1, digits).to_list())
check("slices", [digits[:, :2].to_list(), digits[:, -2:].to_list(), digits[1:3].to_list(), digits[2, 1].numpy()])
check("gathered", tf.gather(digits, [2, 0]).to_list())
check("parts", [digits.row_splits, digits.value_rowids(), digits.row_starts(), digits.row_limits(), digits.bounding_shape()])
check("by rows", tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2]).to_list())
check("ranges", tf.ragged.range([2, 0, 3]).to_list())
check("masked", tf.ragged.boolean_mask(rows, tf.ragged.constant([[True, False, True], [], [False]])).to_list())
check("starts of words", tf.strings.substr(words, 0, 1).to_list())
check("sparse", tf.sparse.to_dense(digits.to_sparse()))
check("deeper", tf.expand_dims(rows, 2).to_list())
nested = tf.ragged.constant([[[1, 2], [3]], [[4]]])
check("nested", [nested.shape, nested.ragged_rank, (nested + 1).to_list(), nested[0].to_list(), nested[0, 1].numpy().tolist()])
check("nested padded", nested.to_tensor())
check("equal lengths", tf.strings.split(tf.constant(["a b", "c d"])).to_list())
check("elements", [r.numpy().tolist() for r in tf.data.Dataset.from_tensor_slices(digits)])
table = tf.Variable(tf.reshape(tf.range(8.0), (4, 2)))
with tf.GradientTape() as tape:
    looked_up = tf.nn.embedding_lookup(table, tf.ragged.constant([[1, 2], [3]]))
    loss = tf.reduce_sum(looked_up.to_tensor() * 2.0)
check("looked up", looked_up.to_list())
check("gradient", tf.convert_to_tensor(tape.gradient(loss, table)))

# --- what does not fit ----------------------------------------------------------------------------------
def refused(kind, call):
    try:
        call()
    except kind:
        return True
    return False


pair = tf.ragged.constant([[1, 2], [3]])
bad = tf.errors.InvalidArgumentError
check("a vector of as many values", refused(bad, lambda: pair + tf.constant([10, 20, 30])))
check("one beside rows", [(pair + tf.constant([[10]])).to_list(), (pair + tf.constant([10])).to_list()])
check("lists beside rows", [refused(bad, lambda: pair + [10, 20, 30]), refused(bad, lambda: tf.maximum(pair, [10, 20, 30])),
                            (pair + [[10], [20]]).to_list(), (pair * np.array([[1], [2]])).to_list(), (pair + [7]).to_list()])
check("rows that go back", refused(bad, lambda: tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 2, 1])))
check("rows that are not there", [refused(bad, lambda: tf.gather(pair, [-1])), refused(bad, lambda: tf.gather(pair, [9]))])
check("gathered by rows", tf.gather(pair, [[0], [1]]).to_list())
check("longer than the tensor", tf.RaggedTensor.from_tensor(tf.constant([[1, 2, 3], [4, 5, 6]]), lengths=[2, 5]).to_list())
steps = tf.ragged.range([0.0, 1.0], [2.0, 3.5], 0.5), tf.ragged.range([2, 3], dtype=tf.int64)
check("ranges", [[s.dtype, s.to_list()] for s in steps])
kept = tf.ragged.boolean_mask(tf.constant([[1, 2, 3], [4, 5, 6]], tf.int64), [[True, False, True], [False, False, True]])
check("masked", [kept.dtype, kept.to_list(), tf.ragged.boolean_mask([1, 2, 3], [True, False, True])])
check("one axis in a list", tf.reduce_sum(pair, axis=[1]))
column = tf.Variable([[1.0], [3.0]])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.concat([tf.ragged.constant([[1.0, 2.0], [3.0]]), column * column], 1).to_tensor())
check("gradient of what is joined", tape.gradient(loss, column))
