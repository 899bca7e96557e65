"""tf.distribute with one replica: scripts that say it run as they would on one device."""
import contextlib
import enum

from snug._given import default_only, refuse
from snug._lazy import tf
from snug._threads import ThreadList

_scopes = ThreadList()          # strategies whose scope is open, and None within run()


class ReduceOp(enum.Enum):
    SUM, MEAN = "SUM", "MEAN"


class Strategy:
    num_replicas_in_sync = 1
    cluster_resolver = None

    def __init__(self, extended=None):
        refuse("tf.distribute.Strategy", "extended", extended, None)
        self.extended = self

    @contextlib.contextmanager
    def scope(self):
        _scopes.append(self)
        try:
            yield self
        finally:
            _scopes.pop()

    def run(self, fn, args=(), kwargs=None, options=None):
        _scopes.append(None)
        try:
            return fn(*args, **(kwargs or {}))
        finally:
            _scopes.pop()

    def reduce(self, reduce_op, value, axis=None):
        if axis is None:
            return value
        return (tf.reduce_mean if ReduceOp(getattr(reduce_op, "value", reduce_op).upper()) is ReduceOp.MEAN else tf.reduce_sum)(value, axis=axis)

    def experimental_distribute_dataset(self, dataset, options=None):
        return dataset

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        return dataset_fn(InputContext())

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def gather(self, value, axis):
        return _gathered(value, axis)

    def experimental_local_results(self, value):
        return (value,)

    def experimental_distribute_values_from_function(self, value_fn):
        return value_fn(ValueContext())

    # --- what `extended` has ----------------------------------------------------------------------
    def variable_created_in_scope(self, v):
        return hasattr(v, "assign")

    def make_dataset_iterator(self, dataset):
        return iter(dataset)

    def update(self, var, fn, args=(), kwargs=None, group=True):
        return fn(var, *args, **(kwargs or {}))

    def reduce_to(self, reduce_op, value, destinations, options=None):
        return value

    def value_container(self, value):
        return value

    @property
    def worker_devices(self):
        return (tf.constant(0).device,)

    parameter_devices = worker_devices


def _one_of(strategy, devices):
    """A strategy of several devices would have as many replicas, and other sums: Snug has one."""
    listed = [devices] if isinstance(devices, str) else list(devices or ())
    if len(listed) > 1:
        raise NotImplementedError(f"tf.distribute.{strategy} of {len(listed)} devices is not in Snug: it trains on one")
    for device in listed:
        with tf.device(device):
            pass


def _gathered(value, axis):
    value = tf.convert_to_tensor(value)
    if not -value.shape.rank <= int(axis) < value.shape.rank:
        raise ValueError(f"axis {axis} is none of a value of shape {value.shape}")
    return value


class MirroredStrategy(Strategy):
    def __init__(self, devices=None, cross_device_ops=None):
        super().__init__()
        _one_of("MirroredStrategy", devices)


class OneDeviceStrategy(Strategy):
    def __init__(self, device):
        super().__init__()
        _one_of("OneDeviceStrategy", device)


class MultiWorkerMirroredStrategy(Strategy):
    @default_only("cluster_resolver")
    def __init__(self, cluster_resolver=None, communication_options=None):
        super().__init__()


class TPUStrategy(Strategy):
    @default_only("experimental_device_assignment experimental_spmd_xla_partitioning")
    def __init__(self, tpu_cluster_resolver=None, experimental_device_assignment=None, experimental_spmd_xla_partitioning=False):
        super().__init__()


class CentralStorageStrategy(Strategy):
    def __init__(self, compute_devices=None, parameter_device=None):
        super().__init__()
        _one_of("CentralStorageStrategy", compute_devices), _one_of("CentralStorageStrategy", parameter_device)


class _DefaultDistributionStrategy(Strategy):
    """That of a program which names none."""


class InputContext:
    def __init__(self, num_input_pipelines=1, input_pipeline_id=0, num_replicas_in_sync=1):
        self.num_input_pipelines, self.input_pipeline_id, self.num_replicas_in_sync = num_input_pipelines, input_pipeline_id, num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size):
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` {self.num_replicas_in_sync} ")
        return global_batch_size // self.num_replicas_in_sync


class ValueContext:
    def __init__(self, replica_id_in_sync_group=0, num_replicas_in_sync=1):
        self.replica_id_in_sync_group, self.num_replicas_in_sync = replica_id_in_sync_group, num_replicas_in_sync


class InputOptions:
    def __init__(self, **settings):
        self.__dict__.update(settings)


RunOptions = InputOptions


class HierarchicalCopyAllReduce:
    """How replicas would exchange gradients, of which there is one."""

    def __init__(self, num_packs=1):
        pass


NcclAllReduce = ReductionToOneDevice = HierarchicalCopyAllReduce
_default = _DefaultDistributionStrategy()


def get_strategy():
    return next((s for s in reversed(_scopes) if s is not None), _default)


def has_strategy():
    return get_strategy() is not _default


def in_cross_replica_context():
    return bool(_scopes) and _scopes[-1] is not None


class _Replica:
    replica_id_in_sync_group, num_replicas_in_sync = 0, 1

    def all_reduce(self, reduce_op, value, options=None):
        return value

    def all_gather(self, value, axis, options=None):
        return _gathered(value, axis)

    def merge_call(self, merge_fn, args=(), kwargs=None):
        return merge_fn(self.strategy, *args, **(kwargs or {}))

    @property
    def strategy(self):
        return get_strategy()

    @property
    def devices(self):
        return (tf.constant(0).device,)


def get_replica_context():
    """None where a scope is open and nothing runs in it, as in TensorFlow."""
    return None if in_cross_replica_context() else _Replica()
