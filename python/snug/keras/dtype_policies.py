"""keras.dtype_policies."""
from snug.keras.mixed_precision import Policy as DTypePolicy  # noqa: F401


def get(identifier):
    return identifier if isinstance(identifier, DTypePolicy) else DTypePolicy(identifier)
