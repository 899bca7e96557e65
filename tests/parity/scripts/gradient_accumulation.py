"""Gradients accumulated over batches: in train_step, by the optimizer, by hand."""
import numpy as np, tensorflow as tf
class GradAccumModel(tf.keras.Model):
    def __init__(self, n_gradients, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.n_gradients = tf.constant(n_gradients, dtype=tf.int32); self.n_acum_step = tf.Variable(0, dtype=tf.int32, trainable=False)
        self.gradient_accumulation = [tf.Variable(tf.zeros_like(v, dtype=tf.float32), trainable=False) for v in self.trainable_variables]
    def train_step(self, data):
        self.n_acum_step.assign_add(1); x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True); loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        for i in range(len(self.gradient_accumulation)): self.gradient_accumulation[i].assign_add(gradients[i])
        tf.cond(tf.equal(self.n_acum_step, self.n_gradients), self.apply_accu_gradients, lambda: None)
        for m in self.metrics:
            if m.name == "loss": m.update_state(loss)
        return {m.name: m.result() for m in self.metrics}
    def apply_accu_gradients(self):
        self.optimizer.apply_gradients(zip(self.gradient_accumulation, self.trainable_variables)); self.n_acum_step.assign(0)
        for i in range(len(self.gradient_accumulation)): self.gradient_accumulation[i].assign(tf.zeros_like(self.trainable_variables[i], dtype=tf.float32))
inp = tf.keras.Input((4,)); out = tf.keras.layers.Dense(1)(tf.keras.layers.Dense(8, activation="relu")(inp)); m = GradAccumModel(4, inputs=inp, outputs=out)
r = np.random.RandomState(0); m.set_weights([r.randn(*w.shape) * 0.3 for w in m.get_weights()]) if len(m.get_weights()) == 4 else [v.assign(r.randn(*v.shape) * 0.3) for v in m.trainable_variables]
m.compile(tf.keras.optimizers.SGD(0.01), "mse"); x = r.rand(64, 4).astype("float32"); y = x.sum(1, keepdims=True)
h = m.fit(x, y, batch_size=8, epochs=3, verbose=0, shuffle=False); print(np.round(np.array(h.history["loss"], "float64"), 4))
opt = tf.keras.optimizers.Adam(0.01, gradient_accumulation_steps=2); w = tf.Variable([1., 2.])
for i in range(4): opt.apply_gradients([(w * (i + 1.), w)]); print(np.round(w.numpy(), 4))
net = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="tanh", input_shape=(4,)), tf.keras.layers.Dense(1)]); net.set_weights([r.randn(*v.shape) * 0.3 for v in net.get_weights()])
opt = tf.keras.optimizers.Adam(0.01); accum = [tf.zeros_like(v) for v in net.trainable_variables]; loss_fn = tf.keras.losses.MeanSquaredError()
for step in range(8):
    xb, yb = x[step * 8:(step + 1) * 8], y[step * 8:(step + 1) * 8]
    with tf.GradientTape() as t: loss = loss_fn(yb, net(xb, training=True)) / 4
    accum = [a + g for a, g in zip(accum, t.gradient(loss, net.trainable_variables))]
    if (step + 1) % 4 == 0:
        opt.apply_gradients(zip(accum, net.trainable_variables)); accum = [tf.zeros_like(v) for v in net.trainable_variables]; print(f"step {step+1} loss {float(loss) * 4:.4f}")
