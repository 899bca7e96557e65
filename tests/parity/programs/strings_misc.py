"""What scripts use besides numbers: string tensors, tf.strings, tf.io-free helpers, tf.nest, tf.constant of text."""
import numpy as np
import tensorflow as tf
from parity import check

s = tf.constant(["hello", "wide world"])
check("strings", s)
check("dtype", s.dtype)
check("numpy", s.numpy().tolist()[0])
check("string", str(tf.constant("hello")))
check("strings", repr(tf.constant(["a", "bc"])))
check("join", tf.strings.join([s, ["!", "?"]]))
check("length", tf.strings.length(s))
check("upper", tf.strings.upper(s))
check("lower", tf.strings.lower(["ABC"]))
check("as_string", tf.strings.as_string([1, 2]))
check("to_number", tf.strings.to_number(["1.5", "-2"]))
check("substr", tf.strings.substr(s, 0, 3))
check("regex", tf.strings.regex_replace(s, "o", "0"))
spanish = tf.constant(["¿Dónde está el niño?", "¡Qué día! ñandú", "plain"])
for pattern in ("[^ a-zA-Z.?!,¿]+", "[.?!,¿¡]", "[à-ü]", "[x-é]", "[^ñé]", "[\\Wa]", "[^\\W]", "[¿é-ó]{1,2}"):
    check("regex above ASCII " + pattern, tf.strings.regex_replace(spanish, pattern, "_"))
check("equal", s == "hello")
check("format", f"{tf.constant(3)} and {tf.constant([1.5])}")
check("percent", "%.3f" % tf.constant(0.12345))
check("format function", "loss {:.4f}".format(tf.constant(1.0).numpy()))
check("strings format", tf.strings.format("v = {}", tf.constant([1, 2])))
check("reduce_join", tf.strings.reduce_join(["a", "b"], separator="-"))
check("gather", tf.gather(s, 1))

words = np.array([["ab", "c"], ["d", "ef"]])
for name, value in {"U": words, "S": words.astype("S"), "O": words.astype(object), "view": words[:, :1], "one": np.array("x")}.items():
    check("NumPy's text " + name, [tf.constant(value), tf.convert_to_tensor(value), tf.constant(value, dtype=tf.string)])
check("several texts", [tf.strings.unicode_decode(["h\u00e9\u00e9", "a"], "UTF-8").to_list(), tf.strings.unicode_split(["h\u00e9", "a"], "UTF-8").to_list(),
                        tf.strings.bytes_split(["ab", "", "c"]).to_list()])
