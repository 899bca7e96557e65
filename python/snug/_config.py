"""tf.config: devices, memory and threads. There is one device, the CPU; a memory limit for it is Snug's budget."""
from collections import namedtuple

from snug import _C

PhysicalDevice = namedtuple("PhysicalDevice", ["name", "device_type"])
LogicalDevice = namedtuple("LogicalDevice", ["name", "device_type"])
_CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")
_state = {"growth": {}, "logical": {}, "visible": [_CPU], "inter": 0, "intra": 0, "soft": True, "peak_base": 0, "jit": False}


class LogicalDeviceConfiguration:
    """memory_limit in MiB: the budget of the process, once it is set for a device."""

    def __init__(self, memory_limit=None, experimental_priority=None, experimental_device_ordinal=None):
        self.memory_limit = memory_limit
        self.experimental_priority = experimental_priority

    def __repr__(self):
        return f"LogicalDeviceConfiguration(memory_limit={self.memory_limit})"


def list_physical_devices(device_type=None):
    return [_CPU] if device_type in (None, "CPU") else []


def list_logical_devices(device_type=None):
    return [LogicalDevice("/device:CPU:0", "CPU")] if device_type in (None, "CPU") else []


def get_visible_devices(device_type=None):
    return [d for d in _state["visible"] if device_type in (None, d.device_type)]


def set_visible_devices(devices, device_type=None):
    _known(devices)


def _known(devices):
    for d in devices if isinstance(devices, (list, tuple)) and not isinstance(devices, PhysicalDevice) else [devices]:
        if d != _CPU:
            raise ValueError(f"Unrecognized device: {d!r}")


def set_memory_growth(device, enable):
    _known(device)
    _state["growth"][device] = bool(enable)


def get_memory_growth(device):
    _known(device)
    return _state["growth"].get(device, False)


def set_logical_device_configuration(device, logical_devices):
    _known(device)
    limits = [d.memory_limit for d in logical_devices if d.memory_limit]
    if limits:
        _C.budget(int(sum(limits)) << 20)
    _state["logical"][device] = list(logical_devices)


def get_logical_device_configuration(device):
    _known(device)
    return _state["logical"].get(device)


def get_memory_info(device):
    """Bytes that Snug holds now, and the most since the last reset."""
    info = _C.info()
    return {"current": info["bytes"], "peak": max(info["bytes"], info["peak_bytes"] - _state["peak_base"])}


def get_memory_usage(device):
    return _C.info()["bytes"]


def reset_memory_stats(device):
    info = _C.info()
    _state["peak_base"] = info["peak_bytes"] - info["bytes"]


def get_device_details(device):
    return {}


def get_inter_op_parallelism_threads():
    return _state["inter"]


def _not_started(what):
    if _C.is_started():
        raise RuntimeError(f"{what} cannot be modified after initialization.")


def set_inter_op_parallelism_threads(num_threads):
    _not_started("Inter op parallelism")
    _state["inter"] = num_threads


def get_intra_op_parallelism_threads():
    return _state["intra"]


def set_intra_op_parallelism_threads(num_threads):
    _not_started("Intra op parallelism")
    _state["intra"] = num_threads


def set_soft_device_placement(enabled):
    _state["soft"] = bool(enabled)


def get_soft_device_placement():
    return _state["soft"]


def enable_op_determinism():
    """Nothing to do: the same input gives the same bits always."""


def enable_tensor_float_32_execution(enabled):
    pass


def tensor_float_32_execution_enabled():
    return False


def set_jit(enabled):
    _state["jit"] = enabled


def get_jit():
    return "autoclustering" if _state["jit"] else ""


def set_experimental_options(options):
    pass


def get_experimental_options():
    return {}
