"""keras.saving."""
from snug.keras._models import load_model, save_model  # noqa: F401
from snug.keras._serial import (CustomObjectScope, custom_object_scope, deserialize_keras_object, get_custom_objects,  # noqa: F401
                                get_registered_name, get_registered_object, register_keras_serializable, serialize_keras_object)


def save_weights(model, filepath, overwrite=True, max_shard_size=None):
    model.save_weights(filepath, overwrite, max_shard_size)


def load_weights(model, filepath, skip_mismatch=False, *, by_name=None, objects_to_skip=None):
    model.load_weights(filepath, skip_mismatch, by_name=by_name, objects_to_skip=objects_to_skip)
