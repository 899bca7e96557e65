"""second_order.py: gradients of gradients through recurrent layers and attention, as TensorFlow has
them; writes tests/support/second_order_golden.h, which test_second_order.c compares with.

    python second_order.py ../support/second_order_golden.h

All numbers are f64 and come from a formula that the test has, too: element k of operand i (x is
operand 0, then the weights in the order listed) is 0.6 sin(0.9 k + 1.7 i + 0.3). With y = layer(x):

    loss = sum(dx^2) + sum(y), dx = d sum(y^2) / d x

Stored are the loss and, of its gradient g by each operand, sum(g_k cos(0.5 k + 1)) and sum(g_k^2).
"""
import sys

import keras
import numpy as np
import tensorflow as tf

keras.config.set_floatx("float64")
BATCH, STEPS, FEATURES, UNITS, HEADS = 2, 4, 3, 2, 2


def filled(shape, i):
    k = np.arange(np.prod(shape))
    return (0.6 * np.sin(0.9 * k + 1.7 * i + 0.3)).reshape(shape)


MASK = np.array([[True, True, False, True], [False, True, True, False]])
L = keras.layers
CASES = {
    "lstm": (lambda: L.LSTM(UNITS, return_sequences=True), {}),
    "lstm_masked": (lambda: L.LSTM(UNITS, return_sequences=True), {"mask": MASK}),
    "gru": (lambda: L.GRU(UNITS, return_sequences=True), {}),
    "gru_masked": (lambda: L.GRU(UNITS, return_sequences=True), {"mask": MASK}),
    "gru_before": (lambda: L.GRU(UNITS, return_sequences=True, reset_after=False), {}),
    "simple_rnn": (lambda: L.SimpleRNN(UNITS, return_sequences=True), {}),
    "attention": (lambda: L.MultiHeadAttention(HEADS, UNITS), {}),
    "attention_causal": (lambda: L.MultiHeadAttention(HEADS, UNITS), {"use_causal_mask": True}),
}


def record(make, call):
    layer = make()
    x = tf.Variable(filled((BATCH, STEPS, FEATURES), 0))
    args = (x, x) if isinstance(layer, L.MultiHeadAttention) else (x,)
    layer(*args)
    layer.set_weights([filled(w.shape, i + 1) for i, w in enumerate(layer.weights)])
    operands = [x] + [w.value for w in layer.weights]
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = layer(*args, **call)
            size = tf.reduce_sum(y * y)
        dx = inner.gradient(size, x)
        loss = tf.reduce_sum(dx * dx) + tf.reduce_sum(y)
    numbers = [float(loss)]
    for g in outer.gradient(loss, operands):
        g = np.zeros(1) if g is None else tf.convert_to_tensor(g).numpy().ravel()
        numbers += [float(np.sum(g * np.cos(0.5 * np.arange(g.size) + 1))), float(np.sum(g * g))]
    return numbers


with open(sys.argv[1], "w") as out:
    out.write("/* clang-format off: made by a script */\n/* Made by tests/golden/second_order.py with TensorFlow %s, Keras %s. */\n"
              % (tf.__version__, keras.__version__))
    for name, (make, call) in CASES.items():
        numbers = record(make, call)
        out.write("static const double golden_%s[] = {\n" % name)
        for number in numbers:
            out.write("    %r,\n" % number)
        out.write("};\n")
