"""keras.saving."""
from snug.keras._models import load_model, save_model  # noqa: F401
from snug.keras._serial import (CustomObjectScope, custom_object_scope, deserialize_keras_object, get_custom_objects,  # noqa: F401
                                get_registered_name, get_registered_object, register_keras_serializable, serialize_keras_object)
