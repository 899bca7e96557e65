"""The rule of the loss scale by itself: halved and counted anew where a gradient is not finite, doubled after so many good ones; configurations."""
import keras
import numpy as np
import tensorflow as tf
from parity import check, raises

LSO = keras.optimizers.LossScaleOptimizer
v = keras.Variable([1.0, 2.0])
optimizer = LSO(keras.optimizers.SGD(1.0), initial_scale=8.0, dynamic_growth_steps=3)
optimizer.build([v])
seen = []
for g in ([8.0, 8.0], [8.0, float("inf")], [4.0, 4.0], [4.0, 4.0], [float("nan"), 1.0], [2.0, 2.0], [2.0, 2.0], [2.0, 2.0], [4.0, 4.0]):
    optimizer.apply([tf.constant(g)], [v])
    seen.append([float(optimizer.dynamic_scale.numpy()), int(optimizer.step_counter.numpy()), np.asarray(v).tolist()])
check("steps", seen)
check("iterations", [int(optimizer.iterations.numpy()), int(optimizer.inner_optimizer.iterations.numpy())])
check("scaled", [optimizer.scale_loss(2.0), optimizer.scale_loss(tf.constant(2.0)), tf.cast(optimizer.scale_loss(tf.constant(2.0, tf.float16)), tf.float32)])
config = optimizer.get_config()
check("configuration", [sorted(config), config["initial_scale"], config["dynamic_growth_steps"], config["inner_optimizer"]["class_name"]])
again = LSO.from_config(config)
check("again", [again.initial_scale, again.dynamic_growth_steps, type(again.inner_optimizer).__name__, float(again.inner_optimizer.learning_rate.numpy())])
other = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
check("by name", [type(other).__name__, other.initial_scale])
check("defaults", [LSO(keras.optimizers.Adam()).initial_scale, LSO(keras.optimizers.Adam()).dynamic_growth_steps])
check("learning rate", float(optimizer.learning_rate.numpy()))
optimizer.learning_rate = 0.25
check("set", float(optimizer.inner_optimizer.learning_rate.numpy()))
raises(ValueError, lambda: LSO(keras.optimizers.SGD(), dynamic=False))
raises(ValueError, lambda: LSO(keras.optimizers.SGD(), clipnorm=1.0))
w = keras.Variable([1.0])
plain = keras.optimizers.SGD(1.0, loss_scale_factor=4.0)
plain.build([w])
plain.apply([tf.constant([2.0])], [w])
check("a fixed factor", [np.asarray(w).tolist(), plain.scale_loss(tf.constant(3.0))])
