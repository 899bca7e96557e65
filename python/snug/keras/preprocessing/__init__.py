"""keras.preprocessing."""
from snug.keras.preprocessing import image, sequence, text  # noqa: F401
from snug.keras.utils import image_dataset_from_directory, text_dataset_from_directory, timeseries_dataset_from_array  # noqa: F401


def __getattr__(name):
    raise AttributeError(f"keras.preprocessing.{name} is not in Snug yet")
