"""Custom training walkthrough: three kinds of flowers, loss and grad functions, metrics per epoch."""
import numpy as np
import tensorflow as tf

r = np.random.RandomState(7)
centers = np.array([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])
labels = np.arange(120) % 3
features = (centers[labels] + 0.3 * r.randn(120, 4)).astype("float32")
class_names = ["setosa", "versicolor", "virginica"]

model = tf.keras.Sequential([
    tf.keras.layers.Dense(10, activation=tf.nn.relu, input_shape=(4,)),
    tf.keras.layers.Dense(10, activation=tf.nn.relu),
    tf.keras.layers.Dense(3),
])
model.set_weights([r.uniform(-0.4, 0.4, w.shape).astype("float32") for w in model.get_weights()])
predictions = model(features)
print(np.round(predictions[:2], 3))
print(np.round(tf.nn.softmax(predictions[:2]), 3))
print(f"Prediction: {tf.math.argmax(predictions, axis=1)[:6].shape}")
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def loss(model, x, y, training):
    y_ = model(x, training=training)
    return loss_object(y_true=y, y_pred=y_)


print("Loss test: {:.4f}".format(loss(model, features, labels, training=False)))


def grad(model, inputs, targets):
    with tf.GradientTape() as tape:
        loss_value = loss(model, inputs, targets, training=True)
    return loss_value, tape.gradient(loss_value, model.trainable_variables)


optimizer = tf.keras.optimizers.SGD(learning_rate=0.1)
loss_value, grads = grad(model, features, labels)
print("Step: {}, Initial Loss: {:.4f}".format(optimizer.iterations.numpy(), loss_value.numpy()))
optimizer.apply_gradients(zip(grads, model.trainable_variables))
print("Step: {},         Loss: {:.4f}".format(optimizer.iterations.numpy(), loss(model, features, labels, training=True).numpy()))
train_loss_results, train_accuracy_results = [], []
for epoch in range(41):
    epoch_loss_avg = tf.keras.metrics.Mean()
    epoch_accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    for i in range(0, 120, 30):
        x, y = features[i:i + 30], labels[i:i + 30]
        loss_value, grads = grad(model, x, y)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        epoch_loss_avg.update_state(loss_value)
        epoch_accuracy.update_state(y, model(x, training=True))
    train_loss_results.append(epoch_loss_avg.result())
    train_accuracy_results.append(epoch_accuracy.result())
    if epoch % 20 == 0:
        print("Epoch {:03d}: Loss: {:.2f}".format(epoch, epoch_loss_avg.result()))
print("accurate:", bool(train_accuracy_results[-1] > 0.85))
predict_dataset = tf.convert_to_tensor([[5.1, 3.3, 1.7, 0.5], [5.9, 3.0, 4.2, 1.5], [6.9, 3.1, 5.4, 2.1]])
for i, logits in enumerate(model(predict_dataset, training=False)):
    class_idx = tf.math.argmax(logits).numpy()
    p = tf.nn.softmax(logits)[class_idx]
    print("Example {} prediction: {}".format(i, class_names[class_idx] if i != 1 else "-"), p.numpy() > 0.3)
