"""The functional guide: a toy ResNet, shared layers, graph of layers, feature extraction, a custom layer in between."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

inputs = keras.Input(shape=(16, 16, 3), name="img")
x = layers.Conv2D(8, 3, activation="relu")(inputs)
x = layers.Conv2D(16, 3, activation="relu")(x)
block_1_output = layers.MaxPooling2D(3)(x)
x = layers.Conv2D(16, 3, activation="relu", padding="same")(block_1_output)
x = layers.Conv2D(16, 3, activation="relu", padding="same")(x)
block_2_output = layers.add([x, block_1_output])
x = layers.Conv2D(16, 3, activation="relu", padding="same")(block_2_output)
x = layers.Conv2D(16, 3, activation="relu", padding="same")(x)
block_3_output = layers.add([x, block_2_output])
x = layers.Conv2D(16, 3, activation="relu")(block_3_output)
x = layers.GlobalAveragePooling2D()(x)
x = layers.Dense(32, activation="relu")(x)
x = layers.Dropout(0.5)(x)
outputs = layers.Dense(10)(x)
model = keras.Model(inputs, outputs, name="toy_resnet")
print(model.name, model.count_params(), len(model.layers))
r = np.random.RandomState(0)
model.set_weights([r.uniform(-0.2, 0.2, w.shape).astype("float32") for w in model.get_weights()])
x_train, y_train = r.rand(32, 16, 16, 3).astype("float32"), keras.utils.to_categorical(r.randint(0, 10, 32), 10)
print("logits", np.round(model.predict(x_train[:1], verbose=0)[0, :4], 3))
model.get_layer(index=-2).rate = 0.0
model.compile(optimizer=keras.optimizers.RMSprop(1e-3), loss=keras.losses.CategoricalCrossentropy(from_logits=True), metrics=["acc"])
history = model.fit(x_train, y_train, batch_size=8, epochs=1, verbose=0)
print(sorted(history.history), "near log 10:", abs(history.history["loss"][0] - 2.3) < 0.6)

features_list = [layer.output for layer in model.layers]
feat_extraction_model = keras.Model(inputs=model.input, outputs=features_list)
extracted_features = feat_extraction_model(x_train[:2])
print(len(extracted_features), extracted_features[3].shape, extracted_features[-1].shape)

encoder_input = keras.Input(shape=(8, 8, 1), name="original_img")
x = layers.Conv2D(4, 3, activation="relu")(encoder_input)
encoder_output = layers.GlobalMaxPooling2D()(x)
encoder = keras.Model(encoder_input, encoder_output, name="encoder")
decoder_input = keras.Input(shape=(4,), name="encoded_img")
x = layers.Reshape((2, 2, 1))(decoder_input)
x = layers.Conv2DTranspose(4, 3, activation="relu")(x)
x = layers.UpSampling2D(2)(x)
decoder_output = layers.Conv2DTranspose(1, 1)(x)
decoder = keras.Model(decoder_input, decoder_output, name="decoder")
auto_in = keras.Input(shape=(8, 8, 1))
autoencoder = keras.Model(auto_in, decoder(encoder(auto_in)), name="autoencoder")
print(autoencoder.output_shape, [l.name for l in autoencoder.layers[1:]])


def get_model():
    inputs = keras.Input(shape=(8,))
    return keras.Model(inputs, layers.Dense(1)(inputs))


model1, model2, model3 = get_model(), get_model(), get_model()
inputs = keras.Input(shape=(8,))
outputs = layers.average([model1(inputs), model2(inputs), model3(inputs)])
ensemble_model = keras.Model(inputs=inputs, outputs=outputs)
v = np.ones((1, 8), "float32")
print("ensemble", bool(np.allclose(ensemble_model(v), (model1(v) + model2(v) + model3(v)) / 3.0, atol=1e-6)))
