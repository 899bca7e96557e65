"""tf.device and tf.config as scripts use them on a machine without a GPU."""
import tensorflow as tf
from parity import check, raises

gpus = tf.config.list_physical_devices("GPU")
check("no gpus", gpus)
check("is a gpu there", bool(tf.config.list_physical_devices("GPU")))
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
cpus = tf.config.list_physical_devices("CPU")
check("cpus", len(cpus))
check("type", cpus[0].device_type)
check("name", cpus[0].name)
check("experimental", len(tf.config.experimental.list_physical_devices("CPU")))
tf.config.threading.set_intra_op_parallelism_threads(2)
tf.config.threading.set_inter_op_parallelism_threads(1)
check("threads", [tf.config.threading.get_intra_op_parallelism_threads(), tf.config.threading.get_inter_op_parallelism_threads()])
tf.config.set_soft_device_placement(True)
check("logical", [d.device_type for d in tf.config.list_logical_devices("CPU")])
with tf.device("/CPU:0"):
    a = tf.constant([1.0, 2.0])
check("device", a.device.endswith("CPU:0"))
with tf.device("cpu:0"):
    check("in a device", a + 1.0)
with tf.device("/GPU:0"):
    check("soft placement", a * 2.0)
check("functions eagerly", tf.config.functions_run_eagerly())
tf.config.run_functions_eagerly(True)
seen = []


@tf.function
def f(x):
    seen.append(1)
    return x + 1


f(tf.constant(1))
f(tf.constant(2))
check("ran each time", len(seen))
tf.config.run_functions_eagerly(False)
f(tf.constant(1))
f(tf.constant(2))
check("traced once", len(seen))
check("eager", tf.executing_eagerly())
check("built with cuda is a bool", isinstance(tf.test.is_built_with_cuda(), bool))
check("gpu name", tf.test.gpu_device_name())
check("version", tf.__version__.split(".")[0])
tf.get_logger().setLevel("ERROR")
check("virtual devices", tf.config.get_visible_devices("GPU"))
raises(RuntimeError, lambda: tf.config.threading.set_intra_op_parallelism_threads(4))
