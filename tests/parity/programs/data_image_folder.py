"""keras.utils.image_dataset_from_directory, img_to_array."""
import numpy as np
import tensorflow as tf
from parity import check, raises

Dataset = tf.data.Dataset

import os
import tempfile

from tensorflow import keras

with tempfile.TemporaryDirectory() as folder:
    for c, name in enumerate(("cats", "dogs")):
        os.makedirs(os.path.join(folder, name))
        for i in range(3):
            value = np.full((6, 8, 3), 40 * c + 10 * i, np.uint8)
            tf.io.write_file(os.path.join(folder, name, f"{i}.png"), tf.io.encode_png(value))
    d = keras.utils.image_dataset_from_directory(folder, image_size=(4, 4), batch_size=4, shuffle=False, verbose=False)
    check("classes", d.class_names)
    check("spec", repr(d.element_spec))
    check("files", [os.path.basename(p) for p in d.file_paths])
    check("pictures", [(p[:, 0, 0, 0], l) for p, l in d], 1e-3)
    one_hot = keras.utils.image_dataset_from_directory(folder, label_mode="categorical", image_size=(2, 2), batch_size=6,
                                                       shuffle=False, verbose=False)
    check("categorical", [l for _, l in one_hot])
    binary = keras.utils.image_dataset_from_directory(folder, label_mode="binary", image_size=(2, 2), batch_size=6,
                                                      shuffle=False, verbose=False)
    check("binary", [l for _, l in binary])
    plain = keras.utils.image_dataset_from_directory(folder, labels=None, image_size=(2, 2), batch_size=None, shuffle=False,
                                                     color_mode="grayscale", verbose=False)
    check("no labels", [p.shape for p in plain])
    parts = [keras.utils.image_dataset_from_directory(folder, validation_split=0.34, subset=s, seed=3, image_size=(2, 2),
                                                      batch_size=10, verbose=False) for s in ("training", "validation")]
    check("split", [sum(int(l.shape[0]) for _, l in p) for p in parts])
    check("parts differ", len(set(parts[0].file_paths) & set(parts[1].file_paths)))
    shuffled = keras.utils.image_dataset_from_directory(folder, image_size=(2, 2), batch_size=6, seed=1, verbose=False)
    check("all labels", sorted(int(v) for _, l in shuffled for v in l))
    check("array", keras.utils.img_to_array(np.arange(12).reshape(2, 2, 3)))
    check("grey", keras.utils.img_to_array(np.arange(4).reshape(2, 2)))
    raises(ValueError, lambda: keras.utils.image_dataset_from_directory(os.path.join(folder, "cats"), verbose=False))
