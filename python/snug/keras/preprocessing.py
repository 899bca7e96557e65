"""keras.preprocessing."""
import types

from snug.keras.utils import pad_sequences

sequence = types.SimpleNamespace(pad_sequences=pad_sequences)


def __getattr__(name):
    raise AttributeError(f"keras.preprocessing.{name} is not in Snug yet")
