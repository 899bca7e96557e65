"""tf.nn's sequences of labels: the loss that sums over all ways to read one, and the reading itself."""
from snug._given import default_only
from snug._lazy import tf

_LOW = -1e30


def _later(a, steps):
    """Log-probabilities of the label so many places before."""
    return tf.concat([tf.fill((a.shape[0], steps), _LOW), a[:, :-steps]], 1)


@default_only("unique", "tf.nn.ctc_loss")
def ctc_loss(labels, logits, label_length, logit_length, logits_time_major=True, unique=None, blank_index=None, name=None):
    """Forward sums over labels with blanks between them, one step after the other; gradients follow from them."""
    if hasattr(labels, "indices"):
        raise NotImplementedError("tf.nn.ctc_loss: labels are a dense tensor in Snug; give tf.sparse.to_dense(labels) and label_length")
    logits = tf.convert_to_tensor(logits)
    logits = logits if logits_time_major else tf.transpose(logits, (1, 0, 2))
    labels = tf.cast(labels, "int32")
    steps, batch, classes = logits.shape
    blank = 0 if blank_index is None else blank_index % classes
    length = labels.shape[1]
    logp = tf.nn.log_softmax(logits)
    empty = tf.fill((batch, length), blank)
    spread = tf.concat([tf.reshape(tf.stack([empty, labels], 2), (batch, 2 * length)), tf.fill((batch, 1), blank)], 1)
    said = tf.gather(tf.transpose(logp, (1, 0, 2)), tf.tile(spread[:, None], (1, steps, 1)), axis=2, batch_dims=2)
    before = tf.concat([tf.fill((batch, 2), -1), spread[:, :-2]], 1)
    skips = (spread != blank) & (spread != before)
    first = tf.concat([tf.zeros((batch, min(2, 2 * length + 1))), tf.fill((batch, 2 * length - 1), _LOW)], 1) if length else tf.zeros((batch, 1))
    alpha = first + said[:, 0]
    lasts = tf.cast(logit_length, "int32")
    for t in range(1, steps):
        ways = [alpha, _later(alpha, 1)] + ([tf.where(skips, _later(alpha, 2), _LOW)] if length else [])
        moved = tf.reduce_logsumexp(tf.stack(ways), 0) + said[:, t]
        alpha = tf.where((t < lasts)[:, None], moved, alpha)
    end = 2 * tf.cast(label_length, "int32")
    ends = tf.stack([end, tf.maximum(end - 1, 0)], 1)
    last = tf.gather(alpha, ends, axis=1, batch_dims=1)
    last = tf.where(tf.stack([end >= 0, end > 0], 1), last, _LOW)
    return -tf.reduce_logsumexp(last, 1)


def _read(scores, lengths, merge_repeated, blank):
    """[[labels of a row]], and minus the sums of the best logits."""
    import numpy as np
    best = tf.argmax(scores, axis=-1).numpy()
    top = tf.reduce_max(scores, -1).numpy()
    rows, sums = [], []
    for row, values, n in zip(best, top, np.asarray(lengths)):
        row = row[:n]
        keep = np.ones(len(row), bool)
        if merge_repeated:
            keep[1:] = row[1:] != row[:-1]
        rows.append([int(v) for v, k in zip(row, keep) if k and v != blank])
        sums.append(-values[:n].sum())
    return rows, np.array(sums, "float32")[:, None]


def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True, blank_index=None):
    from snug._sparse import SparseTensor
    inputs = tf.convert_to_tensor(inputs)
    blank = (-1 if blank_index is None else blank_index) % inputs.shape[-1]
    rows, sums = _read(tf.transpose(inputs, (1, 0, 2)), sequence_length, merge_repeated, blank)
    places = [[i, k] for i, row in enumerate(rows) for k in range(len(row))]
    width = max([len(row) for row in rows] + [0])
    found = SparseTensor(tf.constant(places, dtype="int64", shape=(len(places), 2)),
                         tf.constant([v for row in rows for v in row], dtype="int64"), (len(rows), width))
    return [found], tf.constant(sums)


def decode_dense(inputs, sequence_lengths, merge_repeated, blank):
    """As keras.ops has it: rows filled up with -1."""
    import numpy as np
    inputs = tf.convert_to_tensor(inputs)
    rows, sums = _read(inputs, sequence_lengths, merge_repeated, blank % inputs.shape[-1])
    made = np.full((1, len(rows), inputs.shape[1]), -1, "int32")
    for i, row in enumerate(rows):
        made[0, i, :len(row)] = row
    return tf.constant(made), tf.constant(sums)
