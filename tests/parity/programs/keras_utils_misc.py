"""to_categorical, normalize, pad_sequences, set_random_seed, clear_session, backend, dtype policies."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check, raises

check("to_categorical", keras.utils.to_categorical([0, 2, 1]))
check("num_classes", keras.utils.to_categorical(np.array([[1], [0]]), num_classes=3))
check("normalize", keras.utils.normalize(np.array([[3.0, 4.0], [6.0, 8.0]])))
check("pad_sequences", keras.utils.pad_sequences([[1, 2, 3], [4], []], maxlen=4))
check("pad post", keras.preprocessing.sequence.pad_sequences([[1, 2, 3], [4]], padding="post", value=-1))
check("truncating", keras.utils.pad_sequences([[1, 2, 3, 4]], maxlen=2, truncating="post"))
check("floatx", keras.backend.floatx())
check("epsilon", keras.backend.epsilon())
check("image_data_format", keras.backend.image_data_format())
check("backend", keras.backend.backend())
keras.backend.clear_session()
check("names start again", keras.layers.Dense(1).name)
check("names go on", keras.layers.Dense(1).name)
keras.backend.clear_session()
check("and again", keras.layers.Dense(1).name)
d = keras.layers.Dense(2, dtype="float64", kernel_initializer="ones")
check("float64 layer", d(np.ones((1, 3))))
check("layer dtype", keras.layers.Dense(1).dtype)
check("get_custom_objects", isinstance(keras.utils.get_custom_objects(), dict))


@keras.utils.register_keras_serializable(package="mine")
class Twice(keras.layers.Layer):
    def call(self, x):
        return x * 2


check("registered", keras.utils.get_registered_name(Twice))
check("serialized", keras.layers.serialize(keras.layers.Dense(3, name="a"))["config"]["units"])
check("deserialized", keras.layers.deserialize(keras.layers.serialize(keras.layers.Dense(5))).units)
check("keras version", keras.__version__.split(".")[0])
v = keras.Variable(np.ones((2,), "float32"), name="v")
v.assign(v + 1.0)
check("keras variable", v.numpy())
check("counted", keras.utils.Progbar is not None)
check("is_keras_tensor", keras.backend.is_keras_tensor(keras.Input((2,))))
