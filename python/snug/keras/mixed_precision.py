"""keras.mixed_precision: older names of keras.dtype_policies and keras.config."""
from snug.keras.dtype_policies import DTypePolicy, dtype_policy, set_dtype_policy  # noqa: F401

Policy = DTypePolicy
global_policy = dtype_policy
set_global_policy = set_dtype_policy


def __getattr__(name):
    if name == "LossScaleOptimizer":
        from snug.keras import optimizers
        return optimizers.LossScaleOptimizer
    raise AttributeError(f"keras.mixed_precision.{name} is not in Snug")
