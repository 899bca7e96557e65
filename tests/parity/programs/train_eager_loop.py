"""The plain training loop: tape, gradient, apply_gradients, each loss printed."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check

r = np.random.RandomState(3)
x = r.uniform(-1, 1, (48, 5)).astype("float32")
y = (x[:, 0] * x[:, 1] > 0).astype("int32")
model = keras.Sequential([keras.layers.Input((5,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
model.set_weights([r.uniform(-0.6, 0.6, w.shape).astype("float32") for w in model.get_weights()])
optimizer = keras.optimizers.Adam(learning_rate=0.01)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
losses = []
for epoch in range(3):
    for i in range(0, 48, 16):
        xb, yb = x[i:i + 16], y[i:i + 16]
        with tf.GradientTape() as tape:
            logits = model(xb, training=True)
            loss = loss_fn(yb, logits)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        losses.append(loss.numpy())
check("losses", [float(v) for v in losses], tol=1e-4)
check("iterations", int(optimizer.iterations))
check("last gradient", grads[-1], tol=1e-4)
check("weights", model.get_weights()[-1], tol=1e-4)
accuracy = tf.reduce_mean(tf.cast(tf.argmax(model(x), 1, output_type=tf.int32) == y, tf.float32))
check("accuracy", accuracy, tol=0.03)
