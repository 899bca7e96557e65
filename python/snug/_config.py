"""tf.config: devices, memory and threads. A process uses one GPU, the first that is visible, or the CPU; a memory limit for
a device is Snug's budget for it."""
import os
from collections import namedtuple

from snug import _C
from snug._given import default_only

PhysicalDevice = namedtuple("PhysicalDevice", ["name", "device_type"])
LogicalDevice = namedtuple("LogicalDevice", ["name", "device_type"])
_CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")
_state = {"growth": {}, "logical": {}, "visible": None, "inter": 0, "intra": 0, "soft": True, "peak_base": 0, "jit": False,
          "tf32": True, "options": {}}
_gpus = None


class LogicalDeviceConfiguration:
    """memory_limit in MiB: the budget of the process, once it is set for a device."""

    @default_only("experimental_device_ordinal")
    def __init__(self, memory_limit=None, experimental_priority=None, experimental_device_ordinal=None):
        self.memory_limit = memory_limit
        self.experimental_priority = experimental_priority

    def __repr__(self):
        return f"LogicalDeviceConfiguration(memory_limit={self.memory_limit})"


def _cards():
    """Counted once: the driver looks at CUDA_VISIBLE_DEVICES only then."""
    global _gpus
    if _gpus is None:
        n = 0 if os.environ.get("SNUG_DEVICE") == "cpu" else _C.device_count()[0]
        _gpus = [PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(n)]
    return _gpus


def list_physical_devices(device_type=None):
    return [d for d in [_CPU, *_cards()] if device_type in (None, d.device_type)]


def get_visible_devices(device_type=None):
    return [d for d in _state["visible"] or list_physical_devices() if device_type in (None, d.device_type)]


def list_logical_devices(device_type=None):
    cpus = range(max(1, len(_state["logical"].get(_CPU, ()))))
    used = [LogicalDevice(f"/device:CPU:{i}", "CPU") for i in cpus] + [LogicalDevice("/device:GPU:0", "GPU")] * bool(get_visible_devices("GPU"))
    return [d for d in used if device_type in (None, d.device_type)]


def _listed(devices):
    return list(devices) if isinstance(devices, (list, tuple)) and not isinstance(devices, PhysicalDevice) else [devices]


def _known(devices):
    for d in _listed(devices):
        if d not in list_physical_devices():
            raise ValueError(f"Unrecognized device: {d!r}")
    return _listed(devices)


def set_visible_devices(devices, device_type=None):
    seen = _known(devices)
    seen += [d for d in get_visible_devices() if device_type is not None and d.device_type != device_type]
    if sorted(seen) == sorted(get_visible_devices()):
        return
    if _C.is_started():
        raise RuntimeError("Visible devices cannot be modified after being initialized")
    cards = [d for d in seen if d.device_type == "GPU"]
    _C.choose_device("gpu:" + cards[0].name.rpartition(":")[2] if cards else "cpu")
    _state["visible"] = seen


def set_memory_growth(device, enable):
    """Snug never takes more of a GPU than it uses."""
    _known(device)
    _state["growth"][device] = bool(enable)


def get_memory_growth(device):
    _known(device)
    return _state["growth"].get(device, False)


def set_logical_device_configuration(device, logical_devices):
    _known(device)
    limits = [d.memory_limit for d in logical_devices if d.memory_limit]
    if limits:
        (_C.device_budget if device.device_type == "GPU" else _C.budget)(int(sum(limits)) << 20)
    _state["logical"][device] = list(logical_devices)


def get_logical_device_configuration(device):
    _known(device)
    return _state["logical"].get(device)


def _card(device):
    """What the GPU of that name holds; None: the name is of the CPU."""
    kind, _, number = str(device).upper().replace("/DEVICE:", "").strip("/").partition(":")
    if kind == "CPU":
        return None
    card = _C.device() if kind == "GPU" and number in ("", "0") else None
    if card is None:
        raise ValueError(f"No matching devices found for '{device}'")
    return card


def get_memory_info(device):
    """Bytes that Snug holds there now, and the most since the last reset."""
    card = _card(device)
    if card:
        return {"current": card["bytes"], "peak": card["peak_bytes"]}
    info = _C.info()
    return {"current": info["bytes"], "peak": max(info["bytes"], info["peak_bytes"] - _state["peak_base"])}


def get_memory_usage(device):
    return get_memory_info(device)["current"]


def reset_memory_stats(device):
    if _card(device):
        _C.reset_peak()
        return
    info = _C.info()
    _state["peak_base"] = info["peak_bytes"] - info["bytes"]


def get_device_details(device):
    card = _C.device() if _known(device)[0].device_type == "GPU" else None
    return {"device_name": card["model"], "compute_capability": divmod(card["capability"], 10)} if card else {}


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
    """Of a GPU's products; before anything has run there."""
    if _C.is_started() and bool(enabled) != _state["tf32"] and _C.device():
        raise RuntimeError("Snug decides between TF32 and float32 when the GPU is opened: say it before the first operation")
    _state["tf32"] = bool(enabled)
    _C.exact_products(not enabled)


def tensor_float_32_execution_enabled():
    return _state["tf32"]


def set_jit(enabled):
    _state["jit"] = enabled


def get_jit():
    return "autoclustering" if _state["jit"] else ""


def set_experimental_options(options):
    """Kept, for who asks; Snug's graphs are simplified in one way."""
    _state["options"].update(options)


def get_experimental_options():
    return dict(_state["options"])


def get_synchronous_execution():
    return True


def set_synchronous_execution(enable):
    """Nothing to do: what is recorded runs when its bytes are needed, and is done when they are there."""
