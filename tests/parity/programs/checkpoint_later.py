"""Checkpoints read before their variables are made: optimizer slots, modules that build themselves, attributes set later; iterators;
a manager that finds what an earlier one left."""
import os
import tempfile

import tensorflow as tf
from parity import check, raises


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.kernel = None
        self.bias = tf.Variable(tf.zeros([3]))

    def __call__(self, x):
        if self.kernel is None:
            self.kernel = tf.Variable(tf.ones([x.shape[-1], 3]))
        return x @ self.kernel + self.bias


def pieces():
    x = tf.reshape(tf.range(20.0), (10, 2)) / 10.0
    iterator = iter(tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, 1, keepdims=True))).repeat().batch(2))
    net, optimizer = Net(), tf.keras.optimizers.Adam(0.1)
    return net, optimizer, iterator, tf.train.Checkpoint(step=tf.Variable(0), net=net, optimizer=optimizer, iterator=iterator)


def train(net, optimizer, iterator, checkpoint, n):
    for _ in range(n):
        x, y = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(x) - y))
        variables = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        checkpoint.step.assign_add(1)
    return loss


folder = tempfile.mkdtemp()
first = pieces()
manager = tf.train.CheckpointManager(first[3], folder, max_to_keep=2)
for n in (3, 3, 3):
    check("loss", train(*first, n), tol=1e-4)
    manager.save()
whole = train(*first, 4)
second = pieces()
manager = tf.train.CheckpointManager(second[3], folder, max_to_keep=2)
check("found", [os.path.basename(c) for c in manager.checkpoints])
second[3].restore(manager.latest_checkpoint)
check("step", second[3].step)
resumed = train(*second, 4)
check("goes on", resumed, tol=1e-4)
check("as if never stopped", abs(float(resumed) - float(whole)) < 1e-5)
manager.save()
check("numbers go on", [os.path.basename(c) for c in manager.checkpoints])
check("counter", second[3].save_counter)
part = tf.Variable(tf.zeros([3]))
tf.train.Checkpoint(net=tf.train.Checkpoint(bias=part)).restore(tf.train.latest_checkpoint(folder)).expect_partial()
check("a part", part, tol=1e-4)
late = tf.train.Checkpoint()
small = tf.train.Checkpoint(v=tf.Variable([3.0, 4.0]))
path = small.write(os.path.join(folder, "small"))
late.restore(path)
late.v = tf.Variable([0.0, 0.0])
check("set later", late.v)
check("names", [n for n, _ in tf.train.list_variables(path) if n.startswith("v/")])
check("reader", tf.train.load_checkpoint(path).get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE"))
raises(tf.errors.NotFoundError, lambda: tf.train.Checkpoint(v=tf.Variable(0.0)).restore(os.path.join(folder, "none")))


# Nobody holds the checkpoint, and all is built in a tf.function: what is restored is given once, not at every call.
def dense():
    return tf.keras.Sequential([tf.keras.layers.Dense(3, kernel_initializer="ones"), tf.keras.layers.Dense(1, kernel_initializer="ones")])


x = tf.reshape(tf.range(8.0), (4, 2)) / 8.0
trained, optimizer = dense(), tf.keras.optimizers.SGD(0.1, momentum=0.9)
trained.compile(optimizer, "mse")
trained.fit(x, tf.ones((4, 1)), epochs=3, verbose=0)
path = tf.train.Checkpoint(model=trained, optimizer=optimizer).save(os.path.join(folder, "dense"))
again, optimizer = dense(), tf.keras.optimizers.SGD(0.1, momentum=0.9)
tf.train.Checkpoint(model=again, optimizer=optimizer).restore(path)


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(again(x) - 1.0))
    optimizer.apply_gradients(zip(tape.gradient(loss, again.trainable_variables), again.trainable_variables))
    return loss


check("steps after it", [step() for _ in range(3)], tol=1e-4)
fitted = dense()
tf.train.Checkpoint(model=fitted).restore(path)
fitted.compile(tf.keras.optimizers.SGD(0.1), "mse")
check("fit after it", [fitted.fit(x, tf.ones((4, 1)), verbose=0).history["loss"][0] for _ in range(3)], tol=1e-4)
