"""list_files, TextLineDataset, FixedLengthRecordDataset."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

import gzip
import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    for name, text in (("a.txt", "one\ntwo\n"), ("b.txt", "three\r\n\nfive"), ("c.csv", "1,2\n3,4\n")):
        with open(os.path.join(folder, name), "w", newline="") as f:
            f.write(text)
    paths = [os.path.join(folder, n) for n in ("a.txt", "b.txt")]
    files = Dataset.list_files(os.path.join(folder, "*.txt"), shuffle=False)
    check("files", [os.path.basename(p.decode()) for p in files.as_numpy_iterator()])
    check("both", sorted(os.path.basename(p.decode()) for p in Dataset.list_files(
        [os.path.join(folder, "a*"), os.path.join(folder, "c.csv")]).as_numpy_iterator()))
    check("lines", list(tf.data.TextLineDataset(paths)))
    check("one", list(tf.data.TextLineDataset(paths[0])))
    check("of files", list(files.flat_map(tf.data.TextLineDataset)))
    check("interleaved", list(files.interleave(tf.data.TextLineDataset, cycle_length=2)))
    check("skip", list(files.flat_map(lambda p: tf.data.TextLineDataset(p).skip(1))))
    csv = tf.data.TextLineDataset(os.path.join(folder, "c.csv"))
    check("numbers", list(csv.map(lambda l: tf.strings.to_number(tf.strings.split(l, ",")))))
    check("spec", repr(csv.element_spec))
    with gzip.open(os.path.join(folder, "z.gz"), "wb") as f:
        f.write(b"packed\nlines\n")
    check("gzip", list(tf.data.TextLineDataset(os.path.join(folder, "z.gz"), compression_type="GZIP")))
    with open(os.path.join(folder, "r.bin"), "wb") as f:
        f.write(b"HH" + bytes(range(8)) + b"F")
    fixed = tf.data.FixedLengthRecordDataset([os.path.join(folder, "r.bin")], 4, header_bytes=2, footer_bytes=1)
    check("fixed", list(fixed.map(lambda r: tf.io.decode_raw(r, tf.uint8))))
    raises(tf.errors.InvalidArgumentError, lambda: Dataset.list_files(os.path.join(folder, "none*"), shuffle=False))
    raises(tf.errors.NotFoundError, lambda: list(tf.data.TextLineDataset(os.path.join(folder, "missing"))))
