"""keras.utils.timeseries_dataset_from_array."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

from tensorflow import keras

x = np.arange(12.0).reshape(12, 1)
d = keras.utils.timeseries_dataset_from_array(x, np.arange(12) * 10, sequence_length=3, batch_size=4)
check("windows", list(d))
check("stride", list(keras.utils.timeseries_dataset_from_array(x, None, 3, sequence_stride=3, batch_size=2)))
check("rate", list(keras.utils.timeseries_dataset_from_array(x, None, 3, sampling_rate=2, batch_size=10)))
check("part", list(keras.utils.timeseries_dataset_from_array(x, None, 2, start_index=3, end_index=7, batch_size=10)))
