"""keras.dtype_policies: in which type a layer keeps its variables, and in which it computes."""
import re

from snug._types import as_dtype
from snug.keras import backend


class DTypePolicy:
    def __init__(self, name=None):
        self._name = dtype_policy().name if name is None else name
        self._compute_dtype, self._variable_dtype = _parsed(self._name)
        dtype = as_dtype(self._compute_dtype)
        self._casts_to = dtype if dtype.is_floating else None       # what real numbers become
        self._reads_in = None if self._compute_dtype == self._variable_dtype else dtype

    name = property(lambda self: self._name)
    compute_dtype = property(lambda self: self._compute_dtype)
    variable_dtype = property(lambda self: self._variable_dtype)
    quantization_mode = property(lambda self: None)

    def convert_input(self, x, autocast, dtype):
        """Real numbers in the dtype, where autocast is on; others as they are."""
        from snug._lazy import tf
        from snug.keras._symbolic import KerasTensor
        if not isinstance(x, KerasTensor) and not tf.is_tensor(x):
            if not hasattr(x, "__array__"):
                return x
            x = tf.convert_to_tensor(x)
        kind = tf.as_dtype(x.dtype)
        return tf.cast(x, dtype) if autocast and kind.is_floating and kind.name != dtype else x

    def get_config(self):
        return {"name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def __repr__(self):
        return f'<DTypePolicy "{self._name}">'

    def __eq__(self, other):
        return isinstance(other, DTypePolicy) and type(other) is not DTypePolicyMap and self._name == other._name

    def __hash__(self):
        return hash(self._name)


class FloatDTypePolicy(DTypePolicy):
    """Another name of it, in Keras."""


def _parsed(name):
    """(compute dtype, variable dtype) of a policy's name."""
    if not isinstance(name, str):
        raise TypeError(f"'name' must be a string, such as 'mixed_float16'. Received: name={name} (of type {type(name)})")
    if name in ("mixed_float16", "mixed_bfloat16"):
        return name[len("mixed_"):], "float32"
    try:
        dtype = as_dtype(name).name
    except TypeError:
        dtype = None
    if dtype is None or dtype in ("resource", "variant"):
        raise ValueError(f"Cannot convert '{name}' to a mixed precision DTypePolicy. Valid policies include 'mixed_float16', 'mixed_bfloat16',"
                         " and the name of any float dtype such as 'float32'.")
    return dtype, dtype


class DTypePolicyMap(DTypePolicy):
    """Policies by the path of a layer: an exact one, or a pattern that matches all of it."""

    def __init__(self, default_policy=None, policy_map=None):
        if isinstance(default_policy, DTypePolicyMap):
            raise ValueError("`default_policy` cannot be a `DTypePolicyMap`.")
        if policy_map is not None and not isinstance(policy_map, dict):
            raise TypeError(f"If specified, `policy_map` must be a dict. Received: policy_map={policy_map} of type {type(policy_map)}")
        self._default_policy_arg = default_policy
        self._default_policy = get(default_policy)
        self._policy_map = policy_map or {}

    name = property(lambda self: f"map_{self.default_policy.name}")
    default_policy = property(lambda self: self._default_policy)
    variable_dtype = property(lambda self: self.default_policy.variable_dtype)
    compute_dtype = property(lambda self: self.default_policy.compute_dtype)
    _casts_to = property(lambda self: self.default_policy._casts_to)
    _reads_in = property(lambda self: self.default_policy._reads_in)

    def __getitem__(self, key):
        if key in self._policy_map:
            return self._policy_map[key]
        found = [pattern for pattern in self._policy_map if re.fullmatch(pattern, key)]
        if len(found) > 1:
            raise ValueError(f"Path '{key}' matches multiple dtype policy specification keys: {found}. Please make sure each path only"
                             " matches at most one dtype policy specification key in the DTypePolicyMap.")
        return self._policy_map[found[0]] if found else self.default_policy

    def __setitem__(self, key, policy):
        if key in self._policy_map:
            raise ValueError(f"{key} already exist in the DTypePolicyMap with value {self._policy_map[key]}. Please make sure to not use"
                             " duplicated keys.")
        try:
            policy = get(policy)
        except Exception:
            raise ValueError("Cannot interpret the assigned value by `keras.dtype_policies.get`."
                             f" Received: {policy} of type {type(policy)}") from None
        self._policy_map[key] = policy

    def __delitem__(self, key):
        return self._policy_map.pop(key)

    def __contains__(self, key):
        return key in self._policy_map

    def __len__(self):
        return len(self._policy_map)

    def __iter__(self):
        return iter(self._policy_map)

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__

    def get_config(self):
        given = self._default_policy_arg
        return {"default_policy": serialize(given) if isinstance(given, DTypePolicy) else given,
                "policy_map": {key: serialize(policy) for key, policy in self._policy_map.items()}}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        def made(policy):
            return deserialize(policy, custom_objects) if isinstance(policy, dict) else get(policy)
        default = config["default_policy"]
        return cls(None if default is None else made(default), {key: made(policy) for key, policy in config["policy_map"].items()})

    def __repr__(self):
        mapping = [(key, policy.name) for key, policy in self._policy_map.items()]
        return f"<DTypePolicyMap at {hex(id(self))} default_policy={self.default_policy.name}, mapping={mapping}>"


def serialize(dtype_policy):
    return {"module": "keras" if type(dtype_policy) is DTypePolicy else "keras.dtype_policies", "class_name": type(dtype_policy).__name__,
            "config": dtype_policy.get_config(), "registered_name": None}


def deserialize(config, custom_objects=None):
    kinds = {"DTypePolicy": DTypePolicy, "FloatDTypePolicy": FloatDTypePolicy, "DTypePolicyMap": DTypePolicyMap, "Policy": DTypePolicy,
             **(custom_objects or {})}
    kind = kinds.get(config.get("class_name"))
    if kind is None:
        raise ValueError(f"a configuration's dtype is a name or a policy, not {config!r:.100}")
    return kind.from_config(config.get("config") or {})


def get(identifier):
    if identifier is None:
        return dtype_policy()
    if isinstance(identifier, DTypePolicy):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return DTypePolicy(identifier)
    try:
        if isinstance(identifier, int):
            raise TypeError         # TensorFlow's number of a dtype is none of Keras' names
        return DTypePolicy(as_dtype(identifier).name)
    except (TypeError, ValueError):
        raise ValueError(f"Cannot interpret `dtype` argument. Expected a string or an instance of DTypePolicy. Received: dtype={identifier}") from None


_global = []
_of_floatx = {}  # policies do not change: one for each float type that was the default


def dtype_policy():
    """What layers go by that are given none: what was set, or else the float type."""
    if _global:
        return _global[0]
    name = backend.floatx()
    if name not in _of_floatx:
        _of_floatx[name] = DTypePolicy(name)
    return _of_floatx[name]


def set_dtype_policy(policy):
    if not isinstance(policy, (str, DTypePolicy)):
        raise ValueError("Invalid `policy` argument. Expected the string name of a policy (such as 'mixed_float16') or a `DTypePolicy`"
                         f" instance. Received: policy={policy} (of type {type(policy)})")
    _global[:] = [get(policy)]
