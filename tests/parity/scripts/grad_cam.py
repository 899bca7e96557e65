"""Where a network looks: Grad-CAM, saliency, integrated gradients, FGSM, DeepDream."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
r = np.random.RandomState(0)
inp = keras.Input((16, 16, 3))
x = keras.layers.Conv2D(8, 3, activation="relu", name="conv1")(inp)
x = keras.layers.MaxPooling2D(name="pool")(x)
x = keras.layers.Conv2D(16, 3, activation="relu", name="last_conv")(x)
x = keras.layers.GlobalAveragePooling2D()(x)
out = keras.layers.Dense(5, activation="softmax", name="predictions")(x)
model = keras.Model(inp, out)
model.set_weights([r.randn(*w.shape).astype("float32") * 0.3 for w in model.get_weights()])
model.layers[-1].activation = None

def make_gradcam_heatmap(img_array, model, last_conv_layer_name, pred_index=None):
    grad_model = keras.models.Model(model.inputs, [model.get_layer(last_conv_layer_name).output, model.output])
    with tf.GradientTape() as tape:
        last_conv_layer_output, preds = grad_model(img_array)
        if pred_index is None:
            pred_index = tf.argmax(preds[0])
        class_channel = preds[:, pred_index]
    grads = tape.gradient(class_channel, last_conv_layer_output)
    pooled_grads = tf.reduce_mean(grads, axis=(0, 1, 2))
    last_conv_layer_output = last_conv_layer_output[0]
    heatmap = last_conv_layer_output @ pooled_grads[..., tf.newaxis]
    heatmap = tf.squeeze(heatmap)
    heatmap = tf.maximum(heatmap, 0) / tf.math.reduce_max(heatmap)
    return heatmap.numpy()

img = r.rand(1, 16, 16, 3).astype("float32")
preds = model.predict(img, verbose=0)
print("Predicted:", np.argmax(preds[0]), np.round(preds, 3))
h = make_gradcam_heatmap(img, model, "last_conv")
print(h.shape); print(np.round(h, 3))
# saliency + integrated gradients
image = tf.Variable(img)
with tf.GradientTape() as tape:
    loss = tf.reduce_max(model(image)[0])
g = tape.gradient(loss, image)
sal = tf.reduce_max(tf.abs(g), axis=-1)[0]
print(np.round(sal[:2, :4], 4))
m_steps = 10
alphas = tf.linspace(start=0.0, stop=1.0, num=m_steps + 1)
def interpolate_images(baseline, image, alphas):
    alphas_x = alphas[:, tf.newaxis, tf.newaxis, tf.newaxis]
    baseline_x = tf.expand_dims(baseline, axis=0)
    input_x = tf.expand_dims(image, axis=0)
    return baseline_x + alphas_x * (input_x - baseline_x)
interp = interpolate_images(tf.zeros((16, 16, 3)), tf.constant(img[0]), alphas)
with tf.GradientTape() as tape:
    tape.watch(interp)
    probs = tf.nn.softmax(model(interp), axis=-1)[:, 2]
gr = tape.gradient(probs, interp)
ig = tf.math.reduce_mean((gr[:-1] + gr[1:]) / tf.constant(2.0), axis=0) * img[0]
print(round(float(tf.reduce_sum(ig)), 4), round(float(probs[-1] - probs[0]), 4))
# FGSM
signed = tf.sign(g)
adv = tf.clip_by_value(image + 0.01 * signed, -1, 1)
print(adv.shape, round(float(tf.reduce_sum(adv)), 2))
# deep dream octave
img2 = tf.constant(img[0])
@tf.function(input_signature=(tf.TensorSpec(shape=[None, None, 3], dtype=tf.float32), tf.TensorSpec(shape=[], dtype=tf.int32), tf.TensorSpec(shape=[], dtype=tf.float32)))
def dream(img, steps, step_size):
    loss = tf.constant(0.0)
    for n in tf.range(steps):
        with tf.GradientTape() as tape:
            tape.watch(img)
            loss = tf.reduce_mean(model(img[tf.newaxis]))
        gradients = tape.gradient(loss, img)
        gradients /= tf.math.reduce_std(gradients) + 1e-8
        img = img + gradients * step_size
        img = tf.clip_by_value(img, -1, 1)
    return loss, img
l, im = dream(img2, tf.constant(3), tf.constant(0.01))
print(round(float(l), 4), im.shape, round(float(tf.reduce_mean(im)), 4))
