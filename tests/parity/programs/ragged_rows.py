"""Rows of several lengths, as far as texts need them."""
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
