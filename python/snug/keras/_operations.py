"""Functions of a functional model in configurations, as Keras writes them: a class of keras.src.ops, its settings, its calls."""
import functools
import operator

from snug import _C
from snug.keras import _symbolic
from snug.keras._symbolic import Operation

# Where Keras has the class of a function; of all others, in numpy.
_MODULES = {
    "nn": "adaptive_average_pool adaptive_max_pool average_pool batch_normalization binary_crossentropy categorical_crossentropy celu conv"
          " conv_transpose ctc_decode ctc_loss depth_to_space depthwise_conv dot_product_attention elu fold gelu glu hard_shrink hard_sigmoid"
          " hard_silu hard_swish hard_tanh layer_normalization leaky_relu log_sigmoid log_softmax max_pool moments multi_hot normalize one_hot"
          " polar psnr relu relu6 rms_normalization selu separable_conv sigmoid silu soft_shrink softmax softplus softsign space_to_depth"
          " sparse_categorical_crossentropy sparse_plus sparse_sigmoid sparsemax squareplus swish tanh_shrink threshold unfold",
    "core": "associative_scan cast cond convert_to_tensor custom_gradient fori_loop map saturate_cast scan scatter scatter_update slice"
            " slice_update stop_gradient switch unstack vectorized_map while_loop",
    "math": "cdist erf erfc erfinv extract_sequences fft fft2 ifft2 in_top_k irfft istft logdet logsumexp rfft rsqrt segment_max segment_min"
            " segment_prod segment_sum stft top_k view_as_complex view_as_real",
    "image": "affine_transform crop_images elastic_transform extract_patches extract_patches_3d gaussian_blur hsv_to_rgb map_coordinates"
             " pad_images perspective_transform resize rgb_to_grayscale rgb_to_hsv scale_and_translate sobel_edges ssim",
    "linalg": "cholesky cholesky_inverse det eig eigh inv jvp lstsq lu_factor matrix_rank norm pinv qr solve solve_triangular svd",
    "einops": "rearrange"}
# In Keras what is no tensor is a setting of the class, but for these, of which some are the other way round.
_OTHERWISE = {("clip", "x_min"), ("clip", "x_max"), ("quantile", "q"), ("pad", "constant_values"), ("slice", "start_indices"),
              ("linspace", "start"), ("linspace", "stop"), ("dot_product_attention", "scale")}
_OPERATORS = {word: getattr(operator, name) for name, word in _symbolic._WORDS.items() if name not in ("and", "or", "getitem")}
_OPERATORS.update(add=operator.add, matmul=operator.matmul, mod=operator.mod, logical_and=operator.and_, logical_or=operator.or_,
                  get_item=_symbolic._getitem)


@functools.cache
def _arguments(word):
    """(name, whether it is a setting) of a function's arguments, as its row in the table has them; () where it has none, or takes any number."""
    signatures = {name: signature for names, signature, _ in _C.functions() for name in names.split()}
    row = signatures.get("keras.ops." + word) or signatures.get("keras.ops.image." + word) or "*"
    entries = [entry.partition(":") for entry in row.split()] if "*" not in row else []
    return tuple((name, (kind[0] in "IBSDN") != ((word, name) in _OTHERWISE)) for name, _, kind in entries)


def serialize(operation):
    """The row of a functional model's configuration, without its calls."""
    module = next((m for m, words in _MODULES.items() if operation.word in words.split()), "numpy")
    name, settings = operation.class_name, dict(operation.settings)
    if operation._nodes:
        settings.update(_split(operation, operation._nodes[0])[1])
    return {"module": f"keras.src.ops.{module}", "class_name": name, "config": {"name": operation.name, **settings}, "registered_name": name}


def _split(operation, node):
    """Operands of a call, and its settings by name: those that stand behind all operands."""
    arguments = _arguments(operation.word)[:len(node.args)]
    n = next((i for i, (_, is_setting) in enumerate(arguments) if is_setting and not _symbolic.is_symbolic(node.args[i])), len(node.args))
    rest = dict(zip((name for name, _ in arguments[n:]), node.args[n:]))
    if len(arguments) < len(node.args) or any(not is_setting for _, is_setting in arguments[n:]) or _symbolic.is_symbolic(list(rest.values())):
        return list(node.args), dict(node.kwargs)
    return list(node.args[:n]), {**rest, **node.kwargs}


def operands(operation, node):
    return _split(operation, node)[0]


def place(value):
    """A slice, as a configuration holds it; None for anything else."""
    if isinstance(value, slice):
        return {"class_name": "__slice__", "config": {"start": value.start, "stop": value.stop, "step": value.step}}
    return {"class_name": "__ellipsis__", "config": {}} if value is Ellipsis else None


def look(value):
    if value["class_name"] == "__ellipsis__":
        return Ellipsis
    return slice(*(value["config"][k] for k in ("start", "stop", "step")))


def deserialize(row):
    """The function of a row, or None where it is no function's."""
    if not str(row.get("module") or "").startswith("keras.src.ops"):
        return None
    word, settings = _symbolic.word_of(str(row["class_name"])), dict(row["config"])
    name = settings.pop("name", None)
    function = _OPERATORS.get(word)
    if function is None:
        from snug.keras import ops
        function = ops.named(word, image=".image" in row["module"])
        if function is None:
            raise ValueError(f"the configuration names a function keras.ops.{word}, which Snug does not have")
    if word == "get_item":
        function = lambda x, key: x[tuple(key) if isinstance(key, list) else key]
    if "newshape" in settings or "axes" in settings:
        settings = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    return Operation(function, word, settings, name)
