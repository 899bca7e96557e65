"""A Sequential model: weights, shapes, predict, layers, summary of parameters."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from parity import check

model = keras.Sequential([
    layers.Dense(4, activation="relu", input_shape=(3,), name="hidden"),
    layers.Dense(2, name="out"),
])
r = np.random.RandomState(0)
model.set_weights([r.uniform(-1, 1, w.shape).astype("float32") for w in model.get_weights()])
x = r.uniform(-1, 1, (5, 3)).astype("float32")
check("predict", model.predict(x, verbose=0))
check("call", model(x))
check("call with training", model(x, training=True))
check("predict_on_batch", model.predict_on_batch(x))
check("number of layers", len(model.layers))
check("names", [l.name for l in model.layers])
check("count", model.count_params())
check("weights", [w.shape for w in model.weights])
check("trainable", len(model.trainable_weights))
check("input_shape", model.input_shape)
check("output_shape", model.output_shape)
check("get_layer", model.get_layer("out").units)
check("kernel", model.layers[0].kernel)
check("by index", model.get_layer(index=1).bias)
model.layers[0].trainable = False
check("frozen", len(model.trainable_variables))
grown = keras.Sequential()
grown.add(keras.Input(shape=(3,)))
grown.add(layers.Dense(2))
grown.add(layers.Activation("tanh"))
grown.pop()
check("added and popped", len(grown.layers))
late = keras.Sequential([layers.Dense(2), layers.Dense(1)])
check("not built", late.built)
check("built by a call", late(x).shape)
check("shapes then", [w.shape for w in late.weights])
