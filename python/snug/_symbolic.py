"""Tensors that are only described: v1 graphs and Keras' functional models make them. A function of the table that gets one
calls its __snug_function__ instead of recording; operators are such functions."""
from snug._lazy import tf


class Symbolic:
    """Subclasses say __snug_function__(function, args, kwargs): what a function of the table is with it among its arguments."""
    __array_priority__ = 100

    def __add__(self, other):
        return tf.add(self, other)

    def __radd__(self, other):
        return tf.add(other, self)

    def __sub__(self, other):
        return tf.subtract(self, other)

    def __rsub__(self, other):
        return tf.subtract(other, self)

    def __mul__(self, other):
        return tf.multiply(self, other)

    def __rmul__(self, other):
        return tf.multiply(other, self)

    def __truediv__(self, other):
        return tf.truediv(self, other)

    def __rtruediv__(self, other):
        return tf.truediv(other, self)

    def __floordiv__(self, other):
        return tf.math.floordiv(self, other)

    def __rfloordiv__(self, other):
        return tf.math.floordiv(other, self)

    def __mod__(self, other):
        return tf.math.floormod(self, other)

    def __rmod__(self, other):
        return tf.math.floormod(other, self)

    def __pow__(self, other):
        return tf.pow(self, other)

    def __rpow__(self, other):
        return tf.pow(other, self)

    def __matmul__(self, other):
        return tf.matmul(self, other)

    def __rmatmul__(self, other):
        return tf.matmul(other, self)

    def __neg__(self):
        return tf.negative(self)

    def __abs__(self):
        return tf.abs(self)

    def __invert__(self):
        return tf.logical_not(self)

    def __and__(self, other):
        return tf.logical_and(self, other)

    def __or__(self, other):
        return tf.logical_or(self, other)

    def __lt__(self, other):
        return tf.less(self, other)

    def __le__(self, other):
        return tf.less_equal(self, other)

    def __gt__(self, other):
        return tf.greater(self, other)

    def __ge__(self, other):
        return tf.greater_equal(self, other)

    def __getitem__(self, key):
        return self.__snug_function__(_item, (self, key), {})

    def get_shape(self):
        return self.shape

    @property
    def ndim(self):
        return self.shape.rank


def _item(x, key):
    return x[key]
