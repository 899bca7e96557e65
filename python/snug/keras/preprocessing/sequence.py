"""keras.preprocessing.sequence."""
from snug.keras.utils import pad_sequences  # noqa: F401
