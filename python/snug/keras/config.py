"""keras.config."""
from snug.keras.backend import backend, epsilon, floatx, image_data_format, set_epsilon, set_floatx, set_image_data_format  # noqa: F401
from snug.keras.mixed_precision import dtype_policy, set_dtype_policy  # noqa: F401


def enable_unsafe_deserialization():
    pass


def disable_interactive_logging():
    pass


def enable_interactive_logging():
    pass


def disable_traceback_filtering():
    pass


def enable_traceback_filtering():
    pass
