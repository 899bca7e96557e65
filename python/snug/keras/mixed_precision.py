"""keras.mixed_precision: the names are here; other policies than float32 and float64 are not in Snug yet."""


class Policy:
    def __init__(self, name):
        if name.startswith("mixed") or name in ("float16", "bfloat16"):
            raise NotImplementedError(f"the policy {name} is not in Snug yet; use float32")
        self.name = self.compute_dtype = self.variable_dtype = name

    def get_config(self):
        return {"name": self.name}


DTypePolicy = Policy


def dtype_policy():
    from snug.keras import backend
    return Policy(backend.floatx())


global_policy = dtype_policy


def set_dtype_policy(policy):
    from snug.keras import backend
    backend.set_floatx(policy.name if isinstance(policy, Policy) else Policy(policy).name)


set_global_policy = set_dtype_policy


def __getattr__(name):
    if name == "LossScaleOptimizer":
        from snug.keras import optimizers
        return optimizers.LossScaleOptimizer
    raise AttributeError(f"keras.mixed_precision.{name} is not in Snug")
