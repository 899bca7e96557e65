"""keras.layers.HashedCrossing: whole numbers and texts, shapes, one_hot, and in a pipeline."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from parity import check, raises

numbers, others = np.array([1, 5, 7, -9, 123456789012]), np.array([[2], [3], [-9], [0], [7]])
texts = tf.constant(["A", "B", "a long text of more than thirty-two bytes", "", "é"])
for bins in (5, 1000):
    layer = keras.layers.HashedCrossing(bins)
    check(f"numbers {bins}", layer((tf.constant(numbers), tf.constant(others[:, 0]))))
    check(f"columns {bins}", layer((others, others + 1)))
    check(f"texts and numbers {bins}", layer((texts, tf.constant(numbers, tf.int64))))
    check(f"three {bins}", layer((texts, texts, tf.constant(numbers))))
check("one", keras.layers.HashedCrossing(50)((tf.constant("A"), tf.constant(101))))
check("one_hot", keras.layers.HashedCrossing(4, output_mode="one_hot")((texts, tf.constant(numbers))))
check("one_hot columns", keras.layers.HashedCrossing(4, output_mode="one_hot")((others, others)))
check("config", {k: v for k, v in keras.layers.HashedCrossing(4).get_config().items() if k in ("num_bins", "output_mode")})
layer = keras.layers.HashedCrossing(100)
data = tf.data.Dataset.from_tensor_slices((texts, tf.constant(numbers))).batch(2).map(lambda t, n: layer((t, n)))
check("in a pipeline", [batch.numpy() for batch in data])
raises(ValueError, lambda: keras.layers.HashedCrossing(4, output_mode="count"))
raises(ValueError, lambda: keras.layers.HashedCrossing(4)((texts,)))
raises(ValueError, lambda: keras.layers.HashedCrossing(4)((tf.constant([1.0]), tf.constant([2.0]))))
