"""Small classics: XOR with fit, a perceptron by hand, a polynomial by gradient descent, k-means with tf, power iteration."""
import numpy as np
import tensorflow as tf

tf.random.set_seed(0)
X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], "float32")
Y = np.array([[0], [1], [1], [0]], "float32")
model = tf.keras.models.Sequential()
model.add(tf.keras.layers.Dense(8, input_dim=2, activation="tanh"))
model.add(tf.keras.layers.Dense(1, activation="sigmoid"))
r = np.random.RandomState(2)
model.set_weights([r.uniform(-1, 1, w.shape).astype("float32") for w in model.get_weights()])
model.compile(loss="binary_crossentropy", optimizer=tf.keras.optimizers.Adam(0.1), metrics=["accuracy"])
history = model.fit(X, Y, epochs=60, batch_size=4, verbose=0)
print("xor:", (model.predict(X, verbose=0) > 0.5).astype(int).ravel().tolist(), "loss below 0.2:", history.history["loss"][-1] < 0.2)

w, b = tf.Variable(tf.zeros([2, 1])), tf.Variable([0.0])
for epoch in range(20):
    for x, t in zip(X, [0.0, 0.0, 0.0, 1.0]):
        out = 1.0 if float(tf.squeeze(tf.reshape(x, (1, 2)) @ w + b)) > 0 else 0.0
        w.assign_add(0.1 * (t - out) * tf.reshape(x, (2, 1)))
        b.assign_add([0.1 * (t - out)])
print("and:", [int(float(tf.squeeze(tf.reshape(x, (1, 2)) @ w + b)) > 0) for x in X])

xs = tf.linspace(-1.0, 1.0, 41)
ys = 2.0 * xs ** 3 - xs + 0.5
coefficients = [tf.Variable(0.0) for _ in range(4)]
optimizer = tf.keras.optimizers.SGD(0.3)
for step in range(120):
    with tf.GradientTape() as tape:
        prediction = sum(c * xs ** i for i, c in enumerate(coefficients))
        loss = tf.reduce_mean((prediction - ys) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, coefficients), coefficients))
print("polynomial:", " ".join(f"{c.numpy():.2f}" for c in coefficients), f"loss {loss.numpy():.4f}")

r = np.random.RandomState(1)
points = tf.constant(np.concatenate([r.randn(30, 2) * 0.3 + c for c in ([0, 0], [3, 3], [0, 4])]), tf.float32)
centers = tf.gather(points, [0, 30, 60])
for _ in range(5):
    distances = tf.reduce_sum((points[:, None, :] - centers[None, :, :]) ** 2, axis=-1)
    assignment = tf.argmin(distances, axis=1)
    centers = tf.stack([tf.reduce_mean(tf.boolean_mask(points, assignment == k), axis=0) for k in range(3)])
print("k-means:", np.round(centers.numpy(), 2).tolist())
print("sizes:", [int(tf.reduce_sum(tf.cast(assignment == k, tf.int32))) for k in range(3)])

A = tf.constant([[4.0, 1.0], [2.0, 3.0]])
v = tf.constant([[1.0], [1.0]])
for _ in range(30):
    v = A @ v
    v = v / tf.norm(v)
print("eigenvalue %.4f" % float(tf.squeeze(tf.transpose(v) @ A @ v)), np.round(v.numpy().ravel(), 3))
primes = [n for n in range(2, 30) if bool(tf.reduce_all(tf.range(2, n) * 0 + tf.math.floormod(n, tf.range(2, n)) != 0))]
print(primes)
