"""Matrix factorisation with embeddings and a custom dot layer, trained by fit with several inputs."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

r = np.random.RandomState(0)
num_users, num_movies, size = 12, 15, 4
u_true, m_true = r.randn(num_users, 3), r.randn(num_movies, 3)
pairs = np.array([(u, m) for u in range(num_users) for m in range(num_movies)])
r.shuffle(pairs)
ratings = (u_true[pairs[:, 0]] * m_true[pairs[:, 1]]).sum(axis=1)
ratings = ((ratings - ratings.min()) / (ratings.max() - ratings.min())).astype("float32")


class RecommenderNet(keras.Model):
    def __init__(self, num_users, num_movies, embedding_size, **kwargs):
        super().__init__(**kwargs)
        self.user_embedding = layers.Embedding(num_users, embedding_size, embeddings_initializer="he_normal",
                                               embeddings_regularizer=keras.regularizers.l2(1e-6))
        self.user_bias = layers.Embedding(num_users, 1)
        self.movie_embedding = layers.Embedding(num_movies, embedding_size, embeddings_initializer="he_normal",
                                                embeddings_regularizer=keras.regularizers.l2(1e-6))
        self.movie_bias = layers.Embedding(num_movies, 1)

    def call(self, inputs):
        user_vector = self.user_embedding(inputs[:, 0])
        user_bias = self.user_bias(inputs[:, 0])
        movie_vector = self.movie_embedding(inputs[:, 1])
        movie_bias = self.movie_bias(inputs[:, 1])
        dot_user_movie = tf.reduce_sum(user_vector * movie_vector, axis=1, keepdims=True)
        return tf.nn.sigmoid(dot_user_movie + user_bias + movie_bias)


model = RecommenderNet(num_users, num_movies, size)
model(pairs[:1])
model.set_weights([r.uniform(-0.2, 0.2, w.shape).astype("float32") for w in model.get_weights()])
model.compile(loss=keras.losses.BinaryCrossentropy(), optimizer=keras.optimizers.Adam(learning_rate=0.02), metrics=["mae"])
history = model.fit(pairs[:150], ratings[:150], batch_size=30, epochs=8, verbose=0, shuffle=False, validation_data=(pairs[150:], ratings[150:]))
print("loss", " ".join("%.3f" % v for v in history.history["loss"][::2]))
print("val_loss %.3f mae %.3f" % (history.history["val_loss"][-1], history.history["mae"][-1]))
user = 3
not_seen = np.stack([np.full(num_movies, user), np.arange(num_movies)], axis=1)
scores = model.predict(not_seen, verbose=0).flatten()
top = scores.argsort()[-3:][::-1]
print(scores.shape, len(set(top.tolist())))

user_in, movie_in = keras.Input((1,), name="user"), keras.Input((1,), name="movie")
uv = layers.Flatten()(layers.Embedding(num_users, 4, name="u")(user_in))
mv = layers.Flatten()(layers.Embedding(num_movies, 4, name="m")(movie_in))
functional = keras.Model([user_in, movie_in], layers.Dot(axes=1)([uv, mv]))
functional.set_weights([r.uniform(-0.2, 0.2, w.shape).astype("float32") for w in functional.get_weights()])
functional.compile("sgd", "mse")
h = functional.fit({"user": pairs[:, 0], "movie": pairs[:, 1]}, ratings, epochs=2, batch_size=60, shuffle=False, verbose=0)
print("functional", " ".join("%.4f" % v for v in h.history["loss"]))
