"""tf.distribute with one replica: scripts that say it run as they would on one device."""
import contextlib
import enum

from snug._lazy import tf
from snug._threads import ThreadList

_scopes = ThreadList()          # strategies whose scope is open, and None within run()


class ReduceOp(enum.Enum):
    SUM, MEAN = "SUM", "MEAN"


class Strategy:
    num_replicas_in_sync = 1
    cluster_resolver = None

    def __init__(self, *ignored, **more):
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
        return value

    def experimental_local_results(self, value):
        return (value,)

    def experimental_distribute_values_from_function(self, value_fn):
        return value_fn(ValueContext())

    # --- what `extended` has ----------------------------------------------------------------------
    def variable_created_in_scope(self, v):
        return True

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


class MirroredStrategy(Strategy):
    pass


class OneDeviceStrategy(Strategy):
    pass


class MultiWorkerMirroredStrategy(Strategy):
    pass


class TPUStrategy(Strategy):
    pass


class CentralStorageStrategy(Strategy):
    pass


class _DefaultDistributionStrategy(Strategy):
    """That of a program which names none."""


class InputContext:
    num_input_pipelines, input_pipeline_id, num_replicas_in_sync = 1, 0, 1

    def __init__(self, *ignored, **more):
        pass

    def get_per_replica_batch_size(self, global_batch_size):
        return global_batch_size


class ValueContext:
    replica_id_in_sync_group, num_replicas_in_sync = 0, 1

    def __init__(self, *ignored, **more):
        pass


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
        return value

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
