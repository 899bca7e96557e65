"""What memory guides say beside the model: logical devices, device names, strategies of one replica, finalized graphs, relaxed traces."""
import tensorflow as tf
from parity import check, raises

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
check("logical devices", [d.name for d in tf.config.list_logical_devices("CPU")])
tf.config.optimizer.set_experimental_options({"constant_folding": False})
check("options", tf.config.optimizer.get_experimental_options()["constant_folding"])

spec = tf.DeviceSpec(job="localhost", replica=0, task=0, device_type="CPU", device_index=0)
check("device", spec.to_string())
other = tf.DeviceSpec.from_string("/job:worker/task:1/gpu:3")
check("parts", [other.job, other.task, other.device_type, other.device_index, other.replica])
check("merged", other.make_merged_spec(tf.DeviceSpec(device_type="CPU")).to_string())
check("replaced", other.replace(task=2).to_string())
raises(ValueError, lambda: tf.DeviceSpec.from_string("/rack:1"))
with tf.device(spec):
    check("inside", tf.constant(1) + 1)

# --- strategies -----------------------------------------------------------------------------------------
check("no strategy", [tf.distribute.has_strategy(), tf.distribute.in_cross_replica_context(), type(tf.distribute.get_strategy()).__name__])
one = tf.distribute.OneDeviceStrategy("/cpu:0")
with one.scope():
    check("scope", [tf.distribute.has_strategy(), tf.distribute.in_cross_replica_context(), tf.distribute.get_strategy() is one])
    check("no replica in the scope", tf.distribute.get_replica_context() is None)
    v = tf.Variable(2.0)


def replica():
    context = tf.distribute.get_replica_context()
    return v * context.num_replicas_in_sync + context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(1.0))


check("run", one.run(replica))
check("reduce", one.reduce(tf.distribute.ReduceOp.MEAN, tf.constant([1.0, 3.0]), axis=0))
check("reduce by name", one.reduce("SUM", tf.constant([1.0, 3.0]), axis=0))
check("devices", list(one.extended.worker_devices))
check("after", tf.distribute.has_strategy())

# --- graphs that may not grow ---------------------------------------------------------------------------
v1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    c = v1.placeholder(tf.float32, name="c")
    d = v1.identity(c, name="d")
    check("not yet", graph.finalized)
    check("nodes", [n.name for n in graph.as_graph_def().node])
    graph.finalize()
    raises(RuntimeError, lambda: c + 1)
with v1.Session(graph=graph) as session:
    check("still runs", session.run(d, {c: 2.0}))

# --- traces for any size --------------------------------------------------------------------------------
shapes = []


@tf.function(reduce_retracing=True)
def total(x, y):
    shapes.append(x.shape.as_list())
    return tf.reduce_sum(x) * y


for n in range(2, 6):
    check(f"total {n}", total(tf.ones([n, 3]), tf.constant(2.0)))
check("traces", [total.experimental_get_tracing_count(), shapes])


@tf.function
def double(x, times=2):
    return x * times


check("signature", str(double.get_concrete_function(tf.TensorSpec([None], tf.float32), 3).structured_input_signature[0][0]))


# --- names of modules -----------------------------------------------------------------------------------
class MLPBlock(tf.Module):
    def __init__(self, depth, name=None):
        super().__init__(name=name)
        with self.name_scope:
            self.w = tf.Variable(1.0, name="w")
            self.inner = MLPBlock(depth - 1, "inner") if depth else None


block = MLPBlock(2)
check("names", [v.name for v in block.variables])
check("module", [block.name, block.name_scope.name, [m.name for m in block.submodules]])
