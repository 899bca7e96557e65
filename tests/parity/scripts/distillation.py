"""Knowledge distillation: a model with its own compute_loss, and one with its own train_step, around a compiled teacher."""
import numpy as np, os
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
from keras import layers, ops
import tensorflow as tf
class Distiller(keras.Model):
    def __init__(self, student, teacher):
        super().__init__(); self.teacher = teacher; self.student = student
    def compile(self, optimizer, metrics, student_loss_fn, distillation_loss_fn, alpha=0.1, temperature=3):
        super().compile(optimizer=optimizer, metrics=metrics)
        self.student_loss_fn = student_loss_fn; self.distillation_loss_fn = distillation_loss_fn; self.alpha = alpha; self.temperature = temperature
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, allow_empty=False):
        teacher_pred = self.teacher(x, training=False)
        student_loss = self.student_loss_fn(y, y_pred)
        distillation_loss = self.distillation_loss_fn(ops.softmax(teacher_pred / self.temperature, axis=1), ops.softmax(y_pred / self.temperature, axis=1)) * (self.temperature**2)
        return self.alpha * student_loss + (1 - self.alpha) * distillation_loss
    def call(self, x): return self.student(x)
class Distiller2(Distiller):
    def train_step(self, data):
        x, y = data
        teacher_predictions = self.teacher(x, training=False)
        with tf.GradientTape() as tape:
            student_predictions = self.student(x, training=True)
            student_loss = self.student_loss_fn(y, student_predictions)
            dl = self.distillation_loss_fn(tf.nn.softmax(teacher_predictions / self.temperature, axis=1), tf.nn.softmax(student_predictions / self.temperature, axis=1)) * self.temperature**2
            loss = self.alpha * student_loss + (1 - self.alpha) * dl
        tv = self.student.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, tv), tv))
        for m in self.metrics: 
            if m.name != "loss": m.update_state(y, student_predictions)
        results = {m.name: m.result() for m in self.metrics if m.name != "loss"}; results.update({"student_loss": student_loss, "distillation_loss": dl}); return results
r = np.random.RandomState(0)
def mk(c, name):
    m = keras.Sequential([keras.Input(shape=(8, 8, 1)), layers.Conv2D(c, (3, 3), strides=(2, 2), padding="same"), layers.LeakyReLU(negative_slope=0.2), layers.MaxPooling2D(pool_size=(2, 2), strides=(1, 1), padding="same"),
        layers.Conv2D(c * 2, (3, 3), strides=(2, 2), padding="same"), layers.Flatten(), layers.Dense(4)], name=name)
    m.set_weights([r.randn(*w.shape) * 0.2 for w in m.get_weights()]); return m
x = r.rand(64, 8, 8, 1).astype("float32"); y = r.randint(0, 4, 64)
teacher = mk(8, "teacher"); student = mk(2, "student"); student_scratch = keras.models.clone_model(student)
teacher.compile(optimizer=keras.optimizers.Adam(), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=[keras.metrics.SparseCategoricalAccuracy()])
print(np.round(teacher.fit(x, y, epochs=2, verbose=0, shuffle=False).history["loss"], 4)); 
for cls in (Distiller, Distiller2):
    d = cls(student=student, teacher=teacher)
    d.compile(optimizer=keras.optimizers.Adam(), metrics=[keras.metrics.SparseCategoricalAccuracy()], student_loss_fn=keras.losses.SparseCategoricalCrossentropy(from_logits=True), distillation_loss_fn=keras.losses.KLDivergence(), alpha=0.1, temperature=10)
    h = d.fit(x, y, epochs=2, shuffle=False, verbose=0, batch_size=16)
    print({k: np.round(np.asarray(v, "float64"), 4).tolist() for k, v in sorted(h.history.items())})
print(np.round(d.evaluate(x, y, verbose=0)[1] if cls is Distiller else 0, 3)); print(student_scratch.name, student_scratch.count_params())
