"""What a step may hold: two updates by one optimizer in a traced call, a tape that outlives the update, masks of NumPy."""
import numpy as np
import tensorflow as tf
from tensorflow import keras

for traced in (False, True):
    w = tf.Variable([1.0, 2.0])
    opt = keras.optimizers.Adam(0.1)

    def step():
        for k in range(2):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(w ** 2) * (k + 1.0)
            opt.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
        return loss

    inner = tf.function(step)
    outer = tf.function(lambda: inner() + inner()) if traced else step
    for _ in range(3):
        outer()
        print(np.round(w.numpy(), 4), int(opt.iterations))

# a persistent tape is alive while later values are computed
r = np.random.RandomState(0)
W, b = tf.Variable(r.rand(4, 3).astype("float32")), tf.Variable(tf.zeros([3]))
table = tf.Variable(r.rand(5, 4).astype("float32"))
x, y = r.rand(32, 4).astype("float32"), r.randint(0, 3, 32)
for i in range(3):
    with tf.GradientTape(persistent=True) as tape:
        logits = tf.matmul(x + tf.gather(table, y), W) + b
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=y))
    for v in (W, b, table):
        v.assign_sub(0.5 * tf.convert_to_tensor(tape.gradient(loss, v)))
    print(i, round(float(loss), 4), round(float(tf.reduce_sum(W * W)), 4), np.round(b.numpy(), 4))

data = tf.reshape(tf.range(12.0), (4, 3))
rows = np.array([True, False, False, True])
print(data[rows].numpy(), data[~rows].shape, data[np.ones((4, 3), bool)].shape)

dense = keras.layers.Dense(2, activation="relu", kernel_initializer="ones")
print(dense(-np.ones((1, 3))).numpy())
dense.activation = None
print(dense(-np.ones((1, 3))).numpy(), dense.kernel.shape)

inputs = keras.Input((4,))
model = keras.Model(inputs, [keras.layers.Dense(1, name="b")(inputs), keras.layers.Dense(2, name="c", activation="softmax")(inputs)])
model.set_weights([np.full(v.shape, 0.3) for v in model.get_weights()])
model.compile("sgd", loss=["mse", "sparse_categorical_crossentropy"], loss_weights=[1.0, 0.5])
h = model.fit(x, [x.sum(1), (x[:, 0] > 0.5).astype(int)], epochs=2, batch_size=8, verbose=0, shuffle=False)
print({k: np.round(v, 4).tolist() for k, v in sorted(h.history.items())})
