"""keras.mixed_precision. Policies that mix float16 or bfloat16 with float32 are accepted, so that scripts written for cards run, and
computed in float32: what is rounded to 16 bits elsewhere is not, and no loss needs scaling."""
import sys

_told = []


class Policy:
    """`compute_dtype` is what Keras would compute in; layers of Snug say float32 of themselves."""

    def __init__(self, name):
        if name in ("float16", "bfloat16"):
            raise NotImplementedError(f"the policy {name} is not in Snug; use float32, or mixed_{name}, which is computed in float32")
        mixed = name.startswith("mixed_")
        if mixed and name not in ("mixed_float16", "mixed_bfloat16"):
            raise ValueError(f"Cannot convert '{name}' to a mixed precision DTypePolicy. Valid policies include: 'mixed_float16',"
                             " 'mixed_bfloat16'")
        self.name = name
        self.compute_dtype, self.variable_dtype = (name[6:], "float32") if mixed else (name, name)

    def get_config(self):
        return {"name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def __repr__(self):
        return f'<DTypePolicy "{self.name}">'

    def __eq__(self, other):
        return isinstance(other, Policy) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


DTypePolicy = Policy


def dtype_policy():
    from snug.keras import backend
    return Policy(backend._state.get("mixed") or backend.floatx())


global_policy = dtype_policy


def set_dtype_policy(policy):
    from snug.keras import backend
    policy = policy if isinstance(policy, Policy) else Policy(policy)
    mixed = policy.compute_dtype != policy.variable_dtype
    backend._state["mixed"] = policy.name if mixed else None
    backend.set_floatx(policy.variable_dtype)
    if mixed and not _told:
        _told.append(True)
        print(f"snug: layers of the policy {policy.name} compute in float32", file=sys.stderr)


set_global_policy = set_dtype_policy


def __getattr__(name):
    if name == "LossScaleOptimizer":
        from snug.keras import optimizers
        return optimizers.LossScaleOptimizer
    raise AttributeError(f"keras.mixed_precision.{name} is not in Snug")
