#!/usr/bin/env python3
"""Arguments act as TensorFlow's do, or are refused by name; what other libraries hold is taken by position."""
import array
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np

import snug.tensorflow as tf2

tf, keras = tf2.compat.v1, tf2.keras


# --- derivatives and variables of TensorFlow 1 ----------------------------------------------------------------
class Graphs(unittest.TestCase):
    def setUp(self):
        graph = tf.Graph()
        for context in (graph.as_default(), tf.Session(graph=graph)):
            entered = context.__enter__()
            self.addCleanup(context.__exit__, None, None, None)
        self.session = entered

    def run_all(self, tensors, feed=None):
        self.session.run(tf.global_variables_initializer())
        return [None if t is None else self.session.run(t, feed).tolist() for t in tensors]

    def test_gradients_stop_where_they_are_told_to(self):
        x = tf.constant(3.0)
        y = x * x
        self.assertEqual(self.run_all(tf.gradients(y * x, [x]) + tf.gradients(y * x, [x], stop_gradients=[y])), [27.0, 9.0])
        a = tf.constant(0.0)
        b = 2 * a
        self.assertEqual(self.run_all(tf.gradients(a + b, [a, b]) + tf.gradients(a + b, [a, b], stop_gradients=[a, b])), [3.0, 1.0, 1.0, 1.0])

    def test_a_variable_and_a_placeholder_that_are_stopped_at(self):
        w, p = tf.Variable(2.0), tf.placeholder(tf.float32, [])
        y = w * w
        z = y * w + w
        found = tf.gradients(z, [w, y], stop_gradients=[w]) + tf.gradients(z, [w]) + tf.gradients(z, [w, y], stop_gradients=y)
        self.assertEqual(self.run_all(found), [13.0, 2.0, 13.0, 5.0, 2.0])
        self.assertEqual(self.run_all(tf.gradients(p * p * p, [p], stop_gradients=[p]), {p: 3.0}), [27.0])

    def test_what_is_not_reached_has_no_gradient(self):
        x, z = tf.constant(3.0), tf.constant(1.0)
        whole = tf.cast(tf.cast(x, tf.int32), tf.float32)
        self.assertEqual(self.run_all(tf.gradients(whole * z, [x, z])), [None, 3.0])
        self.assertEqual(tf.gradients(tf.stop_gradient(x) * z, x), [None])
        self.assertEqual(self.run_all(tf.gradients(x * x, [x, z], unconnected_gradients="zero")), [6.0, 0.0])
        self.assertRaises(ValueError, tf.gradients, x * x, x, unconnected_gradients="nothing")
        self.assertEqual(self.run_all(tf.gradients([x * x, x * 2], [x], grad_ys=[tf.constant(10.0), tf.constant(1.0)])), [62.0])
        self.assertRaises(ValueError, tf.gradients, [x, z], [x], grad_ys=[x])
        v = tf.Variable(1.0)
        self.assertEqual([g for g, _ in tf.train.GradientDescentOptimizer(0.1).compute_gradients(x * 2.0, [v])], [None])

    def test_constraints_and_collections(self):
        v = tf.get_variable("v", [2], initializer=tf.constant_initializer(5.0), collections=["mine"], constraint=lambda w: tf.clip_by_value(w, -1.0, 1.0))
        self.assertEqual([len(c) for c in (tf.global_variables(), tf.trainable_variables(), tf.get_collection("mine"))], [0, 1, 1])
        step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(v))
        self.session.run(v.initializer)
        self.session.run(step)
        self.assertEqual(self.session.run(v).tolist(), [1.0, 1.0])
        local = tf.Variable(3.0, collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
        self.session.run(tf.local_variables_initializer())
        self.assertEqual(self.session.run(local), 3.0)

    def test_custom_getters(self):
        def outer(getter, name, *args, **kwargs):
            kwargs["trainable"] = False
            return getter("a/" + name, *args, **kwargs)
        with tf.variable_scope("s", custom_getter=outer):
            with tf.variable_scope("t", custom_getter=lambda getter, name, *args, **kwargs: getter(name + "_b", *args, **kwargs)):
                self.assertEqual(tf.get_variable("v", [2]).name, "a/s/t/v_b:0")
        self.assertEqual(tf.trainable_variables(), [])

    def test_scopes_hand_their_settings_on(self):
        with tf.variable_scope("s", dtype=tf.float64, constraint=tf.abs, regularizer=lambda w: tf.reduce_sum(w)):
            v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
        self.assertEqual((v.dtype, v.constraint, len(tf.losses.get_regularization_losses())), (tf.float64, tf.abs, 1))
        with tf.variable_scope("s", reuse=True):
            self.assertRaisesRegex(ValueError, "specified shape", tf.get_variable, "v", [3])
            self.assertRaisesRegex(ValueError, "specified dtype", tf.get_variable, "v", [2], tf.float32)
            self.assertIs(tf.get_variable("v", [2], tf.float64), v)

    def test_what_has_one_value_is_refused_otherwise(self):
        for call in (lambda: tf.get_variable("v", [2], partitioner=lambda **kw: [2]), lambda: tf.Variable(1.0, import_scope="x"),
                     lambda: tf.cond(tf.constant(True), lambda: 1.0, lambda: 2.0, strict=True),
                     lambda: tf.train.Saver({}, sharded=True, allow_empty=True), lambda: tf.Session("grpc://there")):
            self.assertRaises(NotImplementedError, call)
        self.assertRaises(TypeError, tf.gradients, tf.constant(1.0), [], no_such_word=1)

    def test_losses(self):
        labels, zeros, weights = [1.0, 2.0], [0.0, 0.0], [0.0, 2.0]
        how = tf.losses.Reduction
        found = [tf.losses.mean_squared_error(labels, zeros, weights, reduction=r)
                 for r in (how.SUM_BY_NONZERO_WEIGHTS, how.MEAN, how.SUM, how.SUM_OVER_BATCH_SIZE)]
        self.assertEqual(self.run_all(found), [8.0, 4.0, 8.0, 4.0])
        self.assertAlmostEqual(self.run_all([tf.losses.softmax_cross_entropy([[1.0, 0.0]], [[1.0, 2.0]], label_smoothing=0.2)])[0], 1.2132617, 5)
        tf.losses.mean_squared_error(labels, zeros, loss_collection="others")
        self.assertEqual((len(tf.losses.get_losses()), len(tf.losses.get_losses(loss_collection="others"))), (5, 1))

    def test_a_saver_keeps_so_many(self):
        v = tf.Variable(1.0, name="v")
        self.session.run(v.initializer)
        with tempfile.TemporaryDirectory() as folder:
            saver = tf.train.Saver([v], max_to_keep=2, pad_step_number=True)
            for step in range(3):
                path = saver.save(self.session, os.path.join(folder, "m"), step)
            self.assertEqual(sorted(n for n in os.listdir(folder) if n.endswith(".npz")), ["m-00000001.npz", "m-00000002.npz"])
            self.assertEqual(tf.train.latest_checkpoint(folder), path)


# --- functions of TensorFlow 2 ----------------------------------------------------------------------------------
class Functions(unittest.TestCase):
    def test_back_prop_of_loops(self):
        x = tf2.constant([1.0, 2.0])
        loops = (lambda **kw: tf2.map_fn(lambda v: v * v, x, **kw), lambda **kw: tf2.scan(lambda a, v: a * v, x, **kw),
                 lambda **kw: tf2.foldl(lambda a, v: a * v, x, **kw), lambda **kw: tf2.while_loop(lambda v: v[0] < 9.0, lambda v: (v * v * 2.0,), [x], **kw)[0])
        for loop in loops:
            for there in (True, False):
                with tf2.GradientTape() as tape:
                    tape.watch(x)
                    y = loop(back_prop=there)
                self.assertEqual(tape.gradient(y, x) is not None, there)

    def test_map_fn_gives_what_it_is_said_to(self):
        x = tf2.constant([1, 2])
        self.assertEqual(tf2.map_fn(lambda v: 1, x, fn_output_signature=tf2.float64).dtype, tf2.float64)
        self.assertRaises(tf2.errors.InvalidArgumentError, tf2.map_fn, lambda v: v, x, fn_output_signature=tf2.float32)

    def test_case_and_split(self):
        both = [(tf2.constant(True), lambda: 1), (tf2.constant(True), lambda: 2)]
        self.assertEqual(tf2.case(both), 1)
        self.assertRaises(tf2.errors.InvalidArgumentError, tf2.case, both, exclusive=True)
        self.assertRaises(ValueError, tf2.split, tf2.range(4), 2, num=3)

    def test_the_tape_says_what_it_does_not_know(self):
        x, z = tf2.constant(1.0), tf2.constant([[1.0, 2.0]])
        with tf2.GradientTape(persistent=True) as tape:
            tape.watch([x, z])
            y = x * 2.0
            rows = tf2.ones((1, 3))
        self.assertIsNone(tape.gradient(y, z))
        self.assertEqual(tape.gradient(y, z, unconnected_gradients="zero").numpy().tolist(), [[0.0, 0.0]])
        self.assertEqual(tape.batch_jacobian(rows, z, unconnected_gradients=tf2.UnconnectedGradients.ZERO).shape, (1, 3, 2))
        self.assertRaises(ValueError, tape.gradient, y, x, unconnected_gradients="none at all")

    def test_refusals(self):
        x, ids = tf2.constant([1.0, 2.0]), tf2.constant([[0]])
        for call in (lambda: keras.ops.one_hot([0], 2, sparse=True), lambda: keras.ops.bincount([1], sparse=True),
                     lambda: tf2.gather_nd(x, ids, bad_indices_policy="IGNORE"), lambda: tf2.scatter_nd(ids, [1.0], [2], bad_indices_policy="IGNORE"),
                     lambda: tf2.nest.flatten([x], expand_composites=True), lambda: tf2.random.Generator.from_seed(1, alg="threefry"),
                     lambda: tf2.distribute.MirroredStrategy(["cpu:0", "cpu:1"]), lambda: tf2.data.Dataset.range(3).save("x", compression="GZIP"),
                     lambda: tf2.TensorArray(tf2.float32, 1, handle=x), lambda: keras.Input((2,), sparse=True),
                     lambda: keras.metrics.R2Score(class_aggregation=None),
                     lambda: keras.layers.StringLookup(sparse=True), lambda: keras.callbacks.BackupAndRestore("x", double_checkpoint=True),
                     lambda: keras.ops.vectorize(lambda v: v, signature="()->()"), lambda: tf2.io.encode_jpeg(tf2.zeros((8, 8, 3), tf2.uint8), x_density=72),
                     lambda: tf2.train.ExponentialMovingAverage(0.9, zero_debias=True)):
            with self.assertRaises((NotImplementedError, tf2.errors.UnimplementedError)) as raised:
                call()
            self.assertIn("not in Snug", str(raised.exception))

    def test_layers_take_no_words_of_others(self):
        layers = keras.layers
        for make in (lambda: layers.Dense(2, lora_rank=1), lambda: layers.Embedding(3, 2, lora_alpha=2)):
            with self.assertRaisesRegex(NotImplementedError, "lora_"):
                make()
        for make in (lambda: layers.Dense(2, use_cudnn=True), lambda: layers.Flatten(implementation=1), lambda: layers.SimpleRNN(2, use_cudnn=True),
                     lambda: layers.TextVectorization(oov_token="?"), lambda: layers.IntegerLookup(encoding="utf-8"),
                     lambda: keras.initializers.RandomNormal(dtype="float64")):
            self.assertRaises((TypeError, ValueError), make)

    def test_words_that_nobody_knows(self):
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        for call in (lambda: keras.callbacks.ReduceLROnPlateau(no_such=1), lambda: keras.callbacks.ModelCheckpoint("a.keras", no_such=1),
                     lambda: model.save_weights("a.weights.h5", no_such=1), lambda: keras.datasets.imdb.load_data(no_such=1),
                     lambda: tf2.Variable(1.0, no_such=1), lambda: keras.regularizers.L2(no_such=1), lambda: keras.Input((2,), no_such=1),
                     lambda: tf2.nest.map_structure(lambda v: v, 1, no_such=1), lambda: keras.random.SeedGenerator(1, no_such=1),
                     lambda: keras.initializers.RandomNormal(no_such=1), lambda: tf2.zeros_initializer(no_such=1),
                     lambda: keras.optimizers.schedules.CosineDecay(0.1, 10, no_such=1), lambda: keras.metrics.MeanSquaredError(no_such=1),
                     lambda: keras.layers.Dense(1).add_weight(shape=(1,), no_such=1), lambda: tf2.meshgrid([1], [2], no_such=1)):
            self.assertRaises(TypeError, call)

    def test_jpeg_says_what_it_holds(self):
        picture = tf2.zeros((8, 8, 3), tf2.uint8)
        self.assertRaises(tf2.errors.InvalidArgumentError, tf2.io.encode_jpeg, picture, format="grayscale")
        self.assertEqual(tf2.io.extract_jpeg_shape(tf2.io.encode_jpeg(picture, format="rgb"), output_type=tf2.int64).dtype, tf2.int64)

    def test_windows_are_interleaved_by_cycles_and_blocks(self):
        windows = tf2.data.Dataset.range(9).window(3)
        self.assertEqual([int(v) for v in windows.interleave(lambda w: w, cycle_length=2, block_length=2)], [0, 1, 3, 4, 2, 5, 6, 7, 8])

    def test_places_of_sparse_tensors_are_checked_unless_one_says_not(self):
        for rows, word in (([[1, 0], [0, 0]], "out of order"), ([[1, 0], [1, 0]], "repeated"), ([[0, 0], [5, 1]], "out of bounds")):
            sparse = tf2.SparseTensor(rows, [1, 2], [2, 2])
            self.assertRaisesRegex(tf2.errors.InvalidArgumentError, word, tf2.sparse.to_dense, sparse)
            if word != "out of bounds":
                self.assertEqual(tf2.sparse.to_dense(sparse, validate_indices=False).numpy()[tuple(rows[1])], 2)
        self.assertEqual(tf2.sparse.to_dense(tf2.SparseTensor([[0, 0], [1, 1]], [1, 2], [2, 2]), 9).numpy().tolist(), [[1, 9], [9, 2]])

    def test_masks_of_lookups_are_no_words(self):
        look = keras.layers.StringLookup(vocabulary=["a"], mask_token="", output_mode="count")
        self.assertEqual(look(tf2.constant([["a", "z", ""]])).numpy().tolist(), [[1, 1]])
        self.assertEqual(keras.layers.Hashing(3, output_mode="one_hot", dtype="float32")(tf2.constant([["a"]])).dtype, tf2.float32)

    def test_layers_are_cloned_by_the_function(self):
        x = keras.Input((2,))
        model = keras.Model(x, keras.layers.Dense(1, name="out")(keras.layers.Dense(3, name="mid")(x)))
        made = keras.models.clone_model(model, clone_function=lambda layer: keras.layers.Dense(layer.units, use_bias=False, name=layer.name))
        self.assertEqual([(layer.name, len(layer.weights)) for layer in made.layers[1:]], [("mid", 1), ("out", 1)])
        self.assertEqual(made(np.ones((1, 2), "f4")).shape, (1, 1))
        given, called = keras.Input((2,)), []
        made = keras.models.clone_model(model, given, call_function=lambda layer, *args: called.append(layer.name) or layer(*args))
        self.assertEqual((made.inputs[0] is given, called), (True, ["mid", "out"]))
        outer = keras.Sequential([keras.Input((2,)), model])
        names = []
        keras.models.clone_model(outer, clone_function=lambda layer: names.append(layer.name) or layer, recursive=True)
        self.assertEqual(names, ["mid", "out"])
        self.assertRaises(ValueError, keras.Input, (2,), tensor=np.ones(2))


class Weights(unittest.TestCase):
    @staticmethod
    def model(*names):
        made = keras.Sequential([keras.Input((2,))] + [keras.layers.Dense(2, name=n) for n in names])
        made.compile("sgd", "mse")
        return made

    def test_by_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path, new = os.path.join(folder, "m.h5"), os.path.join(folder, "m.weights.h5")
            first, second = self.model("a", "b"), self.model("b", "c", "d")
            first.save(path)
            first.save_weights(new)
            before = [w.numpy() for w in second.weights]
            second.load_weights(path, by_name=True)
            np.testing.assert_array_equal(second.layers[0].kernel.numpy(), first.layers[1].kernel.numpy())
            np.testing.assert_array_equal(second.layers[1].kernel.numpy(), before[2])
            self.assertRaisesRegex(ValueError, "legacy", first.load_weights, new, by_name=True)
            wide = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, use_bias=False, name="b")])
            self.assertRaisesRegex(ValueError, "Weight count mismatch", wide.load_weights, path, by_name=True)
            with warnings.catch_warnings(record=True):
                warnings.simplefilter("always")
                wide.load_weights(path, by_name=True, skip_mismatch=True)


# --- data of other libraries -------------------------------------------------------------------------------------
class Column:
    """As pandas' Series: indexed by labels, which are any order."""

    def __init__(self, values, labels=None):
        self.values, self.labels = np.asarray(values), list(range(len(values)) if labels is None else labels)
        self.shape, self.dtype, self.iloc = self.values.shape, self.values.dtype, self.values

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, key):
        if isinstance(key, (list, np.ndarray, slice)):
            keys = range(*key.indices(len(self))) if isinstance(key, slice) else key
            return Column([self[k] for k in keys], keys)
        return self.values[self.labels.index(key)]


class Frame:
    """As pandas' DataFrame: indexed by names of columns."""

    def __init__(self, **columns):
        self.columns, self.iloc = columns, None
        self.shape = (len(next(iter(columns.values()))), len(columns))

    def __array__(self, dtype=None, copy=None):
        return np.stack([np.asarray(c, dtype) for c in self.columns.values()], -1)

    def __getitem__(self, key):
        return self.columns[key]


class Lent:
    """As torch's tensors: by DLPack."""

    def __init__(self, values):
        self.values, self.shape = np.asarray(values), np.shape(values)

    def __dlpack__(self, **settings):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __getitem__(self, key):
        raise AssertionError("is not asked for its rows")


class Seen(keras.Model):
    def __init__(self):
        super().__init__()
        self.rows = []
        self.compile("sgd", "mse", run_eagerly=True)

    def call(self, x):
        return x

    def train_step(self, data):
        self.rows.append(tf2.nest.map_structure(lambda t: t.numpy().tolist(), data))
        return {"loss": 0.0}


class Foreign(unittest.TestCase):
    ORDER = [2, 0, 3, 1]

    def columns(self):
        """Rows 2, 0, 3, 1 of a table whose labels are those numbers."""
        a, y = np.array([10.0, 11.0, 12.0, 13.0])[self.ORDER], np.array([0.0, 1.0, 2.0, 3.0])[self.ORDER]
        return Column(a, self.ORDER), Column(y, self.ORDER)

    def fit(self, *args, **kwargs):
        model = Seen()
        model.fit(*args, batch_size=4, shuffle=kwargs.pop("shuffle", False), verbose=0, **kwargs)
        return model.rows

    def test_capsules_are_given_to_whoever_knows_later_versions(self):
        from snug import _arrays, _numpy
        capsule = _numpy.to_dlpack(tf.constant([1.0, 2.0]))
        held = _arrays._Capsule(capsule)
        self.assertIs(held.__dlpack__(max_version=(1, 0), dl_device=None, copy=None), capsule)
        self.assertIs(held.__dlpack__(dl_device=(1, 0)), capsule)
        with self.assertRaisesRegex(BufferError, "processor"):
            held.__dlpack__(dl_device=(2, 0))

    def test_columns_go_by_position(self):
        a, y = self.columns()
        want = [[12.0], [10.0], [13.0], [11.0]], [[2.0], [0.0], [3.0], [1.0]]
        self.assertEqual(self.fit(a, y), [want])
        self.assertEqual(self.fit(Frame(a=a), y), [want])
        self.assertEqual(self.fit({"a": a}, y), [({"a": want[0]}, want[1])])
        self.assertEqual(self.fit(a, y, sample_weight=y)[0][2], [2.0, 0.0, 3.0, 1.0])
        for x, label in zip(*self.fit(a, y, shuffle=True)[0]):
            self.assertEqual(x[0], label[0] + 10)
        self.assertEqual(self.fit(a, Column(np.array([1, 0, 1, 0]), self.ORDER), class_weight={0: 1.0, 1: 5.0})[0][2], [5.0, 1.0, 5.0, 1.0])

    def test_everywhere(self):
        a, y = self.columns()
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
        model.compile(keras.optimizers.SGD(0.0), "mae")
        self.assertEqual(model.predict(a, verbose=0).ravel().tolist(), a.values.tolist())
        for loss in (model.evaluate(a, y, verbose=0), model.train_on_batch(a, y), model.test_on_batch(a, y)):
            self.assertAlmostEqual(loss, 10.0, 5)
        self.assertEqual(model.predict_on_batch(a).ravel().tolist(), a.values.tolist())
        self.assertAlmostEqual(model.fit(a, y, validation_split=0.5, shuffle=False, verbose=0).history["val_loss"][0], 10.0, 5)
        for convert in (tf2.constant, tf2.convert_to_tensor):
            self.assertEqual(convert(y).numpy().tolist(), y.values.tolist())
        self.assertEqual([float(v) for v in tf2.data.Dataset.from_tensor_slices(y)], y.values.tolist())
        self.assertEqual([{k: float(v) for k, v in e.items()} for e in tf2.data.Dataset.from_tensor_slices({"y": y})][0], {"y": 2.0})
        look = keras.layers.StringLookup()
        look.adapt(Column(np.array(["b", "a", "b"], object), [2, 1, 0]))
        self.assertEqual(look.get_vocabulary(), ["[UNK]", "b", "a"])

    def test_series_and_words_go_by_position(self):
        words, a, y = keras.preprocessing.sequence, *self.columns()
        windows, targets = words.TimeseriesGenerator(a, y, length=1, batch_size=4)[0]
        self.assertEqual((windows.tolist(), targets.tolist()), ([[12.0], [10.0], [13.0]], [0.0, 3.0, 1.0]))
        how = {"vocabulary_size": 5, "window_size": 1, "negative_samples": 0, "shuffle": False}
        want = [[4, 1], [1, 4], [1, 3], [3, 1], [3, 2], [2, 3]]
        for given in ([4, 1, 3, 2], Column(np.array([4, 1, 3, 2]), self.ORDER)):
            self.assertEqual(words.skipgrams(given, **how)[0], want)
        table = Column(np.array([0.0, 0.0, 0.0, 2.0, 2.0]), [4, 3, 2, 1, 0])                # words 1 and 2 never, 3 and 4 always
        self.assertEqual(words.skipgrams([4, 1, 3, 2], sampling_table=table, **how)[0], [[4, 1], [3, 1], [3, 2]])

    def test_buffers_and_dlpack(self):
        rows, labels = np.arange(8.0, dtype="f4").reshape(4, 2), array.array("f", [1, 2, 3, 4])
        want = [(rows.tolist(), list(labels))]
        self.assertEqual(self.fit(memoryview(rows), labels), want)
        self.assertEqual(self.fit(Lent(rows), Lent(np.array(labels))), want)
        self.assertEqual([e.numpy().tolist() for e in tf2.data.Dataset.from_tensor_slices(Lent(rows))], rows.tolist())
        self.assertEqual(tf2.constant(labels).numpy().tolist(), list(labels))

    def test_objects_that_are_numbers(self):
        kinds = [([1, 2], "int64"), ([1, 2.5], "float64"), ([True, False], "bool"), ([np.float32(1.0), 2], "float64")]
        for values, dtype in kinds:
            made = tf2.constant(np.array(values, object))
            self.assertEqual((made.dtype.name, made.numpy().tolist()), (dtype, values))
        self.assertEqual(tf2.constant(np.array([1, 2], object), dtype=tf2.float32).dtype, tf2.float32)
        self.assertEqual(self.fit(np.array([[1, 2.0], [3, 4]], object), np.array([1, 0], object)), [([[1.0, 2.0], [3.0, 4.0]], [1, 0])])
        for values in ([1, None], [1, "a"], [[1], [2, 3]]):
            held = np.empty(2, object)
            held[:] = values
            self.assertRaisesRegex(ValueError, "Unsupported object type", tf2.constant, held)
            self.assertRaises(ValueError, self.fit, held, np.zeros(2))

    def test_epochs_of_so_many_steps_go_on_with_what_is_left(self):
        x = np.arange(10.0)[:, None]
        for steps, epochs, want in ((1, 4, [0, 4, 8, 0]), (2, 3, [0, 4, 8, 0, 4]), (3, 2, [0, 4, 8, 0, 4, 8])):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                rows = self.fit(x, x, steps_per_epoch=steps, epochs=epochs)
            self.assertEqual([r[0][0][0] for r in rows], want)
            self.assertEqual(len([w for w in told if "ran out of data" in str(w.message)]), int(steps == 2))

    def test_callbacks_are_told_once_for_steps_that_are_run_together(self):
        told, x = [], np.zeros((5, 1), "f4")
        note = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: told.append(-batch),
                                              on_train_batch_end=lambda batch, logs: told.append(batch))
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse", steps_per_execution=2)
        model.fit(x, x, batch_size=1, verbose=0, callbacks=[note])
        self.assertEqual(told, [0, 1, -2, 3, -4, 5])
        self.assertEqual(model.get_compile_config()["steps_per_execution"], 2)

    def test_epochs_that_are_validated(self):
        model, x = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]), np.zeros((2, 1), "f4")
        model.compile("sgd", "mse")
        for frequency, times in ((2, 2), ([1, 3, 4], 3)):
            found = model.fit(x, x, epochs=4, verbose=0, validation_data=(x, x), validation_freq=frequency).history
            self.assertEqual(len(found["val_loss"]), times)

    def test_weights_of_classes_and_of_rows_exclude_each_other(self):
        x = np.zeros((4, 1), "f4")
        self.assertRaisesRegex(ValueError, "same time", self.fit, x, x, class_weight={0: 1.0}, sample_weight=np.ones(4))

    def test_a_copy_is_asked_for_first(self):
        text = ("import snug.tensorflow as tf\n"
                "class Large:\n    nbytes, shape = 1 << 36, (1 << 33,)\n    def __array__(self, dtype=None, copy=None): raise SystemExit('was asked')\n"
                "try:\n    tf.data.Dataset.from_tensor_slices(Large())\nexcept tf.errors.ResourceExhaustedError as error:\n    print('refused', '64' in str(error))\n")
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "script.py")
            with open(script, "w") as f:
                f.write(text)
            done = subprocess.run([sys.executable, "-B", "-m", "snug", "--budget", "200MiB", script], capture_output=True, text=True)
        self.assertIn("refused", done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main()
