"""keras.utils.text_dataset_from_directory: files of text below a folder, the name of a folder right below it as the label."""
import os

from snug._lazy import tf
from snug.keras import _pictures


def text_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None, batch_size=32, max_length=None,
                                shuffle=True, seed=None, validation_split=None, subset=None, follow_links=False, format=None,
                                verbose=True):
    """As Keras has it: with the same seed the same files are in the same part."""
    import random
    labels, label_mode = (None, None) if labels is None or label_mode is None else (labels, label_mode)
    _pictures.check_folder(labels, label_mode, shuffle, seed, validation_split, subset)
    seed = random.randrange(1_000_000) if seed is None else seed
    files, numbers, names = _files(os.fspath(directory), labels, class_names, follow_links)
    if verbose:
        print(f"Found {len(files)} files" + ("." if labels is None else f" belonging to {len(names)} classes."))
    _pictures.check_binary(label_mode, names)
    if shuffle:
        files, numbers = _mixed(files, seed), _mixed(numbers, seed)
    made = []
    for part in ("training", "validation") if subset == "both" else (subset,):
        kept = _pictures.part_of(len(files), validation_split, part)
        if not files[kept]:
            raise ValueError(f"No text files found in directory {directory}. Allowed format: .txt")
        d = _paths(files[kept], numbers[kept], label_mode, len(names))
        if shuffle and not (subset == "both" and part == "validation"):
            d = d.shuffle(batch_size * 8 if batch_size else 1024, seed=seed)
        d = _read(d, label_mode, max_length)
        made.append((d.batch(batch_size) if batch_size else d).prefetch(tf.data.AUTOTUNE))
        made[-1].class_names = names if labels is not None else None
    return made if subset == "both" else made[0]


def _files(directory, labels, class_names, follow_links):
    """Paths in the order of their names, the number of each one's class, the names of the classes."""
    folders = [""]
    if labels == "inferred":
        folders = sorted(f for f in os.listdir(directory) if os.path.isdir(os.path.join(directory, f)) and not f.startswith("."))
        if class_names is not None and not set(class_names) <= set(folders):
            raise ValueError("The `class_names` passed did not match the names of the subdirectories of the target directory."
                             f" Expected: {folders} (or a subset of it), but received: class_names={class_names}")
        folders = list(class_names) if class_names is not None else folders
    elif class_names is not None:
        raise ValueError(f'You can only pass `class_names` if `labels="inferred"`. Received: labels={labels}, and'
                         f" class_names={class_names}")
    files, numbers = [], []
    for number, folder in enumerate(folders):
        for root, _, names in sorted(os.walk(os.path.join(directory, folder), followlinks=follow_links), key=lambda found: found[0]):
            here = [os.path.join(root, name) for name in sorted(names) if name.lower().endswith(".txt")]
            files += here
            numbers += [number] * len(here)
    if labels in ("inferred", None):
        return files, numbers, folders
    if len(labels) != len(files):
        raise ValueError("Expected the lengths of `labels` to match the number of files in the target directory. len(labels) is"
                         f" {len(labels)} while we found {len(files)} files in directory {directory}.")
    return files, [int(n) for n in labels], [str(n) for n in sorted(set(labels))]


def _mixed(values, seed):
    import numpy as np
    order = np.random.RandomState(seed).permutation(len(values))
    return [values[i] for i in order]


def _paths(files, numbers, label_mode, classes):
    import numpy as np
    if label_mode is None:
        return tf.data.Dataset.from_tensor_slices(files)
    made = tf.data.Dataset.from_tensor_slices((files, np.array(numbers, "int32")))
    label = _pictures.label_of(label_mode, classes)
    return made if label is None else made.map(label)


def _read(paths, label_mode, max_length):
    def text(path):
        read = tf.io.read_file(path)
        return read if max_length is None else tf.strings.substr(read, 0, max_length)

    function = text if label_mode is None else lambda path, label: (text(path), label)
    return paths.map(function, num_parallel_calls=tf.data.AUTOTUNE)
