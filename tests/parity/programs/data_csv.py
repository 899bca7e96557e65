"""CSV: decode_csv, CsvDataset, make_csv_dataset."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset
check("one", tf.io.decode_csv("1,2.5,abc", [[0], [0.0], [""]]))
check("several", tf.io.decode_csv(["1,x", "2,y"], [[0], ["-"]]))
check("defaults", tf.io.decode_csv(",,", [[7], [0.5], ["none"]]))
check("quotes", tf.io.decode_csv('"a,b",3', [[""], [0]]))
check("delimiter", tf.io.decode_csv("1;2", [[0], [0]], field_delim=";"))
check("some", tf.io.decode_csv("1,2,3", [[0], [0]], select_cols=[0, 2]))
lines = Dataset.from_tensor_slices(["1,2.0,a", "3,4.0,b"])
check("map", list(lines.map(lambda l: tf.io.decode_csv(l, [[0], [0.0], [""]]))))
check("spec", repr(lines.map(lambda l: tf.io.decode_csv(l, [[0], [0.0], [""]])).element_spec))
check("features", list(lines.map(lambda l: tf.stack(tf.io.decode_csv(l, [[0.0], [0.0], [""]])[:2]))))
raises(tf.errors.InvalidArgumentError, lambda: tf.io.decode_csv("1,2", [[0]]))
raises(tf.errors.InvalidArgumentError, lambda: tf.io.decode_csv("a", [[0]]))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.csv")
    with open(path, "w") as f:
        f.write("age,fare,name,survived\n22,7.25,Ann,0\n38,71.5,Bob,1\n26,8.0,Cid,1\n")
    d = tf.data.experimental.CsvDataset(path, [tf.int32, tf.float32, tf.string, tf.int32], header=True)
    check("dataset", list(d))
    check("without some", list(tf.data.experimental.CsvDataset(path, [tf.int32, tf.string], header=True, exclude_cols=[1, 3])))
    made = tf.data.experimental.make_csv_dataset(path, batch_size=2, label_name="survived", num_epochs=1, shuffle=False)
    check("made", [({k: v for k, v in sorted(x.items())}, y) for x, y in made])
    some = tf.data.experimental.make_csv_dataset(path, batch_size=3, select_columns=["age", "survived"], num_epochs=1, shuffle=False)
    check("columns", [dict(sorted(x.items())) for x in some])
