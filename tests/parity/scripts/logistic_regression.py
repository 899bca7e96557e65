"""Logistic regression with the core API: normalisation, batches, accuracy, export of weights."""
import numpy as np
import tensorflow as tf

r = np.random.RandomState(22)
n = 240
features = r.randn(n, 6).astype("float32")
features[:, 3] *= 10.0
truth = features @ np.array([1.5, -2.0, 0.0, 0.2, 1.0, -0.5], "float32") + 0.3
labels = (truth > 0).astype("float32")
x_train, y_train = tf.convert_to_tensor(features[:180]), tf.convert_to_tensor(labels[:180])
x_test, y_test = tf.convert_to_tensor(features[180:]), tf.convert_to_tensor(labels[180:])


class Normalize(tf.Module):
    def __init__(self, x):
        self.mean = tf.Variable(tf.math.reduce_mean(x, axis=0))
        self.std = tf.Variable(tf.math.reduce_std(x, axis=0))

    def norm(self, x):
        return (x - self.mean) / self.std

    def unnorm(self, x):
        return (x * self.std) + self.mean


norm_x = Normalize(x_train)
x_train_norm, x_test_norm = norm_x.norm(x_train), norm_x.norm(x_test)
print("mean after:", np.round(np.abs(tf.reduce_mean(x_train_norm).numpy()), 3))


def log_loss(y_pred, y):
    ce = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=y_pred)
    return tf.reduce_mean(ce)


class LogisticRegression(tf.Module):
    def __init__(self):
        self.built = False

    def __call__(self, x, train=True):
        if not self.built:
            self.w = tf.Variable(tf.zeros((x.shape[-1], 1)))
            self.b = tf.Variable(0.0)
            self.built = True
        z = tf.squeeze(tf.matmul(x, self.w) + self.b, axis=1)
        return z if train else tf.sigmoid(z)


def predict_class(y_pred, thresh=0.5):
    return tf.cast(y_pred > thresh, tf.float32)


def accuracy(y_pred, y):
    y_pred = predict_class(tf.math.sigmoid(y_pred))
    check_equal = tf.cast(y_pred == y, tf.float32)
    return tf.reduce_mean(check_equal)


log_reg = LogisticRegression()
batch_size, learning_rate, epochs = 60, 0.5, 30
for epoch in range(epochs):
    batch_losses = []
    for i in range(0, 180, batch_size):
        x_batch, y_batch = x_train_norm[i:i + batch_size], y_train[i:i + batch_size]
        with tf.GradientTape() as tape:
            batch_loss = log_loss(log_reg(x_batch), y_batch)
        grads = tape.gradient(batch_loss, log_reg.variables)
        for g, v in zip(grads, log_reg.variables):
            v.assign_sub(learning_rate * g)
        batch_losses.append(batch_loss)
    if epoch % 10 == 0:
        print(f"Epoch: {epoch}, Training log loss: {tf.reduce_mean(batch_losses):.3f}")
print(f"test loss {log_loss(log_reg(x_test_norm), y_test):.3f}, accuracy {accuracy(log_reg(x_test_norm), y_test):.2f}")
print("weights", np.round(log_reg.w.numpy().ravel(), 2))
print("recovered", bool(np.allclose(norm_x.unnorm(x_train_norm), x_train, atol=1e-3)))
