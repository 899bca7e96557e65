"""StringLookup, IntegerLookup, TextVectorization: tables made by adapt and given, every output mode, a small classifier behind."""
import numpy as np
import tensorflow as tf
from parity import check, raises

L = tf.keras.layers
words = tf.constant([["a", "c", "d"], ["d", "z", "b"]])
look = L.StringLookup(vocabulary=["a", "b", "c", "d"])
check("ids", look(words))
check("table", [str(w) for w in look.get_vocabulary()])
check("size", look.vocabulary_size())
back = L.StringLookup(vocabulary=["a", "b", "c", "d"], invert=True)
check("back", back(tf.constant([[1, 3, 4], [4, 0, 2]])))
masked = L.StringLookup(vocabulary=["a", "b"], mask_token="")
check("masked", masked(tf.constant(["a", "", "q", "b"])))
for mode in ("one_hot", "multi_hot", "count"):
    layer = L.StringLookup(vocabulary=["a", "b", "c", "d"], output_mode=mode)
    check(mode, layer(tf.constant(["a", "c", "z"])) if mode == "one_hot" else layer(tf.constant([["a", "c", "z", "a"], ["d", "d", "b", "a"]])))
learn = L.StringLookup()
learn.adapt(np.array([["b", "a", "b"], ["c", "a", "b"], ["e", "c", "f"]]))
check("learned", [str(w) for w in learn.get_vocabulary()])
check("learned ids", learn(np.array(["a", "b", "x"])))
few = L.StringLookup(max_tokens=3)
few.adapt(np.array(["x", "y", "x", "z", "y", "x"]))
check("few", [str(w) for w in few.get_vocabulary()])

number = L.IntegerLookup(vocabulary=[12, 36, 1138, 42])
check("numbers", number(tf.constant([[12, 1138, 42], [42, 1000, 36]])))
check("numbers back", L.IntegerLookup(vocabulary=[12, 36, 1138, 42], invert=True)(tf.constant([[1, 3, 4], [4, 0, 2]])))
learn = L.IntegerLookup()
learn.adapt(np.array([[12, 1138, 42], [42, 1000, 36]]))
check("numbers learned", [str(w) for w in learn.get_vocabulary()])

lines = ["The quick, brown fox!", "the lazy dog.", "Fox and dog and fox"]
text = L.TextVectorization()
text.adapt(lines)
check("words", [str(w) for w in text.get_vocabulary()])
check("rows", text(lines))
check("one", text(tf.constant("the unknown fox")))
check("column", text(tf.constant([["the fox"], ["dog"]])))
fixed = L.TextVectorization(max_tokens=6, output_sequence_length=4)
fixed.adapt(lines)
check("fixed", fixed(lines))
check("fixed table", [str(w) for w in fixed.get_vocabulary()])
for mode in ("multi_hot", "count", "tf_idf"):
    layer = L.TextVectorization(output_mode=mode)
    layer.adapt(lines)
    check(mode + " text", layer(lines), 1e-5)
    check(mode + " table", [str(w) for w in layer.get_vocabulary()])
pairs = L.TextVectorization(ngrams=2)
pairs.adapt(["a b c", "a b"])
check("pairs", [str(w) for w in pairs.get_vocabulary()])
letters = L.TextVectorization(split="character", standardize=None)
letters.adapt(["abca", "bA"])
check("letters", letters(["cab"]))
given = L.TextVectorization(vocabulary=["dog", "fox"])
check("given", given(["fox cat dog"]))
raises(ValueError, lambda: L.StringLookup(vocabulary=["a", "a"]))

model = tf.keras.Sequential([tf.keras.Input((4,), dtype="int64"), L.Embedding(6, 3), L.GlobalAveragePooling1D(), L.Dense(1)])
model.set_weights([np.linspace(-1, 1, w.size, dtype="float32").reshape(w.shape) for w in model.get_weights()])
model.compile("sgd", "mse")
check("fit", model.fit(fixed(lines), np.array([0.0, 1.0, 0.0]), shuffle=False, epochs=2, verbose=0).history["loss"], 1e-5)

# Several places for what is unknown; layers that know nothing.
check("unknown texts", tf.keras.layers.StringLookup(vocabulary=["a", "b"], num_oov_indices=3)(tf.constant(["zz", "yy", "xx", "a", "hello", "b"])))
check("unknown numbers", tf.keras.layers.IntegerLookup(vocabulary=[10, 20], num_oov_indices=3)(np.array([10, 20, 5, 6, 7, 100, -3])))
check("unknown and masked", tf.keras.layers.StringLookup(vocabulary=["a"], num_oov_indices=2, mask_token="")(tf.constant([["", "x", "a", "yy"]])))
raises(tf.errors.FailedPreconditionError, lambda: tf.keras.layers.StringLookup()(tf.constant(["a"])))
raises(tf.errors.FailedPreconditionError, lambda: tf.keras.layers.TextVectorization()(tf.constant(["a b"])))
