"""keras.preprocessing.sequence."""
from snug import _arrays
from snug.keras.utils import PyDataset, pad_sequences  # noqa: F401


class TimeseriesGenerator(PyDataset):
    """Batches of windows of a series, each with the target behind it."""

    def __init__(self, data, targets, length, sampling_rate=1, stride=1, start_index=0, end_index=None, shuffle=False, reverse=False,
                 batch_size=128, **kwargs):
        super().__init__(**kwargs)
        data, targets = _arrays.of(data), _arrays.of(targets)
        if len(data) != len(targets):
            raise ValueError(f"Data and targets have to be of same length. Data length is {len(data)} while target length is {len(targets)}")
        self.data, self.targets, self.length, self.sampling_rate, self.stride = data, targets, length, sampling_rate, stride
        self.start_index, self.end_index = start_index + length, len(data) - 1 if end_index is None else end_index
        self.shuffle, self.reverse, self.batch_size = shuffle, reverse, batch_size
        if self.start_index > self.end_index:
            raise ValueError(f"`start_index+length={self.start_index} > end_index={self.end_index}` is disallowed, as no part of the"
                             " sequence would be left to be used as current step.")

    def __len__(self):
        step = self.batch_size * self.stride
        return (self.end_index - self.start_index + step) // step

    def __getitem__(self, index):
        import numpy as np
        first, step = self.start_index + index * self.batch_size * self.stride, self.batch_size * self.stride
        ends = np.random.randint(self.start_index, self.end_index + 1, self.batch_size) if self.shuffle else \
            np.arange(first, min(first + step, self.end_index + 1), self.stride)
        windows = np.array([self.data[end - self.length:end:self.sampling_rate] for end in ends])
        return windows[:, ::-1] if self.reverse else windows, np.array([self.targets[end] for end in ends])


def make_sampling_table(size, sampling_factor=1e-5):
    """How likely word number i is kept, as word2vec has it, for words sorted by how often they occur."""
    import numpy as np
    rank = np.maximum(np.arange(size), 1)
    share = sampling_factor * (rank * (np.log(rank) + 0.577) + 0.5 - 1.0 / (12.0 * rank))
    return np.minimum(1.0, share / np.sqrt(share))


def skipgrams(sequence, vocabulary_size, window_size=4, negative_samples=1.0, shuffle=True, categorical=False, sampling_table=None,
              seed=None):
    """Pairs of words that stand near each other (label 1), and pairs with words that were drawn (label 0)."""
    import random
    pairs, sequence, sampling_table = [], _arrays.of(sequence), _arrays.of(sampling_table)
    for i, word in enumerate(sequence):
        if not word or (sampling_table is not None and sampling_table[word] < random.random()):
            continue
        near = range(max(0, i - window_size), min(len(sequence), i + window_size + 1))
        pairs += [[word, sequence[j]] for j in near if j != i and sequence[j]]
    n, drawn = len(pairs), int(len(pairs) * negative_samples)
    if drawn:
        words = [pair[0] for pair in pairs]
        random.shuffle(words)
        pairs += [[words[i % n], random.randint(1, vocabulary_size - 1)] for i in range(drawn)]
    yes, no = ([0, 1], [1, 0]) if categorical else (1, 0)
    labels = [yes] * n + [no] * drawn
    if shuffle:
        order = list(range(len(pairs)))
        random.Random(random.randint(0, 10_000_000) if seed is None else seed).shuffle(order)
        pairs, labels = [pairs[i] for i in order], [labels[i] for i in order]
    return pairs, labels
