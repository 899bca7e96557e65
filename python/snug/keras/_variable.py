"""keras.Variable: a variable with Keras' names."""
from snug import _C
from snug._variable import Variable


scope = [None]      # what variables are read as within the call of a layer


class KerasVariable(Variable):
    regularizer = constraint = None
    overwrite_with_gradient = False
    _autocast = True    # whether a layer that computes in another type reads it in that
    _above = ""         # names of the layers around its own
    _path = None        # where it is given

    def __new__(cls, initializer=None, shape=None, dtype=None, trainable=True, autocast=True, aggregation="none", synchronization="auto", name=None):
        value = initializer
        if dtype in ("int", "float"):
            from snug.keras import config
            dtype = "int64" if dtype == "int" else config.floatx()
        if isinstance(value, str):
            from snug.keras import initializers
            value = initializers.get(value)
        if callable(value) and not _C.is_tensor(value):
            value = value(shape, dtype=dtype or "float32")
        made = super().__new__(cls, value, trainable=trainable, dtype=dtype, name=name)
        if not autocast:
            made._autocast = False
        return made

    @property
    def path(self):
        return self._path or self._above + _C.Variable.name.__get__(self)[:-2]

    @property
    def name(self):
        return self.path.rpartition("/")[2]

    @property
    def value(self):
        """The variable of the framework, which tapes know: it itself."""
        return self

    @property
    def dtype(self):
        dtype = _C.Variable.dtype.__get__(self)
        return scope[0].name if scope[0] is not None and self._autocast and dtype.is_floating else dtype.name

    def __repr__(self):
        from snug import _types
        try:
            value = f", value={self.numpy()}"
        except _types.Peek:         # in a trace it has none
            value = ""
        return f"<Variable path={self.path}, shape={tuple(self.shape)}, dtype={self.dtype}{value}>"

    __str__ = __repr__
