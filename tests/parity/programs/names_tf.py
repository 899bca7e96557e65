"""The names that programs use: each is there and can be called."""
import tensorflow as tf
from parity import check

NAMES = """
tf: Tensor Variable constant convert_to_tensor cast zeros ones zeros_like ones_like fill eye range linspace identity shape size rank reshape
tf: transpose expand_dims squeeze stack unstack concat split tile repeat pad reverse roll slice strided_slice gather gather_nd scatter_nd
tf: tensor_scatter_nd_update tensor_scatter_nd_add one_hot where boolean_mask broadcast_to meshgrid sequence_mask unique sort argsort
tf: add subtract multiply divide pow abs sign square sqrt exp sin cos tan asin acos atan atan2 sinh cosh tanh sigmoid floor round maximum
tf: minimum equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not reduce_sum reduce_mean reduce_max
tf: reduce_min reduce_prod reduce_any reduce_all reduce_logsumexp argmax argmin cumsum add_n matmul einsum tensordot norm clip_by_value
tf: clip_by_norm clip_by_global_norm stop_gradient custom_gradient recompute_grad GradientTape function cond case switch_case while_loop
tf: map_fn scan foldl foldr vectorized_map TensorArray TensorShape TensorSpec IndexedSlices Module device group print name_scope is_tensor
tf: executing_eagerly init_scope control_dependencies py_function numpy_function saturate_cast truediv scalar_mul searchsorted
tf: float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 bool string newaxis as_dtype nest errors UnconnectedGradients
tf: ensure_shape dynamic_partition dynamic_stitch realdiv truncatediv math nn linalg random keras compat config debugging
tf.math: add subtract multiply divide divide_no_nan maximum minimum pow exp log log1p expm1 sqrt rsqrt square abs sign sigmoid log_sigmoid
tf.math: softplus tanh erf erfinv floor ceil round sin cos reduce_sum reduce_mean reduce_max reduce_min reduce_std reduce_variance reduce_prod
tf.math: reduce_logsumexp argmax argmin cumsum cumprod top_k in_top_k is_nan is_inf is_finite logical_and logical_or logical_not
tf.math: squared_difference segment_sum unsorted_segment_sum unsorted_segment_mean confusion_matrix bincount count_nonzero l2_normalize
tf.math: multiply_no_nan floormod floordiv negative reciprocal lgamma digamma reduce_any reduce_all add_n equal greater less atan2 xlogy
tf.nn: relu relu6 elu selu leaky_relu gelu silu swish sigmoid tanh softmax log_softmax softplus softsign conv1d conv2d conv3d conv2d_transpose
tf.nn: depthwise_conv2d separable_conv2d max_pool max_pool2d avg_pool avg_pool2d dropout bias_add moments batch_normalization l2_loss l2_normalize
tf.nn: softmax_cross_entropy_with_logits sparse_softmax_cross_entropy_with_logits sigmoid_cross_entropy_with_logits embedding_lookup top_k
tf.nn: weighted_cross_entropy_with_logits local_response_normalization depth_to_space space_to_depth compute_average_loss
tf.linalg: matmul matvec einsum tensordot norm diag diag_part set_diag band_part trace eye matrix_transpose l2_normalize global_norm cross
tf.random: set_seed normal uniform truncated_normal shuffle categorical Generator stateless_normal stateless_uniform
tf.random: stateless_truncated_normal stateless_categorical get_global_generator
tf.config: list_physical_devices list_logical_devices set_logical_device_configuration LogicalDeviceConfiguration run_functions_eagerly
tf.config: functions_run_eagerly threading set_visible_devices get_visible_devices set_soft_device_placement experimental
tf.config.experimental: set_memory_growth list_physical_devices get_memory_info reset_memory_stats set_virtual_device_configuration
tf.config.experimental: VirtualDeviceConfiguration get_memory_growth
tf.debugging: assert_equal assert_less assert_greater assert_positive assert_non_negative assert_near assert_shapes assert_rank assert_type
tf.debugging: assert_all_finite check_numerics Assert assert_none_equal assert_less_equal assert_greater_equal enable_check_numerics
tf.errors: InvalidArgumentError ResourceExhaustedError OutOfRangeError NotFoundError UnimplementedError FailedPreconditionError OpError
tf.errors: InternalError CancelledError AbortedError UnknownError DataLossError AlreadyExistsError PermissionDeniedError
tf.compat.v1: Session InteractiveSession Graph placeholder placeholder_with_default Variable get_variable variable_scope
tf.compat.v1: global_variables_initializer initialize_all_variables global_variables trainable_variables gradients assign assign_add assign_sub
tf.compat.v1: disable_eager_execution disable_v2_behavior reset_default_graph get_default_graph get_default_session ConfigProto GPUOptions
tf.compat.v1: set_random_seed random_normal random_uniform truncated_normal train losses nn logging enable_eager_execution
tf.compat.v1.train: GradientDescentOptimizer MomentumOptimizer AdamOptimizer RMSPropOptimizer AdagradOptimizer get_or_create_global_step
tf.compat.v1.train: exponential_decay
"""
for line in NAMES.strip().splitlines():
    room, names = line.split(": ")
    module = tf
    for part in room.split(".")[1:]:
        module = getattr(module, part, None)
    for name in names.split():
        check(f"{room}.{name}", module is not None and hasattr(module, name))
