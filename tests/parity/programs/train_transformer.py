"""A transformer encoder block with positional embedding, trained for a few steps."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from parity import check


class TransformerBlock(layers.Layer):
    def __init__(self, embed_dim, num_heads, ff_dim, rate=0.0):
        super().__init__()
        self.att = layers.MultiHeadAttention(num_heads=num_heads, key_dim=embed_dim // num_heads)
        self.ffn = keras.Sequential([layers.Dense(ff_dim, activation="relu"), layers.Dense(embed_dim)])
        self.layernorm1 = layers.LayerNormalization(epsilon=1e-6)
        self.layernorm2 = layers.LayerNormalization(epsilon=1e-6)
        self.dropout1 = layers.Dropout(rate)

    def call(self, inputs, training=None):
        attn = self.dropout1(self.att(inputs, inputs), training=training)
        out1 = self.layernorm1(inputs + attn)
        return self.layernorm2(out1 + self.ffn(out1))


class TokenAndPosition(layers.Layer):
    def __init__(self, maxlen, vocab, dim):
        super().__init__()
        self.token = layers.Embedding(vocab, dim)
        self.pos = layers.Embedding(maxlen, dim)

    def call(self, x):
        positions = tf.range(start=0, limit=tf.shape(x)[-1], delta=1)
        return self.token(x) + self.pos(positions)


inputs = keras.Input((6,), dtype="int32")
x = TokenAndPosition(6, 15, 8)(inputs)
x = TransformerBlock(8, 2, 12)(x)
x = layers.GlobalAveragePooling1D()(x)
outputs = layers.Dense(3, activation="softmax")(x)
model = keras.Model(inputs, outputs)
r = np.random.RandomState(7)
model.set_weights([r.uniform(-0.5, 0.5, w.shape).astype("float32") for w in model.get_weights()])
tokens, labels = r.randint(0, 15, (24, 6)), r.randint(0, 3, 24)
check("forward", model(tokens[:3]), tol=1e-4)
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
h = model.fit(tokens, labels, batch_size=8, epochs=3, shuffle=False, verbose=0)
check("loss", h.history["loss"], tol=1e-3)
check("params", model.count_params())
check("weights", len(model.weights))
