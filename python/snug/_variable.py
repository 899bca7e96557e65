"""tf.Variable over the extension's Variable: TensorFlow's signature, and updates of single elements."""
import enum

from snug import _C, _misc, _nest
from snug._given import default_only
from snug._lazy import graph, tf


class VariableSynchronization(enum.Enum):
    """How replicas would agree on a variable; there is one of them."""
    AUTO, NONE, ON_WRITE, ON_READ = range(4)


class VariableAggregation(enum.Enum):
    NONE, SUM, MEAN, ONLY_FIRST_REPLICA = range(4)


def _otherwise(value, dtype, trainable, name):
    """A variable of complex numbers or of text, which are the host's; None: of what the engine has."""
    if _C.is_tensor(value) and dtype is None:
        return None
    _, leaf = _nest.leading(value)
    kind = getattr(leaf, "dtype", None)
    if isinstance(leaf, (str, bytes)) or kind == tf.string:
        from snug._strings import StringVariable
        return StringVariable(value, name)
    if isinstance(leaf, complex) or getattr(kind, "kind", "") == "c" or getattr(kind, "is_complex", False) or (
            dtype is not None and tf.as_dtype(dtype).is_complex):
        from snug._complex import ComplexVariable
        return ComplexVariable(tf.convert_to_tensor(value, dtype=dtype), trainable is not False, name)
    return None


class Variable(_C.Variable):
    """A value that is kept and can be assigned to; an operand like a tensor."""

    @default_only("variable_def import_scope", "tf.Variable")
    def __new__(cls, initial_value=None, trainable=None, validate_shape=True, caching_device=None, name=None,
                variable_def=None, dtype=None, import_scope=None, constraint=None, synchronization=None, aggregation=None,
                shape=None, experimental_enable_variable_lifting=True):
        if cls is Variable and graph() is not None:
            return graph().GraphVariable(initial_value, trainable, name=name, dtype=dtype, constraint=constraint, shape=shape,
                                         validate_shape=validate_shape)
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` must be specified except when you are not providing"
                             " a `variable_def`. You provided neither.")
        if callable(initial_value) and not _C.is_tensor(initial_value):
            initial_value = initial_value()
        if isinstance(initial_value, _C.Tensor) and dtype is not None and initial_value.dtype != dtype:
            initial_value = tf.cast(initial_value, dtype)
        other = _otherwise(initial_value, dtype, trainable, name)
        if other is not None:
            return other
        self = cls.make(initial_value, dtype, True if trainable is None else bool(trainable),
                        _misc.scoped(name) if _misc.SCOPES else name)
        self.constraint = constraint
        if shape is not None and not tf.TensorShape(shape).is_compatible_with(self.shape):
            raise ValueError(f"In this `tf.Variable` creation, the initial value's shape ({self.shape}) is not compatible with the"
                             f" explicitly supplied `shape` argument ({shape}).")
        return self

    constraint = None
    synchronization = aggregation = None

    @property
    def initial_value(self):
        return self.read_value()

    @property
    def handle(self):
        return self

    @property
    def op(self):
        return self

    def get_shape(self):
        return self.shape

    def set_shape(self, shape):
        self.shape.assert_is_compatible_with(shape)

    def initialized_value(self):
        return self.read_value()

    def is_initialized(self, name=None):
        return tf.constant(True)

    def eval(self, session=None):
        return self.numpy()

    def count_up_to(self, limit):
        """The value before it grows by one, as far as the limit."""
        before = self.read_value()
        if int(before) >= int(limit):
            raise tf.errors.OutOfRangeError(None, None, f"Reached limit of {int(limit)}")
        self.assign_add(1)
        return before

    def __copy__(self):
        return Variable(self.read_value(), trainable=self.trainable, name=self.name[:-2])

    def __deepcopy__(self, memo):
        made = memo[id(self)] = Variable(self.numpy(), trainable=self.trainable, name=self.name[:-2], dtype=self.dtype)
        return made

    def __reduce__(self):
        return _again, (self.numpy(), self.trainable, self.name[:-2], self.dtype)

    def __getitem__(self, key):
        return _C.index_of_variable(self, key)

    # --- single elements --------------------------------------------------------------------------
    def _by_rows(self, slices, how):
        indices = tf.convert_to_tensor(slices.indices)
        return self.assign(how(self.read_value(), indices[..., None], slices.values))

    def scatter_update(self, sparse_delta, use_locking=False, name=None):
        return self._by_rows(sparse_delta, tf.tensor_scatter_nd_update)

    def scatter_add(self, sparse_delta, use_locking=False, name=None):
        return self._by_rows(sparse_delta, tf.tensor_scatter_nd_add)

    def scatter_sub(self, sparse_delta, use_locking=False, name=None):
        return self._by_rows(sparse_delta, tf.tensor_scatter_nd_sub)

    def scatter_max(self, sparse_delta, use_locking=False, name=None):
        return self._by_rows(sparse_delta, tf.tensor_scatter_nd_max)

    def scatter_min(self, sparse_delta, use_locking=False, name=None):
        return self._by_rows(sparse_delta, tf.tensor_scatter_nd_min)

    def scatter_nd_update(self, indices, updates, name=None):
        return self.assign(tf.tensor_scatter_nd_update(self.read_value(), indices, updates))

    def scatter_nd_add(self, indices, updates, name=None):
        return self.assign(tf.tensor_scatter_nd_add(self.read_value(), indices, updates))

    def scatter_nd_sub(self, indices, updates, name=None):
        return self.assign(tf.tensor_scatter_nd_sub(self.read_value(), indices, updates))

    def sparse_read(self, indices, name=None):
        return tf.gather(self.read_value(), indices)

    def gather_nd(self, indices, name=None):
        return tf.gather_nd(self.read_value(), indices)


def _again(value, trainable, name, dtype):
    return Variable(value, trainable=trainable, name=name, dtype=dtype)


def part(place, how):
    """variable[key].assign and its like: by the flat positions of the part."""
    variable, key = place
    change = {"assign": "tensor_scatter_nd_update", "assign_add": "tensor_scatter_nd_add",
              "assign_sub": "tensor_scatter_nd_sub"}[how]

    def assign(value, use_locking=None, name=None, read_value=True):
        positions = tf.reshape(tf.range(variable.shape.num_elements()), variable.shape)[key]
        old = tf.reshape(variable.read_value(), [-1])
        new = tf.broadcast_to(tf.convert_to_tensor(value, dtype=variable.dtype), positions.shape)
        made = getattr(tf, change)(old, tf.reshape(positions, [-1, 1]), tf.reshape(new, [-1]))
        return variable.assign(tf.reshape(made, variable.shape))
    return assign


class IndexedSlices:
    """Rows of a tensor that is not there as a whole: what gradients of lookups in variables are."""

    def __init__(self, values, indices, dense_shape=None):
        self.values = values
        self.indices = indices
        self.dense_shape = dense_shape

    dtype = property(lambda self: self.values.dtype)
    device = property(lambda self: self.values.device)
    name = property(lambda self: self.values.name)

    @property
    def shape(self):
        from snug._types import TensorShape
        return TensorShape([None] * self.values.shape.rank if self.dense_shape is None else _C.convert_to_tensor(
            self.dense_shape).numpy().tolist())

    def get_shape(self):
        return self.shape

    def __neg__(self):
        return self.with_values(-self.values)

    def with_values(self, values):
        return IndexedSlices(values, self.indices, self.dense_shape)

    def __tf_tensor__(self, dtype=None, name=None):
        """All rows; those that come several times are added up. By this row: optimizers know it, and clip and square rows before they add."""
        if self.dense_shape is None:
            raise ValueError("Tensor conversion requested for IndexedSlices for which dense_shape is not known")
        made = tf.math.unsorted_segment_sum(self.values, self.indices, self.dense_shape[0])
        return made if dtype is None else tf.cast(made, dtype)

    def __str__(self):
        shape = "" if self.dense_shape is None else f", dense_shape={self.dense_shape!s}"
        return f"IndexedSlices(indices={self.indices!s}, values={self.values!s}{shape})"

    __repr__ = __str__


def slices_of(gradient, parts):
    """The gradient as IndexedSlices of its parts, [(values, indices)], one behind the other."""
    tail = list(gradient.shape[1:])
    values = [tf.reshape(v, [-1] + tail) for v, _ in parts]
    indices = [tf.reshape(i, [-1]) for _, i in parts]
    if len({i.dtype.name for i in indices}) > 1:
        indices = [tf.cast(i, tf.int64) for i in indices]
    join = lambda each: each[0] if len(each) == 1 else tf.concat(each, 0)
    return IndexedSlices(join(values), join(indices), tf.constant(list(gradient.shape), dtype=tf.int32))
