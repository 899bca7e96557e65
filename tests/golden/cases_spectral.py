"""SpectralNormalization around layers with a kernel and around an Embedding."""
from record import IDS, IMAGES, L, X, Y3, adam, head, keras, sgd

# Keras casts the output to the dtype of the input: indices must be floats there, or nothing is left of the rows.
S = L.SpectralNormalization
CASES = [
    ("spectral_dense", lambda: [L.Input((12,)), S(L.Dense(6, activation="tanh")), S(L.Dense(3), power_iterations=3)], X, Y3, sgd, "mse", [], 5),
    ("spectral_conv", lambda: [L.Input((7, 6, 3)), S(L.Conv2D(4, 3, padding="same", activation="relu")), S(L.Conv2DTranspose(3, 2)), L.GlobalAveragePooling2D()] + head(), IMAGES, Y3, adam, "mse", [], 5),
    ("spectral_embedding", lambda: [L.Input((5,)), S(L.Embedding(9, 4)), L.Flatten()] + head(), IDS.astype(float), Y3, sgd, "mse", [], 3),
    ("spectral_penalty", lambda: [L.Input((12,)), S(L.Dense(6, kernel_regularizer="l2", bias_regularizer="l1", activation="tanh"))] + head(), X, Y3, sgd, "mse", [], 3),
    ("spectral_zeros", lambda: [L.Input((12,)), S(L.Dense(6, kernel_initializer="zeros")), L.Activation("relu")] + head(), X, Y3, sgd, "mse", [], 3),
]
