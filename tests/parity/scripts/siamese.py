"""A siamese network with a contrastive loss and a distance layer, then nearest neighbours."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

r = np.random.RandomState(3)
prototypes = r.randn(4, 10)
y = np.arange(80) % 4
x = (prototypes[y] + 0.3 * r.randn(80, 10)).astype("float32")


def make_pairs(x, y):
    pairs, labels = [], []
    for i in range(len(x)):
        j = r.choice(np.where(y == y[i])[0])
        pairs += [[x[i], x[j]]]
        labels += [0]
        j = r.choice(np.where(y != y[i])[0])
        pairs += [[x[i], x[j]]]
        labels += [1]
    return np.array(pairs), np.array(labels).astype("float32")


pairs, labels = make_pairs(x, y)
x_1, x_2 = pairs[:, 0], pairs[:, 1]
print(pairs.shape, labels[:4])


class Distance(layers.Layer):
    def call(self, a, b):
        sum_square = tf.reduce_sum(tf.square(a - b), axis=1, keepdims=True)
        return tf.sqrt(tf.maximum(sum_square, keras.backend.epsilon()))


embedding = keras.Sequential([keras.Input((10,)), layers.Dense(12, activation="tanh"), layers.Dense(3)], name="embedding")
input_1, input_2 = layers.Input((10,)), layers.Input((10,))
merged = Distance()(embedding(input_1), embedding(input_2))
siamese = keras.Model(inputs=[input_1, input_2], outputs=merged)
siamese.set_weights([r.uniform(-0.4, 0.4, w.shape).astype("float32") for w in siamese.get_weights()])


def loss(margin=1):
    def contrastive_loss(y_true, y_pred):
        square_pred = tf.math.square(y_pred)
        margin_square = tf.math.square(tf.math.maximum(margin - y_pred, 0))
        return tf.math.reduce_mean((1 - y_true) * square_pred + y_true * margin_square)

    return contrastive_loss


siamese.compile(loss=loss(margin=1), optimizer=keras.optimizers.RMSprop(0.01))
history = siamese.fit([x_1, x_2], labels, batch_size=16, epochs=5, shuffle=False, verbose=0)
print("loss", " ".join("%.3f" % v for v in history.history["loss"]))
d = siamese.predict([x_1, x_2], verbose=0).ravel()
print("apart:", bool(d[labels == 1].mean() > 2 * d[labels == 0].mean()))
e = embedding(x)
e = tf.math.l2_normalize(e, axis=1)
sims = tf.linalg.set_diag(e @ tf.transpose(e), tf.fill((80,), -1.0))
nearest = tf.gather(y, tf.argmax(sims, axis=1))
print("neighbours agree:", bool(tf.reduce_mean(tf.cast(nearest == y, tf.float32)) > 0.8))
values, indices = tf.math.top_k(sims, k=3)
print(values.shape, indices.dtype.name)
