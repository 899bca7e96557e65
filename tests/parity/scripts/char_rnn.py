"""Text generation with a GRU: batches of characters, a stateful one-step model, sampling."""
import numpy as np
import tensorflow as tf

text = "to be or not to be that is the question " * 12
vocab = sorted(set(text))
char2idx = {u: i for i, u in enumerate(vocab)}
idx2char = np.array(vocab)
text_as_int = np.array([char2idx[c] for c in text])
print(f"{len(vocab)} unique characters", text_as_int[:8])
seq_length = 20
examples = len(text) // (seq_length + 1)
sequences = text_as_int[:examples * (seq_length + 1)].reshape(examples, seq_length + 1)
inputs, targets = sequences[:, :-1], sequences[:, 1:]


class MyModel(tf.keras.Model):
    def __init__(self, vocab_size, embedding_dim, rnn_units):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(vocab_size, embedding_dim)
        self.gru = tf.keras.layers.GRU(rnn_units, return_sequences=True, return_state=True)
        self.dense = tf.keras.layers.Dense(vocab_size)

    def call(self, inputs, states=None, return_state=False, training=False):
        x = self.embedding(inputs, training=training)
        if states is None:
            states = tf.zeros((tf.shape(x)[0], 24))
        x, states = self.gru(x, initial_state=states, training=training)
        x = self.dense(x, training=training)
        if return_state:
            return x, states
        return x


model = MyModel(len(vocab), 8, 24)
example = model(inputs[:2])
print(example.shape, "# (batch_size, sequence_length, vocab_size)")
loss = tf.losses.SparseCategoricalCrossentropy(from_logits=True)
print("about log of the vocabulary:", abs(float(loss(targets[:2], example)) - np.log(len(vocab))) < 0.3)
model.compile(optimizer=tf.keras.optimizers.Adam(0.02), loss=loss)
history = model.fit(inputs, targets, batch_size=11, epochs=15, verbose=0)
print("learnt:", history.history["loss"][-1] < 1.0)


class OneStep(tf.keras.Model):
    def __init__(self, model, temperature=1.0):
        super().__init__()
        self.temperature = temperature
        self.model = model

    @tf.function
    def generate_one_step(self, ids, states=None):
        predicted_logits, states = self.model(inputs=ids, states=states, return_state=True)
        predicted_logits = predicted_logits[:, -1, :] / self.temperature
        predicted_ids = tf.random.categorical(predicted_logits, num_samples=1)
        return tf.squeeze(predicted_ids, axis=-1), states


one_step_model = OneStep(model, temperature=0.2)
states = None
next_char = tf.constant([[char2idx["t"], char2idx["o"]]])
result = ["to"]
for n in range(30):
    ids, states = one_step_model.generate_one_step(next_char, states=states)
    next_char = tf.expand_dims(ids, 0)
    result.append(idx2char[ids.numpy()[0]])
text_out = "".join(result)
print(len(text_out), set(text_out) <= set(vocab), states.shape)
