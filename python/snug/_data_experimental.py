"""tf.data.experimental: older names for stages, and data sets of CSV files."""
import builtins
import collections
import itertools

from snug._files import open_regular
from snug._lazy import tf
from snug.data import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, Options, TextLineDataset, _texts  # noqa: F401

OptimizationOptions = ThreadingOptions = DistributeOptions = Options


class AutoShardPolicy:
    AUTO, FILE, DATA, OFF, HINT = 0, 1, 2, -1, 3


def get_structure(dataset_or_iterator):
    return dataset_or_iterator.element_spec


def cardinality(dataset):
    return dataset.cardinality()


def prefetch_to_device(device, buffer_size=None):
    """Batches are on their way to the card while a step runs, wherever they come from: what is left is to make some of them early."""
    _device(device)
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


def copy_to_device(target_device, source_device="/cpu:0"):
    _device(target_device), _device(source_device)
    return lambda dataset: dataset


def _device(name):
    """A device that is not there is refused."""
    with tf.device(name):
        pass


def assert_cardinality(n):
    def check(dataset):
        def elements():
            count = 0
            for parts in dataset._raw():
                count += 1
                if count > n:
                    raise tf.errors.FailedPreconditionError(
                        None, None, f"Input dataset was expected to contain {n} elements but contained at least {n + 1} elements.")
                yield parts
            if count < n:
                raise tf.errors.FailedPreconditionError(
                    None, None, f"Input dataset was expected to contain {n} elements but contained only {count} elements.")
        return dataset._again(elements, "_AssertCardinalityDataset", int(n))
    return check


def CsvDataset(filenames, record_defaults, compression_type=None, buffer_size=None, header=False, field_delim=",",
               use_quote_delim=True, na_value="", select_cols=None, exclude_cols=None):
    if exclude_cols is not None:
        if select_cols is not None:
            raise ValueError("Cannot specify both `select_cols` and `exclude_cols`.")
        select_cols = [i for i in range(len(record_defaults) + len(exclude_cols)) if i not in exclude_cols]

    def lines(path):
        made = TextLineDataset(path, compression_type)
        return made.skip(1) if header else made
    files = Dataset.from_tensor_slices(tf.constant(_texts(filenames)))
    return files.flat_map(lines).map(lambda line: tuple(tf.io.decode_csv(
        line, record_defaults, field_delim, use_quote_delim, na_value, select_cols)))


_HEAD_BYTES = 2 << 20       # of a file's first rows, which say what its columns are called and hold


def _first_rows(path, n, delimiter, encoding, compression_type):
    """The first n rows of a CSV file; ValueError: it is none."""
    import csv
    import io
    import zlib

    from snug._gzip import gunzip
    if compression_type not in (None, "", "GZIP"):
        raise ValueError(f"compression_type ({compression_type}) is not supported where column names or types are read from the file")

    def lines(file):
        left = _HEAD_BYTES
        while line := file.readline(left + 1):
            left -= len(line)
            if left < 0:
                raise ValueError(f"'{path}': its first {n} rows have more than {_HEAD_BYTES} letters; give column_names and column_defaults")
            yield line

    with open_regular(path) as raw, gunzip(raw) if compression_type == "GZIP" else raw as data, \
            io.TextIOWrapper(data, encoding, "replace", newline="") as file:
        try:
            rows = list(itertools.islice(csv.reader(lines(file), delimiter=delimiter), n))
        except (csv.Error, EOFError, zlib.error) as error:
            raise ValueError(f"'{path}' is no table, or damaged: {error}") from None
    if not rows:
        raise ValueError(f"'{path}' is empty: it names no columns")
    return rows


def make_csv_dataset(file_pattern, batch_size, column_names=None, column_defaults=None, label_name=None, select_columns=None,
                     field_delim=",", use_quote_delim=True, na_value="", header=True, num_epochs=None, shuffle=True,
                     shuffle_buffer_size=10000, shuffle_seed=None, prefetch_buffer_size=None, num_parallel_reads=None, sloppy=False,
                     num_rows_for_inference=100, compression_type=None, ignore_errors=False, encoding="utf-8"):
    files = [parts[0].numpy() for parts in Dataset.list_files(file_pattern, shuffle=False)._raw()]
    rows, names = [], column_names
    if column_names is None or column_defaults is None:
        wanted = 0 if column_defaults is not None else num_rows_for_inference or 100
        first = column_names is None or bool(header)
        rows = _first_rows(files[0], first + wanted, field_delim, encoding, compression_type)
        names, rows = rows[0] if column_names is None else column_names, rows[first:]
    names = list(names)
    short = next((r for r in rows if len(r) < len(names)), None)
    if short is not None:
        raise ValueError(f"a row of {files[0]!r} has {len(short)} fields; there are {len(names)} columns")
    kept = [i for i, name in builtins.enumerate(names) if select_columns is None or name in select_columns or i in select_columns]
    defaults = column_defaults if column_defaults is not None else [_csv_default([r[i] for r in rows], na_value) for i in kept]
    made = CsvDataset(files, defaults, compression_type, None, header, field_delim, use_quote_delim, na_value,
                      None if len(kept) == len(names) else kept)
    made = made.ignore_errors() if ignore_errors else made
    kept = [names[i] for i in kept]
    if shuffle:
        made = made.shuffle(shuffle_buffer_size, shuffle_seed)
    made = made.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)

    def columns(*values):
        out = collections.OrderedDict(builtins.zip(kept, values))
        return out if label_name is None else (out, out.pop(label_name))
    return made.map(columns).prefetch(prefetch_buffer_size or 1)


def make_batched_features_dataset(file_pattern, batch_size, features, reader=None, label_key=None, reader_args=None, num_epochs=None,
                                  shuffle=True, shuffle_buffer_size=10000, shuffle_seed=None, prefetch_buffer_size=None,
                                  reader_num_threads=None, parser_num_threads=None, sloppy_ordering=False, drop_final_batch=False):
    from snug.data import TFRecordDataset
    files = Dataset.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    made = files.flat_map(lambda name: (reader or TFRecordDataset)(name, *(reader_args or ())))
    if shuffle:
        made = made.shuffle(shuffle_buffer_size, shuffle_seed)
    made = made.repeat(num_epochs).batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    made = made.map(lambda texts: tf.io.parse_example(texts, features), num_parallel_calls=parser_num_threads)
    if label_key is not None:
        made = made.map(lambda parsed: ({k: v for k, v in parsed.items() if k != label_key}, parsed[label_key]))
    return made.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def parse_example_dataset(features, num_parallel_calls=1, deterministic=None):
    return lambda dataset: dataset.map(lambda texts: tf.io.parse_example(texts, features), num_parallel_calls)


def map_and_batch(map_func, batch_size, num_parallel_batches=None, drop_remainder=False, num_parallel_calls=None):
    return lambda dataset: dataset.map(map_func, num_parallel_calls or AUTOTUNE).batch(batch_size, drop_remainder)


def parallel_interleave(map_func, cycle_length, block_length=1, sloppy=False, buffer_output_elements=None,
                        prefetch_input_elements=None):
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, num_parallel_calls=AUTOTUNE)


def rejection_resample(class_func, target_dist, initial_dist=None, seed=None):
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


def snapshot(path, compression="AUTO", reader_func=None, shard_func=None):
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def RandomDataset(seed=None):
    return Dataset.random(seed)


def from_list(elements, name=None):
    if not elements:
        raise ValueError("Invalid `elements`. `elements` should not be empty.")
    rows = [tf.nest.flatten(e) for e in elements]
    made = Dataset.from_tensor_slices(tuple(tf.stack(column) for column in builtins.zip(*rows)))
    return made.map(lambda *parts: tf.nest.pack_sequence_as(elements[0], list(parts)))


def at(dataset, index):
    if not 0 <= int(index) < len(dataset):
        raise tf.errors.OutOfRangeError(None, None, f"Index out of range [0, {len(dataset)}):{int(index)}")
    return next(iter(dataset.skip(int(index))))


def dense_to_ragged_batch(*args, **kwargs):
    return lambda dataset: dataset.ragged_batch(*args, **kwargs)


class TFRecordWriter:
    """Texts of a dataset as one file."""

    def __init__(self, filename, compression_type=None):
        self._path, self._options = filename, compression_type

    def write(self, dataset):
        with tf.io.TFRecordWriter(self._path, self._options) as file:
            for parts in dataset._raw():
                file.write(parts[0].numpy())


def get_next_as_optional(iterator):
    return iterator.get_next_as_optional()


def ignore_errors(log_warning=False):
    return lambda dataset: dataset.ignore_errors(log_warning)


def unbatch():
    return lambda dataset: dataset.unbatch()


def enumerate_dataset(start=0):
    return lambda dataset: dataset.enumerate(start)


def take_while(predicate):
    return lambda dataset: dataset.take_while(predicate)


def scan(initial_state, scan_func):
    return lambda dataset: dataset.scan(initial_state, scan_func)


def unique():
    return lambda dataset: dataset.unique()


def group_by_window(key_func, reduce_func, window_size=None, window_size_func=None):
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


def bucket_by_sequence_length(*args, **kwargs):
    return lambda dataset: dataset.bucket_by_sequence_length(*args, **kwargs)


def shuffle_and_repeat(buffer_size, count=None, seed=None):
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def get_single_element(dataset):
    return dataset.get_single_element()


def Counter(start=0, step=1, dtype=None):
    return Dataset.counter(start, step, dtype)


choose_from_datasets = Dataset.choose_from_datasets
sample_from_datasets = Dataset.sample_from_datasets


def save(dataset, path, compression=None, shard_func=None):
    dataset.save(path, compression, shard_func)


def load(path, element_spec=None, compression=None, reader_func=None):
    return Dataset.load(path, element_spec, compression, reader_func)


def _csv_default(values, na_value):
    """The narrowest type that holds all values of a column: int32, int64, float32 or text."""
    kinds = [(int, lambda v: -2 ** 31 <= v < 2 ** 31, tf.int32), (int, lambda v: -2 ** 63 <= v < 2 ** 63, tf.int64),
             (float, lambda v: True, tf.float32)]
    for read, fits, kind in kinds:
        try:
            if all(fits(read(v)) for v in values if v not in ("", na_value)):
                return tf.constant([0], dtype=kind)
        except ValueError:
            continue
    return tf.constant([""])
