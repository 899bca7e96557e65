"""keras.utils.text_dataset_from_directory and audio_dataset_from_directory: files below a folder, the name of a folder right below it
as the label."""
import os

from snug._given import refuse
from snug._lazy import tf
from snug.keras import _pictures


def text_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None, batch_size=32, max_length=None,
                                shuffle=True, seed=None, validation_split=None, subset=None, follow_links=False, format=None,
                                verbose=True):
    """As Keras has it: with the same seed the same files are in the same part."""
    refuse("text_dataset_from_directory", "format", None if format == "tf" else format, None)

    def text(path):
        read = tf.io.read_file(path)
        return read if max_length is None else tf.strings.substr(read, 0, max_length)

    def batches(d):
        return (d.batch(batch_size) if batch_size else d).prefetch(tf.data.AUTOTUNE)
    return _from_folder((directory, labels, label_mode, class_names, batch_size, shuffle, seed, validation_split, subset, follow_links,
                         verbose), ".txt", "text files", text, batches)


def audio_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None, batch_size=32, sampling_rate=None,
                                 output_sequence_length=None, ragged=False, shuffle=True, seed=None, validation_split=None, subset=None,
                                 follow_links=False, verbose=True):
    """WAV files of 16 bits, padded to the longest of a batch or to output_sequence_length."""
    if ragged:
        raise tf.errors.UnimplementedError(None, None, "Snug has no ragged tensors; batches are padded without ragged=True")
    if sampling_rate is not None:
        raise ImportError("To use the argument `sampling_rate`, you should install tensorflow_io, which Snug has not.")
    length = -1 if output_sequence_length is None else int(output_sequence_length)

    def batches(d):
        d = d.prefetch(tf.data.AUTOTUNE)
        return d if not batch_size else d.padded_batch(batch_size) if length < 0 else d.batch(batch_size)
    return _from_folder((directory, labels, label_mode, class_names, batch_size, shuffle, seed, validation_split, subset, follow_links,
                         verbose), ".wav", "audio files",
                        lambda path: tf.audio.decode_wav(tf.io.read_file(path), desired_samples=length)[0], batches)


def _from_folder(settings, ending, what, read, batches):
    import random
    directory, labels, label_mode, class_names, batch_size, shuffle, seed, validation_split, subset, follow_links, verbose = settings
    labels, label_mode = (None, None) if labels is None or label_mode is None else (labels, label_mode)
    _pictures.check_folder(labels, label_mode, shuffle, seed, validation_split, subset)
    seed = random.randrange(1_000_000) if seed is None else seed
    files, numbers, names = _files(os.fspath(directory), labels, class_names, follow_links, ending)
    if verbose:
        print(f"Found {len(files)} files" + ("." if labels is None else f" belonging to {len(names)} classes."))
    _pictures.check_binary(label_mode, names)
    if shuffle:
        files, numbers = _mixed(files, seed), _mixed(numbers, seed)
    made = []
    for part in ("training", "validation") if subset == "both" else (subset,):
        kept = _pictures.part_of(len(files), validation_split, part)
        if not files[kept]:
            raise ValueError(f"No {what} found in directory {directory}. Allowed format: {ending}")
        d = _paths(files[kept], numbers[kept], label_mode, len(names))
        if shuffle and not (subset == "both" and part == "validation"):
            d = d.shuffle(batch_size * 8 if batch_size else 1024, seed=seed)
        d = d.map(read if label_mode is None else lambda path, label: (read(path), label), num_parallel_calls=tf.data.AUTOTUNE)
        made.append(batches(d))
        made[-1].class_names = names if labels is not None else None
    return made if subset == "both" else made[0]


def _files(directory, labels, class_names, follow_links, ending):
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
            here = [os.path.join(root, name) for name in sorted(names) if name.lower().endswith(ending)]
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
