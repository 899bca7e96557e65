"""tf.compat.v1.data: elements of datasets as tensors of a graph. get_next() is an operation that takes one element at each run, from an
iterator that the session holds; its end is an OutOfRangeError. Without a graph it is the iterator itself."""
from snug import _graph, _nest, _structure
from snug import data as _data
from snug._lazy import tf


def __getattr__(name):
    return getattr(_data, name)


class Iterator:
    """dataset is None until one is given by make_initializer; one-shot iterators begin by themselves."""

    def __init__(self, spec, dataset=None, one_shot=False):
        self.element_spec, self._dataset, self._one_shot = spec, dataset, one_shot
        self._initializer = None

    @staticmethod
    def from_structure(output_types, output_shapes=None, shared_name=None, output_classes=None):
        types = _nest.flatten(output_types)
        shapes = [None] * len(types) if output_shapes is None else _structure.flatten_to(
            _structure.template(output_types), output_shapes, "output_shapes")
        specs = [tf.TensorSpec(shape, kind) for kind, shape in zip(types, shapes)]
        return Iterator(_nest.pack_sequence_as(output_types, specs) if _nest.is_nested(output_types) else specs[0])

    @property
    def initializer(self):
        if self._one_shot or self._dataset is None:
            raise ValueError("Iterator does not have an initializer.")
        if self._initializer is None:
            self._initializer = self.make_initializer(self._dataset)
        return self._initializer

    def make_initializer(self, dataset, name=None):
        return _graph.Operation("MakeIterator", _Begin(self, dataset), name=name or "MakeIterator")

    def get_next(self, name=None):
        op = _graph.Operation("IteratorGetNext", _Next(self), name=name or "IteratorGetNext")
        specs = _nest.flatten(self.element_spec)
        tensors = [_graph.GraphTensor(op, i, spec.shape, spec.dtype) for i, spec in enumerate(specs)]
        return _nest.pack_sequence_as(self.element_spec, tensors) if _nest.is_nested(self.element_spec) else tensors[0]

    output_types = property(lambda self: get_output_types(self))
    output_shapes = property(lambda self: get_output_shapes(self))


class _Begin:
    of_session = True

    def __init__(self, iterator, dataset):
        self.iterator, self.dataset = iterator, dataset

    def __call__(self, session):
        session._slots[self.iterator] = iter(self.dataset)


class _Next:
    of_session = True

    def __init__(self, iterator):
        self.iterator = iterator

    def __call__(self, session):
        if self.iterator not in session._slots:
            if not self.iterator._one_shot:
                raise tf.errors.FailedPreconditionError(None, None, "GetNext() failed because the iterator has not been initialized. Ensure"
                                                        " that you have run the initializer operation for this iterator before getting the"
                                                        " next element.")
            session._slots[self.iterator] = iter(self.iterator._dataset)
        try:
            return next(session._slots[self.iterator])
        except StopIteration:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence") from None


def make_one_shot_iterator(dataset):
    return Iterator(dataset.element_spec, dataset, True) if _graph.active() else iter(dataset)


def make_initializable_iterator(dataset, shared_name=None):
    if not _graph.active():
        raise RuntimeError("dataset.make_initializable_iterator is not supported when eager execution is enabled. Use `for element in"
                           " dataset` instead.")
    return Iterator(dataset.element_spec, dataset)


def _each(of, what):
    spec = of.element_spec
    return _nest.map_structure(what, spec) if _nest.is_nested(spec) else what(spec)


def get_output_types(dataset_or_iterator):
    return _each(dataset_or_iterator, lambda spec: spec.dtype)


def get_output_shapes(dataset_or_iterator):
    return _each(dataset_or_iterator, lambda spec: spec.shape)


def get_output_classes(dataset_or_iterator):
    return _each(dataset_or_iterator, lambda spec: tf.Tensor)
