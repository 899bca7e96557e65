"""keras.regularizers."""
from snug._lazy import tf
from snug.keras import _serial


class Regularizer:
    _keras_module = "keras.regularizers"

    def __call__(self, x):
        return 0.0

    def get_config(self):
        return {}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


class L1L2(Regularizer):
    def __init__(self, l1=0.0, l2=0.0):
        self.l1, self.l2 = float(l1 or 0.0), float(l2 or 0.0)

    def __call__(self, x):
        total = 0.0
        if self.l1:
            total = total + self.l1 * tf.reduce_sum(tf.abs(x))
        if self.l2:
            total = total + self.l2 * tf.reduce_sum(tf.square(x))
        return tf.convert_to_tensor(total)

    def get_config(self):
        return {"l1": self.l1, "l2": self.l2}


class L1(L1L2):
    def __init__(self, l1=0.01, l=None):  # noqa: E741 (as Keras 2 called it)
        super().__init__(l1=l1 if l is None else l)

    def get_config(self):
        return {"l1": self.l1}


class L2(L1L2):
    def __init__(self, l2=0.01, l=None):  # noqa: E741 (as Keras 2 called it)
        super().__init__(l2=l2 if l is None else l)

    def get_config(self):
        return {"l2": self.l2}


class OrthogonalRegularizer(Regularizer):
    def __init__(self, factor=0.01, mode="rows"):
        self.factor, self.mode = factor, mode

    def __call__(self, x):
        x = tf.math.l2_normalize(x, axis=1 if self.mode == "rows" else 0)
        product = tf.matmul(x, x, transpose_b=True) if self.mode == "rows" else tf.matmul(x, x, transpose_a=True)
        size = product.shape[0]
        off = product * (1.0 - tf.eye(size, dtype=product.dtype))
        return self.factor * 0.5 * tf.reduce_sum(tf.abs(off)) / (size * (size - 1.0) / 2.0)

    def get_config(self):
        return {"factor": self.factor, "mode": self.mode}


l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer


def get(identifier):
    if identifier is None or callable(identifier) and not isinstance(identifier, type):
        return identifier
    if isinstance(identifier, type):
        return identifier()
    if isinstance(identifier, dict):
        return _serial.deserialize_keras_object(identifier)
    found = {"l1": L1, "l2": L2, "l1_l2": L1L2, "L1": L1, "L2": L2, "L1L2": L1L2}.get(identifier)
    if found is None:
        raise ValueError(f"Could not interpret regularizer identifier: {identifier}")
    return found()


def serialize(regularizer):
    return _serial.serialize_keras_object(regularizer)


def deserialize(config, custom_objects=None):
    return _serial.deserialize_keras_object(config, custom_objects)
