"""Skip-gram word vectors with negative sampling, by hand and with a subclassed model."""
import numpy as np
import tensorflow as tf
from tensorflow.keras.layers import Dot, Embedding, Flatten

sentence = "the wide road shimmered in the hot sun the hot road was wide"
tokens = list(sentence.lower().split())
vocab, index = {}, 1
vocab["<pad>"] = 0
for token in tokens:
    if token not in vocab:
        vocab[token] = index
        index += 1
vocab_size = len(vocab)
sequence = [vocab[word] for word in tokens]
print(vocab_size, sequence)

window_size, num_ns = 2, 3
pairs = []
for i, target in enumerate(sequence):
    for j in range(max(0, i - window_size), min(len(sequence), i + window_size + 1)):
        if i != j:
            pairs.append((target, sequence[j]))
print(len(pairs), pairs[:4])
r = np.random.RandomState(42)
targets, contexts, labels = [], [], []
for target, positive in pairs:
    negatives = r.choice([w for w in range(1, vocab_size) if w != positive], num_ns, replace=False)
    targets.append(target)
    contexts.append(np.concatenate([[positive], negatives]))
    labels.append([1] + [0] * num_ns)
targets, contexts, labels = np.array(targets), np.array(contexts), np.array(labels)
print(f"targets.shape: {targets.shape} contexts.shape: {contexts.shape} labels.shape: {labels.shape}")


class Word2Vec(tf.keras.Model):
    def __init__(self, vocab_size, embedding_dim):
        super().__init__()
        self.target_embedding = Embedding(vocab_size, embedding_dim, name="w2v_embedding")
        self.context_embedding = Embedding(vocab_size, embedding_dim)

    def call(self, pair):
        target, context = pair
        if len(target.shape) == 2:
            target = tf.squeeze(target, axis=1)
        word_emb = self.target_embedding(target)
        context_emb = self.context_embedding(context)
        return tf.einsum("be,bce->bc", word_emb, context_emb)


model = Word2Vec(vocab_size, 8)
model((targets[:1], contexts[:1]))
model.set_weights([r.uniform(-0.3, 0.3, w.shape).astype("float32") for w in model.get_weights()])
model.compile(optimizer=tf.keras.optimizers.Adam(0.02), loss=tf.keras.losses.CategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
history = model.fit((targets, contexts), labels, epochs=10, batch_size=len(targets), shuffle=False, verbose=0)
print("loss", " ".join(f"{v:.3f}" for v in history.history["loss"]))
weights = model.get_layer("w2v_embedding").get_weights()[0]
print(weights.shape)
v = tf.math.l2_normalize(weights, axis=1)
similarity = tf.matmul(v, v, transpose_b=True).numpy()
print("diagonal", np.round(np.diag(similarity)[:3], 3))

emb = tf.Variable(r.uniform(-0.5, 0.5, (vocab_size, 4)).astype("float32"))
out = tf.Variable(r.uniform(-0.5, 0.5, (vocab_size, 4)).astype("float32"))
for step in range(3):
    with tf.GradientTape() as tape:
        e = tf.nn.embedding_lookup(emb, targets)
        c = tf.nn.embedding_lookup(out, contexts)
        logits = tf.reduce_sum(e[:, None, :] * c, axis=-1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(labels, tf.float32), logits=logits))
    g = tape.gradient(loss, [emb, out])
    for var, grad in zip([emb, out], g):
        var.assign_sub(2.0 * tf.convert_to_tensor(grad))
    print("by hand %.4f" % loss.numpy())
