"""Sequence to sequence with an LSTM encoder and decoder: teacher forcing, then step-by-step decoding."""
import numpy as np
from tensorflow import keras

r = np.random.RandomState(0)
num_tokens, latent_dim, length = 8, 16, 4
START = 0
digits = r.randint(1, num_tokens, (96, length))
encoder_input_data = np.eye(num_tokens, dtype="float32")[digits]
reversed_digits = digits[:, ::-1]
decoder_in = np.concatenate([np.full((96, 1), START), reversed_digits[:, :-1]], axis=1)
decoder_input_data = np.eye(num_tokens, dtype="float32")[decoder_in]
decoder_target_data = np.eye(num_tokens, dtype="float32")[reversed_digits]

encoder_inputs = keras.Input(shape=(None, num_tokens))
encoder = keras.layers.LSTM(latent_dim, return_state=True)
encoder_outputs, state_h, state_c = encoder(encoder_inputs)
encoder_states = [state_h, state_c]
decoder_inputs = keras.Input(shape=(None, num_tokens))
decoder_lstm = keras.layers.LSTM(latent_dim, return_sequences=True, return_state=True)
decoder_outputs, _, _ = decoder_lstm(decoder_inputs, initial_state=encoder_states)
decoder_dense = keras.layers.Dense(num_tokens, activation="softmax")
decoder_outputs = decoder_dense(decoder_outputs)
model = keras.Model([encoder_inputs, decoder_inputs], decoder_outputs)
model.set_weights([r.uniform(-0.3, 0.3, w.shape).astype("float32") for w in model.get_weights()])
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="categorical_crossentropy", metrics=["accuracy"])
history = model.fit([encoder_input_data, decoder_input_data], decoder_target_data, batch_size=32, epochs=6, shuffle=False,
                    validation_split=0.25, verbose=0)
print("loss", " ".join(f"{v:.2f}" for v in history.history["loss"]))
print("parameters", model.count_params(), "keys", sorted(history.history))

encoder_model = keras.Model(encoder_inputs, encoder_states)
state_input_h = keras.Input(shape=(latent_dim,))
state_input_c = keras.Input(shape=(latent_dim,))
decoder_states_inputs = [state_input_h, state_input_c]
outputs, state_h, state_c = decoder_lstm(decoder_inputs, initial_state=decoder_states_inputs)
decoder_model = keras.Model([decoder_inputs] + decoder_states_inputs, [decoder_dense(outputs)] + [state_h, state_c])


def decode_sequence(input_seq):
    states_value = encoder_model.predict(input_seq, verbose=0)
    target_seq = np.zeros((1, 1, num_tokens), "float32")
    target_seq[0, 0, START] = 1.0
    decoded, probabilities = [], []
    for _ in range(length):
        output_tokens, h, c = decoder_model.predict([target_seq] + states_value, verbose=0)
        sampled = int(np.argmax(output_tokens[0, -1, :]))
        decoded.append(sampled)
        probabilities.append(float(output_tokens[0, -1, sampled]))
        target_seq = np.zeros((1, 1, num_tokens), "float32")
        target_seq[0, 0, sampled] = 1.0
        states_value = [h, c]
    return decoded, probabilities


decoded, probabilities = decode_sequence(encoder_input_data[:1])
print(len(decoded), all(0 <= d < num_tokens for d in decoded), f"{probabilities[0]:.2f}")
whole = model.predict([encoder_input_data[:1], decoder_input_data[:1]], verbose=0)
print(whole.shape, f"first step agrees: {abs(whole[0, 0].max() - probabilities[0]) < 1e-4}")
