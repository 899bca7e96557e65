"""keras.preprocessing.text and sequence: Tokenizer, skipgrams, TimeseriesGenerator, pad_sequences; sounds from a folder."""
import os
import random
import tempfile

import numpy as np
import tensorflow as tf
from parity import check, raises
from tensorflow.keras.preprocessing.image import smart_resize
from tensorflow.keras.preprocessing.sequence import TimeseriesGenerator, make_sampling_table, pad_sequences, skipgrams
from tensorflow.keras.preprocessing.text import Tokenizer, hashing_trick, text_to_word_sequence, tokenizer_from_json

sentences = ["I love my dog", "I, love my cat", "You love my dog!", "Do you think my dog is amazing?"]
t = Tokenizer(num_words=6, oov_token="<OOV>")
t.fit_on_texts(sentences)
check("index", t.word_index)
check("counts", dict(t.word_counts))
check("sequences", t.texts_to_sequences(["i really love my dog", "my dog loves my manatee"]))
check("padded", pad_sequences(t.texts_to_sequences(sentences), padding="post", truncating="post", maxlen=5))
check("texts", t.sequences_to_texts([[1, 2, 9, 99, 3]]))
plain = Tokenizer()
plain.fit_on_texts(sentences)
for mode in ("binary", "count", "freq", "tfidf"):
    check(mode, plain.texts_to_matrix(["my dog my cat"], mode=mode))
raises(ValueError, lambda: Tokenizer().texts_to_matrix(["a"]))
check("again", tokenizer_from_json(t.to_json()).texts_to_sequences(["you is"]))
letters = Tokenizer(char_level=True)
letters.fit_on_texts(["abca"])
check("letters", letters.texts_to_sequences(["cab"]))
check("words", text_to_word_sequence("Hello, World-wide!"))
check("hashed", hashing_trick("a b c", 10, hash_function="md5"))
check("table", make_sampling_table(6))
random.seed(3)
check("pairs", skipgrams([1, 2, 3, 0, 4], 5, window_size=1, negative_samples=1.0, seed=2))
random.seed(3)
check("pairs of classes", skipgrams([1, 2, 3], 5, window_size=1, negative_samples=0.5, shuffle=False, categorical=True))
g = TimeseriesGenerator(np.arange(12).reshape(12, 1), np.arange(12), length=4, sampling_rate=2, stride=2, batch_size=3, reverse=True)
check("windows", [g[i] for i in range(len(g))])
raises(ValueError, lambda: TimeseriesGenerator(np.arange(4), np.arange(4), length=5))
check("cut", smart_resize(np.arange(5 * 8 * 3, dtype="float32").reshape(5, 8, 3), (3, 3)))

with tempfile.TemporaryDirectory() as folder:
    for name in ("no", "yes"):
        for i in range(4):
            wave = np.sin(np.arange(30 + 5 * i) * 0.1 * (i + 1)).astype("float32")[:, None]
            tf.io.write_file(os.path.join(folder, name, f"{i}.wav"), tf.audio.encode_wav(wave, 8000))
    from_directory = tf.keras.utils.audio_dataset_from_directory
    train, test = from_directory(folder, batch_size=2, validation_split=0.25, seed=1, output_sequence_length=32, subset="both")
    check("classes", list(train.class_names))
    check("spec", [str(s) for s in train.element_spec])
    check("test", [(x, y) for x, y in test], 1e-6)
    longest = from_directory(folder, batch_size=4, shuffle=False, label_mode="categorical")
    check("padded sounds", [(tuple(x.shape), y) for x, y in longest])
    raises(ValueError, lambda: from_directory(folder, validation_split=0.5))
