"""Learning-rate schedules, alone and inside optimizers."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check

S = keras.optimizers.schedules
steps = [0, 1, 5, 10, 25, 100]
made = {
    "exponential": S.ExponentialDecay(0.1, decay_steps=10, decay_rate=0.5),
    "staircase": S.ExponentialDecay(0.1, 10, 0.5, staircase=True),
    "piecewise": S.PiecewiseConstantDecay([5, 20], [1.0, 0.5, 0.1]),
    "polynomial": S.PolynomialDecay(0.1, 50, end_learning_rate=0.01, power=2.0),
    "inverse": S.InverseTimeDecay(0.1, 10, 0.5),
    "cosine": S.CosineDecay(0.1, 50, alpha=0.1),
    "cosine warmup": S.CosineDecay(0.0, 50, warmup_target=0.1, warmup_steps=10),
    "restarts": S.CosineDecayRestarts(0.1, 10),
}
for name, s in made.items():
    check(name, [float(s(k)) for k in steps])


class Warmup(S.LearningRateSchedule):
    def __init__(self, d_model=64, warmup_steps=10):
        super().__init__()
        self.d_model = tf.cast(d_model, tf.float32)
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        return tf.math.rsqrt(self.d_model) * tf.math.minimum(tf.math.rsqrt(step + 1.0), (step + 1.0) * self.warmup_steps ** -1.5)


check("custom", [float(Warmup()(k)) for k in steps])
for name, schedule in (("sgd", S.ExponentialDecay(0.5, 2, 0.5)), ("custom sgd", Warmup())):
    v = tf.Variable(2.0)
    opt = keras.optimizers.SGD(schedule)
    values = []
    for _ in range(5):
        opt.apply_gradients([(2.0 * v, v)])
        values.append(float(v))
    check(name, values)
    check("rate now", float(opt.learning_rate))
check("config", S.ExponentialDecay(0.1, 10, 0.5).get_config())
