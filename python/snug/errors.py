"""tf.errors: the classes that operations raise. ResourceExhaustedError is snug.BudgetError and a MemoryError as well."""


class OpError(Exception):
    """What went wrong in an operation. node_def and op are there for the signature's sake: None."""
    _code = 2

    def __init__(self, node_def=None, op=None, message="", error_code=None, *args):
        super().__init__(message)
        self._message = message
        self._op = op
        self._node_def = node_def
        self._error_code = self._code if error_code is None else error_code

    @property
    def message(self):
        return self._message

    @property
    def op(self):
        return self._op

    @property
    def node_def(self):
        return self._node_def

    @property
    def error_code(self):
        return self._error_code

    @property
    def experimental_payloads(self):
        return {}

    def __str__(self):
        return self._message


class ResourceExhaustedError(OpError, MemoryError):
    """The budget or the memory does not suffice: the message has the numbers and the remedies."""
    _code = 8


class InaccessibleTensorError(OpError, TypeError, AttributeError):
    """A tensor that a tf.function has let out: it is a name within the trace, without a value."""
    _code = 3


def _make(name, code):
    made = type(name, (OpError,), {"_code": code, "__module__": __name__})
    globals()[name] = made
    globals()[_constant(name)] = code
    return made


def _constant(name):
    """InvalidArgumentError -> INVALID_ARGUMENT"""
    words = "".join("_" + c if c.isupper() else c.upper() for c in name.removesuffix("Error"))
    return words.lstrip("_")


for _name, _number in (("CancelledError", 1), ("UnknownError", 2), ("InvalidArgumentError", 3), ("DeadlineExceededError", 4),
                       ("NotFoundError", 5), ("AlreadyExistsError", 6), ("PermissionDeniedError", 7),
                       ("FailedPreconditionError", 9), ("AbortedError", 10), ("OutOfRangeError", 11),
                       ("UnimplementedError", 12), ("InternalError", 13), ("UnavailableError", 14), ("DataLossError", 15),
                       ("UnauthenticatedError", 16)):
    _make(_name, _number)


class _DataError(InvalidArgumentError):  # noqa: F821 (_make put it into this module)
    """By what tensors hold, not by their shapes: where Keras makes a ValueError of the others, this one stays."""


_DataError.__name__ = _DataError.__qualname__ = "InvalidArgumentError"


class _TracedError(InvalidArgumentError, ValueError):  # noqa: F821
    """By shapes and arguments while a function is traced, where TensorFlow has a ValueError; it is caught as either."""


class _TracedTypeError(InvalidArgumentError, TypeError):  # noqa: F821
    """The same by dtypes."""


_TracedError.__name__ = _TracedError.__qualname__ = "ValueError"
_TracedTypeError.__name__ = _TracedTypeError.__qualname__ = "TypeError"
RESOURCE_EXHAUSTED, OK = 8, 0
BudgetError = ResourceExhaustedError
