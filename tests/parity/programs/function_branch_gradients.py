"""Gradients through a branch that is not taken: zeros in a tf.function, None in eager code and where no branch connects."""
import numpy as np
import tensorflow as tf
from parity import check

a, b, c = (tf.Variable([x, 1.0]) for x in (2.0, 3.0, 5.0))
yes, no = tf.constant(True), tf.constant(False)


def by_cond(p):
    return tf.cond(p, lambda: a * a, lambda: b * b)


def by_if(p):
    if p:
        y = a * a
    else:
        y = b * b
    return y


def by_return(p):
    if p:
        return a * a
    return b * b


def only_more(p):
    y = a * 2.0
    if p:
        y = y + b * b
    return y


def nested(p):
    if p:
        if tf.reduce_sum(b) > 100.0:
            y = a * a
        else:
            y = b * b
    else:
        y = c * c
    return y


def by_case(p):
    return tf.case([(p, lambda: a * a), (tf.logical_not(p), lambda: b * b)], default=lambda: c * c)


def through_others(p):
    h = b * c
    return tf.cond(p, lambda: a * a, lambda: h * h)


def stopped(p):
    return tf.cond(p, lambda: a * a, lambda: tf.stop_gradient(b) * a)


def by_number(x):
    if a[0] * 3.0 > 0.0:
        y = a * b
    else:
        y = a * c
    return y


def gradients_of(f):
    def run(p):
        with tf.GradientTape() as tape:
            y = f(p)
        found = tape.gradient(y, [a, b, c])
        absent.append([g is None for g in found])
        return [g for g in found if g is not None]
    return run


for f in (by_cond, by_if, by_return, only_more, nested, by_case, through_others, stopped, by_number):
    for p in (yes, no):
        absent = []
        check(f"{f.__name__} {bool(p)}", tf.function(gradients_of(f))(p))
        check(f"{f.__name__} {bool(p)} absent", absent[-1])
    both, absent = tf.function(gradients_of(f)), []
    check(f"{f.__name__} in turn", [both(no), both(yes), both(no)])
absent = []
check("eager", gradients_of(by_cond)(yes))
check("eager absent", absent)

for i in (0, 1, 2, 7):
    absent = []
    chosen = lambda i: tf.switch_case(i, [lambda: a * a, lambda: b * b, lambda: tf.constant([1.0, 1.0])])
    check(f"switch_case {i}", tf.function(gradients_of(chosen))(tf.constant(i)))
    check(f"switch_case {i} absent", absent[-1])


@tf.function
def watched(p, x, z):
    with tf.GradientTape() as tape:
        tape.watch([x, z])
        y = tf.cond(p, lambda: x * a, lambda: z * 2.0)
    return tape.gradient(y, [x, z, a])


@tf.function
def rounds(n):
    with tf.GradientTape() as tape:
        y, i = a * 1.0, tf.constant(0)
        while i < n:
            y, i = y * b, i + 1
    return tape.gradient(y, [a, b])


@tf.function
def inner(p, x):
    if p:
        return x * a
    return b * 1.0


@tf.function
def around(p, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = inner(p, x)
    return tape.gradient(y, [x, a, b])


for p in (yes, no):
    check(f"watched {bool(p)}", watched(p, tf.constant([1.0, 2.0]), tf.constant([2.0, 4.0])))
    check(f"a function within {bool(p)}", around(p, tf.constant([1.0, 2.0])))
check("rounds", [rounds(tf.constant(n)) for n in (0, 2)])

# What optimizers make of it: moments decay where the gradient is zeros.
for make in (lambda: tf.keras.optimizers.Adam(0.1), lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9, weight_decay=0.1)):
    u, w, optimizer = tf.Variable([2.0, 1.0]), tf.Variable([3.0, 1.0]), make()

    @tf.function
    def step(p):
        with tf.GradientTape() as tape:
            if p:
                loss = tf.reduce_sum(u * u)
            else:
                loss = tf.reduce_sum(w * w)
        optimizer.apply_gradients(zip(tape.gradient(loss, [u, w]), [u, w]))
        return loss

    losses = [step(tf.constant(p)) for p in (True, True, False, True, False, True)]
    check(f"{optimizer.name} losses", losses)
    check(f"{optimizer.name} variables", [u, w])


class Routed(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.left, self.right = (tf.keras.layers.Dense(2, kernel_initializer="ones") for _ in range(2))
        self.left.build((None, 1))
        self.right.build((None, 1))

    def call(self, x):
        return tf.cond(tf.reduce_sum(x) > 0.0, lambda: self.left(x), lambda: self.right(x))


model = Routed()
model.compile("adam", "mse")
x = np.array([[1], [1], [-1], [-1], [1], [-1]], "float32")
model.fit(x, np.zeros((6, 2), "float32"), batch_size=1, shuffle=False, verbose=0, epochs=2)
check("fit", [w.numpy() for w in model.weights])
