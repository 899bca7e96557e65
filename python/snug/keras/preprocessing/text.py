"""keras.preprocessing.text: words as numbers, in Python, as older scripts do it; TextVectorization does it in pipelines."""
import collections
import json

_SIGNS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'
_COUNTED = ("word_counts", "word_docs", "index_docs", "index_word", "word_index")


def text_to_word_sequence(input_text, filters=_SIGNS, lower=True, split=" "):
    text = input_text.lower() if lower else input_text
    return [word for word in text.translate({ord(c): split for c in filters}).split(split) if word]


def hashing_trick(text, n, hash_function=None, filters=_SIGNS, lower=True, split=" ", analyzer=None):
    if hash_function == "md5":
        import hashlib

        def hash_function(word):
            return int(hashlib.md5(word.encode()).hexdigest(), 16)
    words = text_to_word_sequence(text, filters, lower, split) if analyzer is None else analyzer(text)
    return [(hash_function or hash)(word) % (n - 1) + 1 for word in words]


def one_hot(input_text, n, filters=_SIGNS, lower=True, split=" ", analyzer=None):
    return hashing_trick(input_text, n, hash, filters, lower, split, analyzer)


class Tokenizer:
    """Words by how often they occur: the most frequent is 1 (behind the token for unknown words, where there is one); 0 is none."""

    def __init__(self, num_words=None, filters=_SIGNS, lower=True, split=" ", char_level=False, oov_token=None, analyzer=None, **kwargs):
        self.document_count = kwargs.pop("document_count", 0)
        self.num_words = kwargs.pop("nb_words", num_words)
        if kwargs:
            raise TypeError(f"Unrecognized keyword arguments: {kwargs}")
        self.filters, self.lower, self.split, self.char_level = filters, lower, split, char_level
        self.oov_token, self.analyzer = oov_token, analyzer
        self.word_counts, self.word_docs, self.index_docs = collections.OrderedDict(), collections.defaultdict(int), collections.defaultdict(int)
        self.word_index, self.index_word = {}, {}

    def _words(self, text):
        if self.char_level or isinstance(text, list):
            return text if not self.lower else [t.lower() for t in text] if isinstance(text, list) else text.lower()
        return text_to_word_sequence(text, self.filters, self.lower, self.split) if self.analyzer is None else self.analyzer(text)

    def fit_on_texts(self, texts):
        for text in texts:
            self.document_count += 1
            words = self._words(text)
            for word in words:
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
            for word in set(words):
                self.word_docs[word] += 1
        known = sorted(self.word_counts, key=self.word_counts.get, reverse=True)
        known = known if self.oov_token is None else [self.oov_token, *known]
        self.word_index = {}
        for number, word in enumerate(known, 1):
            self.word_index[word] = number
        self.index_word = {number: word for word, number in self.word_index.items()}
        for word, count in self.word_docs.items():
            self.index_docs[self.word_index[word]] = count

    def fit_on_sequences(self, sequences):
        self.document_count += len(sequences)
        for sequence in sequences:
            for number in set(sequence):
                self.index_docs[number] += 1

    def _known(self, number):
        """The number, or that of unknown words; None: there is none."""
        if number is not None and not (self.num_words and number >= self.num_words):
            return number
        return self.word_index.get(self.oov_token) if self.oov_token is not None else None

    def texts_to_sequences(self, texts):
        return list(self.texts_to_sequences_generator(texts))

    def texts_to_sequences_generator(self, texts):
        for text in texts:
            numbers = [self._known(self.word_index.get(word)) for word in self._words(text)]
            yield [n for n in numbers if n is not None]

    def sequences_to_texts(self, sequences):
        return list(self.sequences_to_texts_generator(sequences))

    def sequences_to_texts_generator(self, sequences):
        for sequence in sequences:
            numbers = [self._known(n if n in self.index_word else None) for n in sequence]
            yield " ".join(self.index_word[n] for n in numbers if n is not None)

    def texts_to_matrix(self, texts, mode="binary"):
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences, mode="binary"):
        import numpy as np
        if not self.num_words and not self.word_index:
            raise ValueError("Specify a dimension (`num_words` argument), or fit on some text data first.")
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Fit the Tokenizer on some data before using tfidf mode.")
        if mode not in ("binary", "count", "freq", "tfidf"):
            raise ValueError("Unknown vectorization mode:", mode)
        out = np.zeros((len(sequences), self.num_words or len(self.word_index) + 1))
        for row, sequence in zip(out, sequences):
            for n, count in collections.Counter(i for i in sequence if i < len(row)).items():
                rare = np.log(1 + self.document_count / (1 + self.index_docs.get(n, 0)))
                row[n] = {"binary": 1, "count": count, "freq": count / len(sequence), "tfidf": (1 + np.log(count)) * rare}[mode]
        return out

    def get_config(self):
        counted = {key: json.dumps(getattr(self, key)) for key in _COUNTED}
        return {"num_words": self.num_words, "filters": self.filters, "lower": self.lower, "split": self.split,
                "char_level": self.char_level, "oov_token": self.oov_token, "document_count": self.document_count, **counted}

    def to_json(self, **kwargs):
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)


def tokenizer_from_json(json_string):
    try:
        config = dict(json.loads(json_string)["config"])
        counted = {key: json.loads(config.pop(key)) for key in _COUNTED}
        made = Tokenizer(**config)
        for key, value in counted.items():
            if any(type(v) is not (str if key == "index_word" else int) for v in value.values()):
                raise ValueError(f"{key} has other values than it should")
            setattr(made, key, {int(k): v for k, v in value.items()} if key.startswith("index") else value)
    except (KeyError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the text is not what a Tokenizer's to_json() gives: {type(error).__name__}: {str(error)[:200]}") from None
    return made
