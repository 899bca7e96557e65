"""rejection_resample, make_batched_features_dataset, older names of tf.data.experimental, buckets padded to their boundary."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset, experimental = tf.data.Dataset, tf.data.experimental
labels = (np.random.RandomState(0).rand(3000) < 0.1).astype("int32")
d = Dataset.from_tensor_slices((np.arange(3000, dtype="float32"), labels))
for name, known in (("known", [0.9, 0.1]), ("counted", None)):
    r = d.rejection_resample(lambda x, y: y, target_dist=[0.5, 0.5], initial_dist=known, seed=3)
    check(name, [str(s) for s in tf.nest.flatten(r.element_spec)])
    kept = [int(c) for c, (x, y) in r if int(c) == int(y)]
    check(name + " share", bool(0.4 < np.mean(kept) < 0.6 and len(kept) > 200))
one = Dataset.range(4).rejection_resample(lambda x: tf.constant(0), [1.0], [1.0])
check("all", [(int(c), int(x)) for c, x in one])
check("applied", [int(x) for c, x in Dataset.range(4).apply(experimental.rejection_resample(lambda x: 0, [1.0], [1.0]))])

lengths = Dataset.from_generator(lambda: ([1] * n for n in (1, 2, 3, 5, 6, 7)), output_signature=tf.TensorSpec([None], tf.int32))
buckets = lengths.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [4, 8], [2, 2, 2], pad_to_bucket_boundary=True)
check("buckets", list(buckets))
check("buckets spec", buckets.element_spec.shape)
raises((tf.errors.InvalidArgumentError, tf.errors.InternalError), lambda: list(lengths.bucket_by_sequence_length(
    lambda x: tf.shape(x)[0], [2, 4], [2, 2, 2], pad_to_bucket_boundary=True)))

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.tfrecord")
    with tf.io.TFRecordWriter(path) as file:
        for i in range(5):
            file.write(tf.train.Example(features=tf.train.Features(feature={
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, i + 0.5])),
                "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 2]))})).SerializeToString())
    features = {"x": tf.io.FixedLenFeature([2], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    made = experimental.make_batched_features_dataset(path, 2, features, label_key="y", num_epochs=1, shuffle=False)
    check("features", [(x["x"], y) for x, y in made])
    texts = tf.data.TFRecordDataset(path).batch(3)
    check("parsed", [p["x"] for p in texts.apply(experimental.parse_example_dataset(features))])
    d = Dataset.range(6)
    check("map_and_batch", list(d.apply(experimental.map_and_batch(lambda x: x * 2, 4))))
    check("interleaved", sorted(int(x) for x in d.apply(experimental.parallel_interleave(lambda x: Dataset.from_tensors(x).repeat(2), 2))))
    check("dtypes", [tf.dtypes.string, tf.dtypes.float32, tf.dtypes.int64])
    d.map(lambda x: {"a": x}).save(os.path.join(folder, "saved"))
    check("saved", len(Dataset.load(os.path.join(folder, "saved"))))
