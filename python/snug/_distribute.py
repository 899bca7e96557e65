"""tf.distribute with one replica: scripts that say it run as they would on one device."""
import contextlib

from snug._lazy import tf


class ReduceOp:
    SUM, MEAN = "SUM", "MEAN"


class Strategy:
    num_replicas_in_sync = 1

    def __init__(self, *ignored, **more):
        self.extended = self

    @contextlib.contextmanager
    def scope(self):
        yield self

    def run(self, fn, args=(), kwargs=None, options=None):
        return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op, value, axis=None):
        if axis is None:
            return value
        return (tf.reduce_mean if reduce_op == ReduceOp.MEAN else tf.reduce_sum)(value, axis=axis)

    def experimental_distribute_dataset(self, dataset, options=None):
        return dataset

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        return dataset_fn(InputContext())

    def gather(self, value, axis):
        return value

    def experimental_local_results(self, value):
        return (value,)

    def experimental_distribute_values_from_function(self, value_fn):
        return value_fn(ValueContext())

    def variable_created_in_scope(self, v):
        return True

    def make_dataset_iterator(self, dataset):
        return iter(dataset)


class InputContext:
    num_input_pipelines, input_pipeline_id, num_replicas_in_sync = 1, 0, 1

    def get_per_replica_batch_size(self, global_batch_size):
        return global_batch_size


class ValueContext:
    replica_id_in_sync_group, num_replicas_in_sync = 0, 1


MirroredStrategy = OneDeviceStrategy = MultiWorkerMirroredStrategy = TPUStrategy = Strategy
_default = Strategy()


def get_strategy():
    return _default


def has_strategy():
    return False


def in_cross_replica_context():
    return False


class _Replica:
    replica_id_in_sync_group, num_replicas_in_sync = 0, 1

    def all_reduce(self, reduce_op, value, options=None):
        return value

    @property
    def strategy(self):
        return _default


def get_replica_context():
    return _Replica()
