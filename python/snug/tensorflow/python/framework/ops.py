"""Names of tensorflow.python.framework.ops that scripts use."""
from snug import tensorflow as _tf

Tensor, convert_to_tensor, name_scope = _tf.Tensor, _tf.convert_to_tensor, _tf.name_scope
disable_eager_execution, reset_default_graph = _tf.compat.v1.disable_eager_execution, _tf.compat.v1.reset_default_graph
get_default_graph, Graph = _tf.compat.v1.get_default_graph, _tf.Graph
