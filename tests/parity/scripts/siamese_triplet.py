"""A siamese network with a triplet loss in its own train_step, on zipped datasets."""
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, metrics, Model, optimizers
r = np.random.RandomState(0)
inp = layers.Input((8, 8, 1), name="img")
x = layers.Conv2D(8, 3, activation="relu")(inp)
x = layers.Flatten()(x)
x = layers.Dense(16, activation="relu")(x)
x = layers.BatchNormalization()(x)
output = layers.Dense(8)(x)
embedding = Model(inp, output, name="Embedding")
embedding.set_weights([np.abs(r.randn(*w.shape)) * 0.2 for w in embedding.get_weights()])

class DistanceLayer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
    def call(self, anchor, positive, negative):
        ap_distance = tf.reduce_sum(tf.square(anchor - positive), -1)
        an_distance = tf.reduce_sum(tf.square(anchor - negative), -1)
        return (ap_distance, an_distance)

anchor_input = layers.Input(name="anchor", shape=(8, 8, 1))
positive_input = layers.Input(name="positive", shape=(8, 8, 1))
negative_input = layers.Input(name="negative", shape=(8, 8, 1))
distances = DistanceLayer()(embedding(anchor_input), embedding(positive_input), embedding(negative_input))
siamese_network = Model(inputs=[anchor_input, positive_input, negative_input], outputs=distances)

class SiameseModel(Model):
    def __init__(self, siamese_network, margin=0.5):
        super().__init__()
        self.siamese_network = siamese_network
        self.margin = margin
        self.loss_tracker = metrics.Mean(name="loss")
    def call(self, inputs):
        return self.siamese_network(inputs)
    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self._compute_loss(data)
        gradients = tape.gradient(loss, self.siamese_network.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.siamese_network.trainable_weights))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}
    def test_step(self, data):
        loss = self._compute_loss(data)
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}
    def _compute_loss(self, data):
        ap_distance, an_distance = self.siamese_network(data)
        loss = ap_distance - an_distance
        loss = tf.maximum(loss + self.margin, 0.0)
        return loss
    @property
    def metrics(self):
        return [self.loss_tracker]

a, p, n = (r.rand(32, 8, 8, 1).astype("float32") for _ in range(3))
def load(a, p, n):
    return a, p, n * 1.5
da = tf.data.Dataset.from_tensor_slices(a); dp = tf.data.Dataset.from_tensor_slices(p); dn = tf.data.Dataset.from_tensor_slices(n)
dataset = tf.data.Dataset.zip((da, dp, dn)).map(load)
train_dataset = dataset.take(24).batch(8, drop_remainder=False).prefetch(tf.data.AUTOTUNE)
val_dataset = dataset.skip(24).batch(8).prefetch(8)
siamese_model = SiameseModel(siamese_network)
siamese_model.compile(optimizer=optimizers.Adam(0.001), weighted_metrics=[])
h = siamese_model.fit(train_dataset, epochs=3, validation_data=val_dataset, verbose=0)
print({k: np.round(np.asarray(v, "float64"), 3).tolist() for k, v in h.history.items()})
sample = next(iter(train_dataset))
anchor, positive, negative = sample
ae, pe, ne = embedding(anchor), embedding(positive), embedding(negative)
cosine_similarity = metrics.CosineSimilarity()
print("Positive similarity:", np.round(cosine_similarity(ae, pe).numpy(), 3))
print("Negative similarity:", np.round(cosine_similarity(ae, ne).numpy(), 3))
