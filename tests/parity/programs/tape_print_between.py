"""Looking at values between the forward pass and the gradient changes nothing."""
import io
from contextlib import redirect_stdout
import numpy as np
import tensorflow as tf
from parity import check

w = tf.Variable([[0.5], [-0.25]])
b = tf.Variable([0.1])
x = tf.constant([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0]])
y = tf.constant([[1.0], [2.0], [0.5]])


def step(look):
    with tf.GradientTape() as tape:
        hidden = tf.tanh(x @ w + b)
        if look:
            with redirect_stdout(io.StringIO()) as out:
                print(hidden)
        loss = tf.reduce_mean(tf.square(hidden - y))
    if look:
        float(loss)
    return loss, tape.gradient(loss, [w, b])


quiet, looked = step(False), step(True)
check("loss", quiet[0])
check("same loss", bool(quiet[0] == looked[0]))
check("gradients", quiet[1])
check("same gradients", [bool(tf.reduce_all(p == q)) for p, q in zip(quiet[1], looked[1])])
losses = []
for i in range(5):
    loss, grads = step(i % 2 == 0)
    for v, g in zip([w, b], grads):
        v.assign_sub(0.1 * g)
    losses.append(float(loss))
check("losses", losses)
check("weights", [w, b])
