"""list_local_devices, by which older scripts look for a GPU."""


class _Device:
    def __init__(self, name, kind, memory):
        self.name, self.device_type, self.memory_limit = name, kind, memory
        self.incarnation, self.physical_device_desc = 0, ""

    def __repr__(self):
        return f'name: "{self.name}"\ndevice_type: "{self.device_type}"\nmemory_limit: {self.memory_limit}\n'


def list_local_devices(session_config=None):
    from snug import _config
    return [_Device(d.name, d.device_type, 268435456) for d in _config.list_logical_devices()]
