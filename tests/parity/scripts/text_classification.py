"""Text classification with Embedding, GlobalAveragePooling, LSTM and Bidirectional on synthetic reviews."""
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers
from tensorflow.keras.preprocessing.sequence import pad_sequences

r = np.random.RandomState(0)
good, bad = np.arange(2, 10), np.arange(10, 18)
sentences, labels = [], []
for i in range(160):
    words = r.choice(good if i % 2 else bad, r.randint(3, 9))
    filler = r.randint(18, 30, r.randint(1, 4))
    sentence = np.concatenate([words, filler])
    r.shuffle(sentence)
    sentences.append(sentence.tolist())
    labels.append(i % 2)
labels = np.array(labels)
padded = pad_sequences(sentences, maxlen=12, padding="post", truncating="post")
print(padded.shape, padded.dtype, padded[0].tolist())

models = {
    "average": tf.keras.Sequential([layers.Embedding(30, 8), layers.GlobalAveragePooling1D(), layers.Dense(8, activation="relu"),
                                    layers.Dense(1, activation="sigmoid")]),
    "lstm": tf.keras.Sequential([layers.Embedding(30, 8, mask_zero=True), layers.LSTM(8), layers.Dense(1, activation="sigmoid")]),
    "bidirectional": tf.keras.Sequential([layers.Embedding(30, 8), layers.Bidirectional(layers.LSTM(6)), layers.Dense(6, activation="relu"),
                                          layers.Dense(1, activation="sigmoid")]),
    "convolution": tf.keras.Sequential([layers.Embedding(30, 8), layers.Conv1D(8, 3, activation="relu"), layers.GlobalMaxPooling1D(),
                                        layers.Dense(1, activation="sigmoid")]),
}
for name, model in models.items():
    model.compile(loss="binary_crossentropy", optimizer=tf.keras.optimizers.Adam(0.02), metrics=["accuracy"])
    history = model.fit(padded[:128], labels[:128], epochs=8, batch_size=16, verbose=0, validation_data=(padded[128:], labels[128:]))
    print(f"{name}: {model.count_params()} parameters, learnt: {history.history['accuracy'][-1] > 0.9}, holds: {history.history['val_accuracy'][-1] > 0.8}")
scores = models["average"].predict(np.array([pad_sequences([[3, 4, 5]], maxlen=12)[0], pad_sequences([[12, 13, 14]], maxlen=12)[0]]), verbose=0)
print("good before bad:", bool(scores[0, 0] > scores[1, 0]))
