"""Learning rates that warm up: schedule classes, clipping."""
import numpy as np
import tensorflow as tf
class CustomSchedule(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, d_model, warmup_steps=4000):
        super().__init__()
        self.d_model = d_model
        self.d_model = tf.cast(self.d_model, tf.float32)
        self.warmup_steps = warmup_steps
    def __call__(self, step):
        step = tf.cast(step, dtype=tf.float32)
        arg1 = tf.math.rsqrt(step)
        arg2 = step * (self.warmup_steps ** -1.5)
        return tf.math.rsqrt(self.d_model) * tf.math.minimum(arg1, arg2)
lr = CustomSchedule(128)
optimizer = tf.keras.optimizers.Adam(lr, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
print(np.round(lr(tf.range(1, 6, dtype=tf.float32)).numpy() * 1e6, 3))
class WarmUpCosine(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, base, total, warm):
        self.base, self.total, self.warm = base, total, warm
        self.pi = tf.constant(np.pi)
    def __call__(self, step):
        cos = tf.cos(self.pi * (tf.cast(step, tf.float32) - self.warm) / float(self.total - self.warm))
        lr = 0.5 * self.base * (1 + cos)
        if self.warm > 0:
            slope = self.base / self.warm
            warm = slope * tf.cast(step, tf.float32)
            lr = tf.where(step < self.warm, warm, lr)
        return tf.where(step > self.total, 0.0, lr, name="learning_rate")
    def get_config(self):
        return {"base": self.base, "total": self.total, "warm": self.warm}
sched = WarmUpCosine(0.1, 20, 5)
print([round(float(sched(s)), 5) for s in range(0, 24, 3)])
r = np.random.RandomState(0)
x = r.rand(40, 4).astype("float32"); y = x @ r.rand(4, 1).astype("float32")
for opt in [tf.keras.optimizers.SGD(sched), tf.keras.optimizers.Adam(learning_rate=CustomSchedule(4, 10)),
            tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.CosineDecay(0.0, 15, warmup_target=0.1, warmup_steps=5), clipnorm=1.0),
            tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.PiecewiseConstantDecay([5, 10], [0.1, 0.01, 0.001]), clipvalue=0.5),
            tf.keras.optimizers.RMSprop(tf.keras.optimizers.schedules.PolynomialDecay(0.1, 10, 0.01, power=2), global_clipnorm=0.1)]:
    m = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    m.set_weights([np.full((4, 1), 0.1), np.zeros(1)])
    m.compile(opt, "mse")
    h = m.fit(x, y, batch_size=8, epochs=4, verbose=0, shuffle=False)
    print(type(opt).__name__, np.round(h.history["loss"], 5), int(opt.iterations), round(float(opt.learning_rate), 6))
w = tf.Variable(r.rand(4, 1).astype("float32"))
opt = tf.keras.optimizers.Adam(sched)
for s in range(10):
    with tf.GradientTape() as t:
        loss = tf.reduce_mean((x @ w - y) ** 2)
    g = t.gradient(loss, [w]); g, n = tf.clip_by_global_norm(g, 0.05)
    g = [tf.clip_by_norm(q, 1.0) for q in g]; g = [tf.clip_by_value(q, -1., 1.) for q in g]
    opt.apply_gradients(zip(g, [w]))
    if s % 3 == 0: print("step", s, "loss %.5f norm %.4f" % (loss, n))
