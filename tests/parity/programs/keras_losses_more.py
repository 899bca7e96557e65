"""CTC and Circle losses, more of tf.linalg, sparse places as a dense vector."""
import keras
import numpy as np
import tensorflow as tf
from parity import check

r = np.random.RandomState(0)
logits, labels = r.randn(3, 6, 4).astype("float32"), np.array([[1, 2, 0], [3, 0, 0], [2, 2, 1]])
check("ctc", keras.losses.CTC()(labels, logits), 1e-4)
check("ctc each", keras.losses.ctc(labels, tf.constant(logits)), 1e-4)
x = r.randn(6, 5).astype("float32")
x /= np.linalg.norm(x, axis=1, keepdims=True)
y = np.array([0, 1, 0, 2, 1, 0])
check("circle", keras.losses.Circle(gamma=8.0)(y, x), 1e-4)
model = keras.Sequential([keras.Input((6, 4)), keras.layers.Dense(4)])
model.compile("sgd", keras.losses.CTC())
check("in fit", len(model.fit(logits, labels, verbose=0).history["loss"]))

a = r.randn(4, 3).astype("float32")
check("pinv", tf.linalg.pinv(a), 1e-4)
check("rank", tf.linalg.matrix_rank(a @ np.array([[1, 0, 1], [0, 1, 1], [0, 0, 0]], "float32")))
check("expm", tf.linalg.expm(a[:3] * 0.5), 1e-4)
check("dense", tf.sparse.to_dense(tf.SparseTensor(indices=[[1], [3]], values=[5.0, 7.0], dense_shape=[5])))
check("dense of two axes", tf.sparse.to_dense(tf.SparseTensor([[0, 1], [2, 0]], [3, 4], [3, 2])))

# Along another axis than the last; settings by place, as the functions take them.
r = np.random.RandomState(7)
p = r.rand(2, 3, 4).astype("float32")
p /= p.sum(1, keepdims=True)
t = np.eye(3, dtype="float32")[r.randint(3, size=(2, 4))].transpose(0, 2, 1)
for made in (keras.losses.CategoricalCrossentropy, keras.losses.CosineSimilarity, keras.losses.BinaryCrossentropy,
             keras.losses.BinaryFocalCrossentropy, keras.losses.CategoricalFocalCrossentropy, keras.losses.Dice, keras.losses.Tversky):
    check(made.__name__ + " along 1", made(axis=1)(t, p))
check("weighted", keras.losses.CategoricalCrossentropy(axis=1)(t, p, sample_weight=[[1.0], [3.0]]))
check("functions along 1", [keras.losses.cosine_similarity(t, p, axis=1), keras.losses.dice(t, p, axis=(1, 2))])
check("settings by place", [keras.losses.binary_crossentropy(t, p, True), keras.losses.huber(t, p, 0.3)])
