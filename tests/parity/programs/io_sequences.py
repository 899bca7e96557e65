"""SequenceExamples written and parsed, alone and in map; Examples as text; WAV files; characters and neighbours of words."""
import zlib

import numpy as np
import tensorflow as tf
from parity import check, raises


def floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def texts(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def whole(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


e = tf.train.SequenceExample(
    context=tf.train.Features(feature={"id": whole(7), "name": texts(b"first")}),
    feature_lists=tf.train.FeatureLists(feature_list={
        "x": tf.train.FeatureList(feature=[floats(1, 2), floats(3, 4), floats(5, 6)]),
        "words": tf.train.FeatureList(feature=[texts(b"a", b"b"), texts(), texts(b"c")])}))
data = e.SerializeToString()
check("length", len(data))
back = tf.train.SequenceExample.FromString(data)
check("back", [list(f.float_list.value) for f in back.feature_lists.feature_list["x"].feature])
check("context", list(back.context.feature["id"].int64_list.value))
context = {"id": tf.io.FixedLenFeature([], tf.int64), "name": tf.io.FixedLenFeature([], tf.string)}
lists = {"x": tf.io.FixedLenSequenceFeature([2], tf.float32), "none": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
c, s = tf.io.parse_single_sequence_example(data, context, lists)
check("parsed context", c)
check("parsed lists", s)
c, s = tf.io.parse_single_sequence_example(data, sequence_features={"words": tf.io.VarLenFeature(tf.string)})
check("words", tf.sparse.to_dense(s["words"]))
raises(tf.errors.InvalidArgumentError, lambda: tf.io.parse_single_sequence_example(
    data, sequence_features={"no": tf.io.FixedLenSequenceFeature([], tf.int64)}))
raises(ValueError, lambda: tf.io.parse_single_sequence_example(data))
d = tf.data.Dataset.from_tensors(data).repeat(2).map(lambda t: tf.io.parse_single_sequence_example(t, context, lists), num_parallel_calls=2)
check("spec", [str(t) for t in tf.nest.flatten(d.element_spec)])
check("mapped", [(a["id"], b["x"]) for a, b in d])
check("shown", str(tf.train.Example(features=tf.train.Features(feature={"x": floats(0.1, 3, 1e-7)}))))
check("quoted", str(texts(b'a\n"\\\xff')))

t = np.arange(40)
wave = np.stack([np.sin(t * 0.3), np.cos(t * 0.2)], 1).astype("float32")
packed = tf.audio.encode_wav(wave, 8000)
check("packed", len(packed.numpy()))
sound, rate = tf.audio.decode_wav(packed)
check("sound", sound, 1e-6)
check("rate", rate)
check("one channel", tf.audio.decode_wav(packed, desired_channels=1, desired_samples=4)[0], 1e-6)
check("more", tf.audio.decode_wav(packed, desired_channels=3, desired_samples=42)[0][38:], 1e-6)
raises(tf.errors.InvalidArgumentError, lambda: tf.audio.decode_wav(b"no sound at all"))
raises(tf.errors.InvalidArgumentError, lambda: tf.audio.decode_wav(packed.numpy()[:100]))
d = tf.data.Dataset.from_tensors(packed).map(lambda b: tf.audio.decode_wav(b, desired_samples=16))
check("sound spec", [str(t) for t in d.element_spec])

check("bytes", tf.strings.bytes_split("hello"))
check("codes", tf.strings.unicode_decode("a€", "UTF-8"))
check("encoded", tf.strings.unicode_encode([97, 8364], "UTF-8"))
check("neighbours", tf.strings.ngrams(["a", "b", "c"], 2))
check("padded neighbours", tf.strings.ngrams(["a", "b", "c"], 2, pad_values=("<", ">")))
check("base64", tf.io.encode_base64(["a?>", "hello"]))
check("padded base64", tf.io.encode_base64("hello", pad=True))
check("from base64", tf.io.decode_base64(["YT8-", "aGVsbG8"]))
raises(tf.errors.InvalidArgumentError, lambda: tf.io.decode_base64("a*"))
check("unpacked", tf.io.decode_compressed(tf.constant(zlib.compress(b"many many bytes")), "ZLIB"))
picture = tf.constant(np.random.RandomState(0).randint(0, 255, (16, 16, 3)).astype("uint8"))
check("quality", tf.image.stateless_random_jpeg_quality(picture, 75, 95, (1, 2)).dtype)
raises(ValueError, lambda: tf.image.random_jpeg_quality(picture, 90, 80))
