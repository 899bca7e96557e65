"""keras.preprocessing."""
from snug.keras.preprocessing import sequence  # noqa: F401
from snug.keras.utils import timeseries_dataset_from_array  # noqa: F401


def __getattr__(name):
    raise AttributeError(f"keras.preprocessing.{name} is not in Snug yet")
