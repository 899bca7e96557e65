"""Where the names of tf come from: the function table of the extension, and the Python files named here. A name is found
when it is first used; one that is not there raises an AttributeError that names the nearest one that is."""
import importlib
import sys
import types

# Namespaces that Snug has something in.
SPACES = {"math", "lookup", "autodiff", "nn", "linalg", "random", "random.experimental", "experimental.dlpack", "config", "config.experimental", "config.threading",
          "config.optimizer",
          "debugging", "nest", "dtypes", "image", "bitwise", "experimental", "autograph", "autograph.experimental", "version",
          "sysconfig", "compat", "quantization", "distribute", "distribute.experimental", "summary", "io", "io.gfile", "train", "strings", "raw_ops", "nn.experimental", "experimental.numpy",
          "types", "types.experimental", "test", "audio", "sparse", "profiler", "profiler.experimental", "signal", "saved_model",
          "ragged", "sets", "summary.experimental", "lookup.experimental"}

_MODULES = {"errors": "snug.errors", "keras": "snug.keras", "initializers": "snug.keras.initializers",
            "losses": "snug.keras.losses", "metrics": "snug.keras.metrics", "optimizers": "snug.keras.optimizers",
            "compat.v1": "snug.compat_v1", "data": "snug.data"}


def _from(module, names, prefix=""):
    """{tf name: (module, attribute)} of words like `cond` or `divide:truediv`."""
    return {prefix + word.split(":")[0]: (module, word.split(":")[-1]) for word in names.split()}


PYTHON = {
    **_from("snug._C", "constant convert_to_tensor Tensor"),
    **_from("snug._misc", "is_tensor"),
    **_from("snug._types", "TensorShape TensorSpec type_spec_from_value as_dtype dtypes.as_dtype:as_dtype DType dtypes.DType:DType"),
    **_from("snug._variable", "Variable IndexedSlices VariableSynchronization VariableAggregation"),
    **_from("snug._tape", "GradientTape custom_gradient recompute_grad gradients UnconnectedGradients"),
    **_from("snug._tape", "GradientTape ForwardAccumulator", "autodiff."),
    **_from("snug._candidates", "log_uniform_candidate_sampler uniform_candidate_sampler learned_unigram_candidate_sampler", "random."),
    **_from("snug._candidates", "nce_loss sampled_softmax_loss log_uniform_candidate_sampler uniform_candidate_sampler"
            " learned_unigram_candidate_sampler", "nn."),
    **_from("snug._ctc", "ctc_loss ctc_greedy_decoder", "nn."),
    **_from("snug._function", "function"),
    **_from("snug._function", "run_functions_eagerly functions_run_eagerly", "config."),
    **_from("snug._function", "run_functions_eagerly", "config.experimental_"),
    **_from("snug._flow", "cond case switch_case while_loop map_fn vectorized_map scan foldl foldr TensorArray"
            " unique unique_with_counts dynamic_partition dynamic_stitch histogram_fixed_width unstack split meshgrid"
            " group tuple:tuple_of no_op math.top_k:top_k nn.top_k:top_k nn.moments:moments linalg.slogdet:slogdet"),
    **_from("snug._more", "range:range_of clip_by_global_norm clip_by_norm clip_by_value linalg.global_norm:global_norm broadcast_static_shape broadcast_dynamic_shape shape_n random.gamma:gamma"
            " random.poisson:poisson random.stateless_gamma:stateless_gamma"
            " tensor_scatter_nd_max tensor_scatter_nd_min random_normal_initializer constant_initializer zeros_initializer"
            " ones_initializer random_uniform_initializer linalg.adjoint:adjoint bitcast linalg.pinv:pinv"
            " linalg.matrix_rank:matrix_rank space_to_batch batch_to_space space_to_batch_nd:space_to_batch"
            " nn.space_to_batch:space_to_batch nn.embedding_lookup:embedding_lookup nn.max_pool_with_argmax:max_pool_with_argmax math.lbeta:lbeta math.erfcinv:erfcinv"),
    **_from("snug._nest", "flatten pack_sequence_as map_structure assert_same_structure is_nested", "nest."),
    **_from("snug._misc", "device DeviceSpec name_scope print Module init_scope control_dependencies executing_eagerly py_function"
            " numpy_function is_symbolic_tensor inside_function get_static_value Assert ensure_shape"
            " identity_n newaxis timestamp get_logger guarantee_const:identity_of"
            " grad_pass_through Operation"),
    **_from("snug._graph", "Graph"),
    **_from("snug._misc", "Assert assert_equal assert_near assert_greater assert_less assert_greater_equal assert_less_equal"
            " assert_none_equal assert_positive assert_negative assert_non_negative assert_non_positive assert_rank"
            " assert_rank_at_least assert_shapes assert_type assert_all_finite check_numerics enable_check_numerics"
            " disable_check_numerics set_log_device_placement get_log_device_placement is_numeric_tensor"
            " assert_scalar assert_integer assert_proper_iterable enable_traceback_filtering disable_traceback_filtering"
            " is_traceback_filtering_enabled", "debugging."),
    **_from("snug._misc", "assert_equal assert_greater assert_less assert_rank"),
    **_from("snug._config", "list_physical_devices list_logical_devices get_visible_devices set_visible_devices"
            " LogicalDeviceConfiguration LogicalDevice PhysicalDevice set_logical_device_configuration"
            " get_logical_device_configuration set_soft_device_placement get_soft_device_placement", "config."),
    **_from("snug._config", "list_physical_devices list_logical_devices get_visible_devices set_visible_devices"
            " set_memory_growth get_memory_growth get_memory_info reset_memory_stats get_memory_usage"
            " VirtualDeviceConfiguration:LogicalDeviceConfiguration"
            " set_virtual_device_configuration:set_logical_device_configuration"
            " get_virtual_device_configuration:get_logical_device_configuration enable_op_determinism"
            " get_device_details enable_tensor_float_32_execution tensor_float_32_execution_enabled", "config.experimental."),
    **_from("snug._config", "get_synchronous_execution set_synchronous_execution", "config.experimental."),
    **_from("snug._config", "get_inter_op_parallelism_threads set_inter_op_parallelism_threads"
            " get_intra_op_parallelism_threads set_intra_op_parallelism_threads", "config.threading."),
    **_from("snug._config", "set_jit get_jit set_experimental_options get_experimental_options", "config.optimizer."),
    **_from("snug._random", "set_seed Generator get_global_generator set_global_generator"
            " Algorithm create_rng_state", "random."),
    **_from("snug._random", "split fold_in", "random."),
    **_from("snug._random", "Generator get_global_generator set_global_generator stateless_split:split stateless_fold_in:fold_in", "random.experimental."),
    **_from("snug._misc", "set_verbosity to_graph to_code do_not_convert set_loop_options", "autograph."),
    **_from("snug._misc", "do_not_convert set_loop_options", "autograph.experimental."),
    **_from("snug._misc", "VERSION GIT_VERSION COMPILER_VERSION", "version."),
    **_from("snug._misc", "get_include get_lib get_build_info", "sysconfig."),
    **_from("snug._misc", "is_gpu_available gpu_device_name is_built_with_cuda is_built_with_gpu_support TestCase", "test."),
    **_from("snug._distribute", "Strategy MirroredStrategy OneDeviceStrategy MultiWorkerMirroredStrategy TPUStrategy ReduceOp"
            " get_strategy has_strategy in_cross_replica_context get_replica_context InputContext InputOptions RunOptions"
            " HierarchicalCopyAllReduce NcclAllReduce ReductionToOneDevice", "distribute."),
    **_from("snug._distribute", "MultiWorkerMirroredStrategy CentralStorageStrategy TPUStrategy ValueContext", "distribute.experimental."),
    **_from("snug._summary", "create_file_writer create_noop_writer scalar histogram image text audio write graph trace_on trace_export"
            " trace_off flush should_record_summaries record_if SummaryWriter", "summary."),
    **_from("snug._summary", "set_step get_step", "summary.experimental."),
    **_from("snug._summary", "start stop Profile Trace ProfilerOptions", "profiler.experimental."),
    **_from("snug._files", "exists isdir remove rename listdir join makedirs mkdir rmtree glob copy walk stat GFile",
            "io.gfile."),
    **_from("snug._io", "FixedLenFeature VarLenFeature FixedLenSequenceFeature parse_single_example parse_example decode_csv TFRecordWriter"
            " parse_single_sequence_example TFRecordOptions matching_files", "io."),
    **_from("snug._image", "resize resize_with_pad ResizeMethod adjust_brightness adjust_contrast adjust_saturation adjust_hue"
            " random_brightness random_contrast random_saturation random_hue stateless_random_brightness stateless_random_contrast"
            " stateless_random_saturation stateless_random_hue stateless_random_flip_up_down non_max_suppression"
            " random_jpeg_quality stateless_random_jpeg_quality draw_bounding_boxes", "image."),
    **_from("snug._image", "is_jpeg", "io."),
    **_from("snug._sparse", "SparseTensor to_dense from_dense eye reorder reshape transpose expand_dims slice concat retain split fill_empty_rows"
            " map_values add maximum minimum softmax reduce_sum reduce_max sparse_dense_matmul to_indicator bincount segment_sum segment_mean",
            "sparse."),
    **_from("snug._sparse", "intersection union difference size", "sets."),
    **_from("snug._sparse", "SparseTensor SparseTensorSpec"),
    **_from("snug._io", "Example SequenceExample Features Feature FeatureList FeatureLists BytesList FloatList Int64List", "train."),
    **_from("snug._saved", "save load contains_saved_model SaveOptions LoadOptions ASSETS_DIRECTORY VARIABLES_DIRECTORY"
            " SAVED_MODEL_FILENAME_PB SERVING TRAINING GPU TPU DEFAULT_SERVING_SIGNATURE_DEF_KEY", "saved_model."),
    **_from("snug._train", "Checkpoint CheckpointManager latest_checkpoint list_variables load_variable load_checkpoint"
            " get_checkpoint_state checkpoints_iterator CheckpointOptions ExponentialMovingAverage", "train."),
    **_from("snug._strings", "encode_base64 decode_base64 decode_compressed", "io."),
    **_from("snug._strings", "format unicode_split bytes_split ngrams unicode_decode unicode_encode unicode_transcode", "strings."),
    **_from("snug._numpy", "to_dlpack from_dlpack", "experimental.dlpack."),
    **_from("snug._numpy", "array asarray arange linspace ones zeros full eye identity random pi e inf newaxis float32 float64 int32 int64 bool_"
            " ndarray experimental_enable_numpy_behavior", "experimental.numpy."),
    **_from("snug._ragged", "RaggedTensor"),
    **_from("snug._complex", "complex math.imag:imag math.angle:angle"),
    **_from("snug._signal", "fft ifft fft2d ifft2d fft3d ifft3d rfft irfft rfft2d fftshift ifftshift hann_window hamming_window frame overlap_and_add"
            " stft inverse_stft inverse_stft_window_fn dct idct linear_to_mel_weight_matrix mfccs_from_log_mel_spectrograms", "signal."),
    **_from("snug._ragged", "constant stack range boolean_mask map_flat_values", "ragged."),
    **_from("snug._ragged", "split", "strings."),
    **_from("snug._strings", "as_string"),
    **_from("snug._lookup", "KeyValueTensorInitializer StaticHashTable StaticVocabularyTable TextFileInitializer TextFileIndex", "lookup."),
    **_from("snug._lookup", "MutableHashTable DenseHashTable", "lookup.experimental."),
    **_from("snug._misc", "as_str as_bytes as_text", "compat."),
}
PYTHON.update({prefix + name: ("snug._types", name) for prefix in ("", "dtypes.") for name in (
    "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128 string"
    " half double resource variant qint8 quint8 qint32").split()})
# What TensorFlow's own functions say they are called, where scripts print it.
_CALLED = {"negative": "neg", "floormod": "floor_mod", "mod": "floor_mod", "divide_no_nan": "div_no_nan", "silu": "swish"}
_HALF = {"half": "float16", "double": "float64"}


class Space(types.ModuleType):
    """A namespace of tf that is no file of its own."""

    def __init__(self, path):
        super().__init__("snug.tensorflow" + ("." + path if path else ""))
        self.__path__ = []
        self.__dict__["_path"] = path

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = find(self._path, name)
        self.__dict__[name] = found
        return found

    def __dir__(self):
        return sorted(names_of(self._path))


_made = {}


def space(path):
    """The module of a namespace: 'math' is tf.math."""
    if path in _MODULES:
        return importlib.import_module(_MODULES[path])
    if path not in _made:
        made = _made[path] = Space(path)
        sys.modules[made.__name__] = made
    return _made[path]


def find(path, name):
    """The object of tf.PATH.NAME; AttributeError where Snug has none."""
    from snug import _C
    full = f"{path}.{name}" if path else name
    if full in PYTHON:
        module, attribute = PYTHON[full]
        if module == "snug._types" and name in _dtypes():
            return _dtypes()[_HALF.get(name, name)]
        return getattr(importlib.import_module(module), attribute)
    if full in _MODULES:
        try:
            return space(full)
        except ModuleNotFoundError:
            raise lacking(path, name) from None
    if full in SPACES:
        return space(full)
    called = _CALLED.get(name, name)
    row = _C.function("tf." + full, False, called)
    data = _dataops().function("tf." + full)
    if data is not None:
        return data
    if row is None and path in ("math", "nn", "linalg") and name not in PYTHON:
        row = _C.function("tf." + name, False, called)
    if row is None and path in ("math", "nn", "linalg") and name in PYTHON:
        return find("", name)
    if row is None and path in ("experimental.numpy", "raw_ops"):
        row = importlib.import_module("snug._numpy" if path != "raw_ops" else "snug._raw_ops").function(name)
    if row is None:
        raise lacking(path, name)
    return row


def _dataops():
    from snug import _dataops as found
    return found


def _dtypes():
    from snug import _types
    return {**_types.BY_NAME, **{alias: _types.BY_NAME[name] for alias, name in _HALF.items()}}


def names_of(path):
    """All names of a namespace."""
    from snug import _C
    prefix = path + "." if path else ""
    found = {full[len(prefix):] for full in PYTHON if full.startswith(prefix)} | {
        full[len(prefix):] for full in SPACES | set(_MODULES) if full.startswith(prefix)}
    for names, _, _ in _C.functions():
        for word in names.split():
            if word.startswith("tf." + prefix):
                found.add(word[3 + len(prefix):])
    found |= {word[3 + len(prefix):] for word in _dataops().names() if word.startswith("tf." + prefix)}
    if path == "raw_ops":
        found |= importlib.import_module("snug._raw_ops").NAMES
    return {name for name in found if "." not in name}


def lacking(path, name):
    """The error for a name that is not there. With a name of its own: Python would add a guess to what it says."""
    return AttributeError(missing(path, name), name="", obj=None)


# What to do instead, where no name is near.
_INSTEAD = {"lite": "Snug trains and runs models, it converts none; model.save('m.keras') is read by TensorFlow, which does",
            "tpu": "Snug uses a CPU or one GPU", "estimator": "TensorFlow has none since 2.16; tf.keras.Model.fit trains",
            "feature_column": "tf.keras.layers.StringLookup, Discretization and Normalization prepare features",
            "contrib": "TensorFlow 2 has none either; tf.compat.v1 and tf.keras.layers hold what it had",
            "app": "it was TensorFlow 1's; call main() yourself", "flags": "it was TensorFlow 1's; argparse reads arguments",
            "xla": "plans are Snug's own; tf.function(jit_compile=True) is accepted", "mlir": "Snug has no such code to show",
            "graph_util": "a model is kept by model.save('m.keras') or tf.saved_model.save",
            "linalg.eig": "tf.linalg.eigh is of symmetric matrices", "linalg.eigvals": "tf.linalg.eigvalsh is of symmetric matrices"}


def missing(path, name):
    """What the error says: that it is not there, and the nearest name that is."""
    import difflib
    here = f"tf.{path}." if path else "tf."
    instead = _INSTEAD.get(f"{path}.{name}" if path else name)
    if instead:
        return f"{here}{name} is not in Snug: {instead}"
    near = difflib.get_close_matches(name, names_of(path) - {name}, 1, 0.6)
    if near:
        return f"{here}{name} is not in Snug; the nearest name is {here}{near[0]}"
    for other in sorted({""} | SPACES):
        if other != path and name in names_of(other):
            return f"{here}{name} is not in Snug; there is tf.{other + '.' if other else ''}{name}"
    return f"{here}{name} is not in Snug"
