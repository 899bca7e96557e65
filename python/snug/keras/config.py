"""keras.config."""
from snug._misc import disable_traceback_filtering, enable_traceback_filtering, is_traceback_filtering_enabled  # noqa: F401
from snug.keras.backend import backend, epsilon, floatx, image_data_format, set_epsilon, set_floatx, set_image_data_format  # noqa: F401
from snug.keras.dtype_policies import dtype_policy, set_dtype_policy  # noqa: F401


def enable_unsafe_deserialization():
    """Lambdas in files may be run from now on."""
    from snug.keras import _serial
    _serial._always[0] = True


def disable_interactive_logging():
    pass


def enable_interactive_logging():
    pass
