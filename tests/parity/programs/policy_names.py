"""Dtype policies by name, as objects and configurations, in maps; what is none is refused."""
import keras
from parity import check, raises

P = keras.DTypePolicy
for name in ("float32", "float64", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16", "int32"):
    p = P(name)
    check(name, [p.name, p.compute_dtype, p.variable_dtype, repr(p), p.get_config(), p.quantization_mode])
check("equal", [P("mixed_float16") == P("mixed_float16"), P("mixed_float16") == P("float16"), P("float32") == keras.FloatDTypePolicy("float32")])
for wrong in ("mixed_float32", "mixed_", "foo", ""):
    raises(ValueError, lambda: P(wrong))
raises(TypeError, lambda: P(3))
raises(ValueError, lambda: keras.config.set_dtype_policy(3))
raises(ValueError, lambda: keras.config.set_dtype_policy("foo"))
raises(ValueError, lambda: keras.layers.Dense(1, dtype="foo"))
check("get", [keras.dtype_policies.get("mixed_bfloat16").name, keras.dtype_policies.get(P("float16")).name, keras.dtype_policies.get(None).name,
              keras.dtype_policies.get({"class_name": "DTypePolicy", "config": {"name": "bfloat16"}}).name])
check("serialised", keras.dtype_policies.serialize(P("mixed_float16")))
check("read back", keras.dtype_policies.deserialize(keras.dtype_policies.serialize(P("mixed_float16"))).name)
check("from_config", P.from_config({"name": "mixed_bfloat16"}).name)

check("at first", [keras.config.dtype_policy().name, keras.mixed_precision.global_policy().name])
keras.config.set_dtype_policy("mixed_bfloat16")
check("set", [keras.config.dtype_policy().name, keras.mixed_precision.dtype_policy().compute_dtype, keras.config.floatx(), P().name])
keras.mixed_precision.set_global_policy(P("float16"))
check("as an object", [keras.config.dtype_policy().name, keras.layers.Dense(1).dtype_policy.name])
keras.config.set_dtype_policy("float32")

m = keras.dtype_policies.DTypePolicyMap(default_policy="float32")
m["encoder/.*"] = "mixed_bfloat16"
m["decoder"] = P("float16")
check("map", [m["encoder/a"].name, m["encoder/a/b"].name, m["encoder"].name, m["decoder"].name, m["decoder/a"].name, m.name, len(m), list(m),
              m.compute_dtype, m.variable_dtype, m.default_policy.name, "decoder" in m, "encoder/a" in m])
m["encoder/a.*"] = "float64"
raises(ValueError, lambda: m["encoder/a"])
raises(ValueError, lambda: m.__setitem__("decoder", "float32"))
raises(ValueError, lambda: m.__setitem__("x", "foo"))
del m["encoder/a.*"]
check("without it", m["encoder/a"].name)
raises(TypeError, lambda: keras.dtype_policies.DTypePolicyMap(policy_map=[1]))
raises(ValueError, lambda: keras.dtype_policies.DTypePolicyMap(default_policy=m))
a, b = keras.layers.Dense(2, dtype=m, name="decoder"), keras.layers.Dense(2, dtype=m, name="other")
check("layers of a map", [a.compute_dtype, a.variable_dtype, b.compute_dtype, b.variable_dtype])
a.dtype_policy = "mixed_float16"
check("set in the map", [a.compute_dtype, m["decoder"].name])
b = keras.layers.Dense(2)
b.dtype_policy = "mixed_bfloat16"
check("set", [b.dtype_policy.name, b.compute_dtype, b.variable_dtype, b.dtype])
