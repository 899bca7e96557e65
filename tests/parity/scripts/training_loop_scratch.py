"""Writing a training loop from scratch: fixed weights, losses printed, validation, metrics by hand."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

r = np.random.RandomState(12)
x_train = r.uniform(-1, 1, (256, 20)).astype("float32")
y_train = np.argmax(x_train @ r.uniform(-1, 1, (20, 5)), axis=1)
x_val, y_val = x_train[-56:], y_train[-56:]
x_train, y_train = x_train[:-56], y_train[:-56]

inputs = keras.Input(shape=(20,), name="digits")
x1 = layers.Dense(32, activation="relu")(inputs)
x2 = layers.Dense(32, activation="relu")(x1)
outputs = layers.Dense(5, name="predictions")(x2)
model = keras.Model(inputs=inputs, outputs=outputs)
model.set_weights([r.uniform(-0.3, 0.3, w.shape).astype("float32") for w in model.get_weights()])

optimizer = keras.optimizers.Adam(learning_rate=5e-3)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
train_acc_metric = keras.metrics.SparseCategoricalAccuracy()
val_acc_metric = keras.metrics.SparseCategoricalAccuracy()
batch_size = 50

for epoch in range(3):
    print("Start of epoch %d" % (epoch,))
    for step in range(0, len(x_train) // batch_size):
        x_batch_train = x_train[step * batch_size:(step + 1) * batch_size]
        y_batch_train = y_train[step * batch_size:(step + 1) * batch_size]
        with tf.GradientTape() as tape:
            logits = model(x_batch_train, training=True)
            loss_value = loss_fn(y_batch_train, logits)
        grads = tape.gradient(loss_value, model.trainable_weights)
        optimizer.apply_gradients(zip(grads, model.trainable_weights))
        train_acc_metric.update_state(y_batch_train, logits)
        if step % 2 == 0:
            print("Training loss (for one batch) at step %d: %.4f" % (step, float(loss_value)))
            print("Seen so far: %s samples" % ((step + 1) * batch_size))
    train_acc = train_acc_metric.result()
    print("Training acc over epoch: %.2f" % (float(train_acc),))
    train_acc_metric.reset_state()
    val_logits = model(x_val, training=False)
    val_acc_metric.update_state(y_val, val_logits)
    val_acc = val_acc_metric.result()
    val_acc_metric.reset_state()
    print("Validation acc: %.1f" % (float(val_acc),))
    print("Validation loss: %.3f" % float(loss_fn(y_val, val_logits)))
