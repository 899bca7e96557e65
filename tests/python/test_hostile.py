#!/usr/bin/env python3
"""Values made to do harm, and failures in the middle of something: an exception, and everything works as before."""
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import snug
import snug.tensorflow as tf
from snug import _C, _tape, keras

SANITIZED = "SNUG_TEST_SANITIZED" in os.environ      # its own memory comes and goes
ERRORS = (ValueError, TypeError, IndexError, tf.errors.OpError)


class Sanitizers(unittest.TestCase):
    def test_they_are_there_where_they_are_said_to_be(self):
        """In the engine and in the allocator of the process: a suite that runs without them finds nothing."""
        with open(_C.__file__, "rb") as extension, open("/proc/self/maps", encoding="utf-8") as maps:
            self.assertEqual((b"__asan_report_store" in extension.read(), "libasan" in maps.read()), (SANITIZED, SANITIZED))


class Lists(unittest.TestCase):
    def test_an_empty_list_beside_a_number_is_not_rectangular(self):
        for value in ([[], 5], [[], 5.0], [[], np.int64(2)], [[], np.float64(2)], ([], True), [[[], []], 7], [[[]], np.ones(2)],
                      [[], np.ones(())], [[[]], [3]], [np.ones((2, 0)), 5]):
            with self.assertRaises(ValueError, msg=repr(value)):
                tf.constant(value)
        self.assertEqual(tf.constant([[[]], [[]]]).shape, (2, 1, 0))
        self.assertEqual(tf.constant([np.ones((0, 3)), np.ones((0, 3))]).shape, (2, 0, 3))

    def changing(self, change, n=50):
        """A list whose items change it when they are asked."""
        items = []

        class Item:
            def __array__(self, *args, **keywords):
                change(items)
                return np.ones(2, "f4")

            def __float__(self):
                change(items)
                return 1.0

            def __index__(self):
                change(items)
                return 1

        items += [Item() for _ in range(n)]
        return items

    def test_lists_that_change_while_they_are_read(self):
        x = tf.ones((2, 2))
        used = [tf.constant, tf.convert_to_tensor, lambda l: tf.stack(l), lambda l: tf.concat([x] + l, 0), lambda l: tf.reshape(x, l),
                lambda l: x + l, lambda l: tf.data.Dataset.from_tensor_slices(l), tf.Variable, lambda l: tf.transpose(x, l),
                lambda l: tf.reduce_sum(x, axis=l), lambda l: tf.add_n(l), lambda l: tf.fill(l, 1.0)]
        for change in (list.clear, lambda l: l.append(1), lambda l: l.__setitem__(slice(0, 40), []), lambda l: l.insert(0, x)):
            for use in used:
                try:
                    use(self.changing(change, 3))
                    use(self.changing(change))
                except ERRORS:
                    pass
        self.assertRaises(IndexError, tf.constant, self.changing(list.clear))

    def test_tensors_of_a_list_that_is_emptied_are_held(self):
        class Late:
            def __array__(self, *args, **keywords):
                items.clear()
                return np.full((2,), 7, "f4")

        for call in (tf.stack, lambda l: tf.concat(l, 0), tf.add_n):
            items = [tf.ones((2,)) * 2, Late()]
            try:
                result = call(items)
            except ERRORS:
                continue
            self.assertEqual(sorted(set(result.numpy().ravel().tolist()) - {9.0}), [] if call is tf.add_n else [2.0, 7.0])

    def test_an_array_that_is_none_is_not_asked_again(self):
        class Self:
            def __array__(self, *args, **keywords):
                return self

        class Lists_:
            def __array__(self, *args, **keywords):
                return [self]

        for value in (Self(), [Self()], Lists_(), [[Lists_()]]):
            with self.assertRaises(ValueError):
                tf.constant(value)

    def test_lists_whose_class_says_something_else(self):
        class More(list):
            def __len__(self):
                return 1000

        class Fewer(tuple):
            def __len__(self):
                return -1

        for kind in (More, Fewer):
            for call in (tf.floor, tf.constant, lambda l: tf.reshape(tf.ones((1,)), l), lambda l: tf.ones((1,)) + l, tf.stack,
                         lambda l: tf.concat([[1.0], l], 0)):
                for items in ([1], [1.0], ["a"], [[1]], [tf.ones(())], [np.ones(1)]):
                    try:
                        call(kind(items))
                    except ERRORS:
                        pass
            self.assertEqual(tf.floor(kind([1.5])).numpy().tolist(), [1.0])

    def test_lists_that_hold_themselves(self):
        lists, deep = [], "x"
        lists.append(lists)
        for _ in range(3000):
            deep = [deep]
        for value in (lists, [lists], deep):
            for call in (tf.constant, tf.Variable, keras.Variable, tf.strings.length, tf.strings.unicode_decode, tf.floor, tf.add_n):
                self.assertRaises((ValueError, TypeError, RecursionError, tf.errors.OpError), call, value, *(["UTF-8"] * (call is tf.strings.unicode_decode)))


class Messages(unittest.TestCase):
    def test_errors_are_of_their_class_whatever_bytes_they_quote(self):
        """Texts that are no UTF-8, and letters that the room for a message cuts."""
        errors = tf.errors
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.csv")
            with open(path, "wb") as file:
                file.write(b"a,b\n1,\xff\xff\n")
            table = tf.data.experimental.make_csv_dataset(path, 1, num_epochs=1, column_defaults=[[1.0], [1.0]])
            for call, kind in ((lambda: list(table), errors.InvalidArgumentError), (lambda: tf.io.read_file(b"none\xff"), errors.NotFoundError),
                               (lambda: tf.strings.to_number(tf.constant([b"\xff"])), errors.InvalidArgumentError),
                               (lambda: tf.strings.to_number(tf.constant(["a" + "\u00e9" * 300])), errors.InvalidArgumentError),
                               (lambda: tf.strings.to_number(tf.constant(["\u00e9" * 300])), errors.InvalidArgumentError)):
                self.assertRaises(kind, call)
            tf.print(tf.constant([b"\xff"]), tf.constant(b"\xff"), output_stream="file://" + path)
            with open(path, encoding="utf-8", errors="replace") as file:
                self.assertTrue(file.read().endswith('["\ufffd"] \ufffd\n'))


class Functions(unittest.TestCase):
    def test_a_scalar_has_no_classes(self):
        one, row = tf.constant(1.0), tf.constant(0)
        for loss in ("CategoricalCrossentropy", "CategoricalFocalCrossentropy", "CategoricalHinge", "CosineSimilarity", "KLDivergence"):
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "scalar", msg=loss):
                getattr(keras.losses, loss)()(one, one)
        for metric in ("CategoricalHinge", "ConcordanceCorrelation", "CosineSimilarity", "KLDivergence", "PearsonCorrelation"):
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "scalar", msg=metric):
                getattr(keras.metrics, metric)()(one, one)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "scalar"):
            keras.losses.CategoricalGeneralizedCrossEntropy()(row, one)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "scalar"):
            keras.metrics.Precision(top_k=1)(one, one)
        with self.assertRaises((ValueError, tf.errors.OpError)):
            keras.metrics.Precision(class_id=1)(one, one)
        self.assertEqual(float(keras.metrics.Precision()(one, one)), 1.0)

    def test_a_variable_is_made_of_a_value_alone(self):
        for make in (_C.Variable, lambda: _C.Variable.__new__(tf.Variable), lambda: object.__new__(tf.Variable), type("Own", (_C.Variable,), {})):
            with self.assertRaises(TypeError):
                make().dtype

    def test_settings_that_are_no_numbers(self):
        with self.assertRaises(tf.errors.InvalidArgumentError):
            tf.linalg.diag(tf.ones((2, 3)), num_cols=tf.ones((2, 3)))
        with self.assertRaises(tf.errors.InvalidArgumentError):
            tf.tensor_scatter_nd_update(tf.ones((3,)), tf.constant(1), tf.constant(5.0))

    def test_axes_that_a_tensor_does_not_have(self):
        rot90, ones = _C.function("keras.ops.rot90"), tf.ones
        for call in (lambda: rot90(ones((2, 2)), 1, (-3, 0)), lambda: rot90(ones((2, 2)), 1, (0, 40)), lambda: rot90(ones((2, 2)), 2, (0, 0)),
                     lambda: rot90(ones(()), 2), lambda: rot90(ones((2, 2)), 2, (2 ** 40, 0)), lambda: tf.image.rot90(ones((2,))),
                     lambda: tf.image.rot90(ones((2, 2)), 2), lambda: tf.searchsorted(ones((2, 3)), ones((3, 3))),
                     lambda: tf.tensordot(ones((1,) * 8), ones((1,) * 8), [[0, 0], [0, 0]]), lambda: tf.slice(ones((3,)), [1], [2 ** 63 - 1]),
                     lambda: tf.slice(ones((3,)), [-2 ** 63], [-1])):
            self.assertRaises(tf.errors.InvalidArgumentError, call)


class Layers(unittest.TestCase):
    def test_layers_are_applied_to_as_many_tensors_as_they_take(self):
        """Also where a layer calls another, and where a file says so."""
        x = tf.ones((2, 4, 4))
        for layer in (keras.layers.Dot(1), keras.layers.Subtract(), keras.layers.Attention(), keras.layers.AdditiveAttention()):
            for inner in (layer, keras.layers.TimeDistributed(layer)):
                for given in (x, [x], keras.Input((4, 4))):
                    with self.assertRaises((ValueError, tf.errors.OpError)):
                        inner(given)
        with self.assertRaises((ValueError, tf.errors.OpError)):
            keras.layers.Dot(1)([x, x, x])
        row = {"class_name": "Dot", "module": "keras.layers", "config": {"axes": 1}}
        first = {"class_name": "InputLayer", "module": "keras.layers", "config": {"batch_shape": [None, 4, 4]}}
        with self.assertRaises(ValueError):
            keras.models.model_from_json(json.dumps({"class_name": "Sequential", "module": "keras", "config": {"layers": [first, row]}}))


class Optimizers(unittest.TestCase):
    def test_a_weight_is_read_where_the_same_call_has_written_it(self):
        """Weight decay writes first; recordings of every length, so that arrays are exactly full at some of them."""
        for length in range(70):
            v, optimizer = tf.Variable([1.0, 2.0]), keras.optimizers.SGD(0.5, weight_decay=0.5)
            optimizer.build([v])
            with tf.GradientTape() as tape:
                x = v + 0.0
                for _ in range(length):
                    x = x + 1.0
                optimizer.apply_gradients([(tf.ones(2), v)])
                y = v * v
            np.testing.assert_array_equal(tape.gradient(y, v), [0.5, 2])

    def test_two_gradients_of_one_weight_are_not_one(self):
        v, optimizer = tf.Variable([1.0, 2.0]), keras.optimizers.SGD(0.5)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "add them up"):
            optimizer.apply_gradients([(tf.ones(2), v), (tf.ones(2), v)])
        optimizer.apply_gradients([(tf.ones(2), v)])
        np.testing.assert_array_equal(v, [0.5, 1.5])


class Chains(unittest.TestCase):
    def values(self, dataset):
        return [int(x) for x in dataset.as_numpy_iterator()]

    def test_long_chains_of_datasets(self):
        d = tf.data.Dataset.range(3)
        for _ in range(3000):
            d = d.map(lambda x: x + 1)
        self.assertEqual(self.values(d), [3000, 3001, 3002])
        d = tf.data.Dataset.range(3)
        for _ in range(2000):
            d = d.take(2)
        self.assertEqual(self.values(d.prefetch(1)), [0, 1])

    def test_chains_that_no_stack_holds_are_refused(self):
        d = tf.data.Dataset.range(3)
        with self.assertRaisesRegex(tf.errors.OpError, "at most 10000"):
            for _ in range(100000):
                d = d.take(2)
        self.assertEqual(self.values(tf.data.Dataset.range(2)), [0, 1])
        d = tf.data.Dataset.range(3)
        for _ in range(2000):
            d = d.batch(2).unbatch()
        with self.assertRaisesRegex(tf.errors.ResourceExhaustedError, "stack"):
            self.values(d)
        with self.assertRaisesRegex(tf.errors.OpError, "at most 1000000"):
            for _ in range(40):
                d = tf.data.Dataset.zip((d, d)).map(lambda a, b: a)


class Refused(unittest.TestCase):
    """A run that refuses its values has changed nothing."""
    x, good = np.linspace(0, 1, 64, dtype="f4").reshape(16, 4), np.zeros(16, "i4")
    bad = np.where(np.arange(16) == 3, 99, 0)

    def same(self, before, variables, message=None):
        for old, v in zip(before, variables):
            np.testing.assert_array_equal(old, v.numpy(), message)

    def test_a_bad_label_in_the_first_batch_of_fit(self):
        for optimizer in ("sgd", "adam", keras.optimizers.SGD(0.1, momentum=0.9)):
            model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="softmax")])
            model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
            model.fit(self.x, self.good, epochs=2, verbose=0)
            before = model.get_weights()
            self.assertRaises(tf.errors.InvalidArgumentError, model.fit, self.x, self.bad, batch_size=8, verbose=0, shuffle=False)
            self.same(before, model.weights)
            model.predict(self.x, verbose=0)
            with tempfile.TemporaryDirectory() as folder:
                model.save(os.path.join(folder, "m.keras"))
                model.save_weights(os.path.join(folder, "m.weights.h5"))
            loss = model.fit(self.x, self.good, verbose=0).history["loss"][0]
            self.assertTrue(np.isfinite(loss))

    def step(self, optimizer, first):
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        metrics, seen = [keras.metrics.Mean(), keras.metrics.SparseCategoricalAccuracy()], tf.Variable(0.0)

        def step(x, y):
            if first:
                seen.assign_add(1.0)
            with tf.GradientTape() as tape:
                p = model(x)
                value = loss(y, p)
            optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
            metrics[0].update_state(value)
            metrics[1].update_state(y, p)
            if not first:
                seen.assign_add(1.0)
        return step, lambda: model.variables + [seen] + metrics[0].variables + metrics[1].variables + list(optimizer.variables)

    def test_a_bad_label_in_steps_of_ones_own(self):
        for traced in (False, True):
            for first in (False, True):
                for trained in (False, True):
                    step, variables = self.step(keras.optimizers.Adam(), first)
                    call = tf.function(step) if traced else step
                    if trained:
                        call(self.x, self.good)
                    with self.assertRaises(tf.errors.InvalidArgumentError):
                        call(self.x, self.bad)
                        [v.numpy() for v in variables()]
                    [v.numpy() for v in variables()]
                    call(self.x, self.good)
                    [v.numpy() for v in variables()]

    def refuse(self, body, argument, shape=(4,)):
        v, w = tf.Variable(tf.zeros((4,))), tf.Variable(tf.ones(shape))
        call = tf.function(lambda x: body(v, w, x))
        with self.assertRaises(tf.errors.InvalidArgumentError):
            call(argument)
            v.numpy(), w.numpy()
        self.same((np.zeros(4), np.ones(shape)), (v, w))
        v.assign_add(tf.ones(4))
        self.assertEqual(float(v[0]), 1)

    def test_checks_behind_writes(self):
        one, check = tf.ones(4), tf.debugging.check_numerics
        self.refuse(lambda v, w, i: (v.assign_add(one), w.assign(tf.gather(w, i))), tf.constant([0, 1, 2, 9]))
        self.refuse(lambda v, w, x: (v.assign_add(one), w.assign(check(w / x, "nan"))), tf.constant(0.0))
        self.refuse(lambda v, w, x: (v.assign_add(one), w.assign(tf.linalg.inv(x))), tf.zeros((4, 4)), (4, 4))

    def test_checks_of_what_was_written_take_the_write_back(self):
        one, check = tf.ones(4), tf.debugging.check_numerics
        self.refuse(lambda v, w, x: (v.assign_add(one), w.assign(check(v / x, "nan"))), tf.constant(0.0))
        self.refuse(lambda v, w, i: (v.assign_add(one), v.assign_add(one), w.assign(w + 2 * v), v.assign(tf.gather(w, i))),
                    tf.constant([0, 1, 2, 9]))


class Matrices(unittest.TestCase):
    def test_cholesky_wants_a_positive_matrix(self):
        for matrix in ([[1., 2.], [2., 1.]], [[0., 0.], [0., 1.]], [[float("nan"), 0.], [0., 1.]]):
            with self.assertRaises(tf.errors.InvalidArgumentError):
                tf.linalg.cholesky(tf.constant(matrix)).numpy()
            with self.assertRaises(tf.errors.InvalidArgumentError):
                tf.function(lambda m: tf.linalg.cholesky(m))(tf.constant([[[4., 2.], [2., 5.]], matrix])).numpy()
        np.testing.assert_allclose(tf.linalg.cholesky(tf.constant([[4., 2.], [2., 5.]])), [[2, 0], [1, 2]])


    def test_matrices_without_an_inverse_are_refused(self):
        for n in (2, 3, 200):
            none = np.eye(n)
            none[-1] = none[0]
            for function in (tf.linalg.inv, lambda m: tf.linalg.solve(m, m), lambda m: tf.linalg.lu(m)[0]):
                for one in (none, none.astype("f4"), np.zeros((n, n)), np.full((n, n), np.nan), np.stack([np.eye(n), none])):
                    with self.assertRaises(tf.errors.InvalidArgumentError):
                        function(tf.constant(one)).numpy()
            self.assertEqual(float(tf.linalg.det(none)), 0)
            self.assertEqual([float(v) for v in tf.linalg.slogdet(none)], [0, -np.inf])

    def test_matrices_have_any_size(self):
        a = np.random.default_rng(3).normal(size=(300, 300))
        positive = a @ a.T + np.eye(300)
        inverse = np.linalg.inv(a)
        with tf.GradientTape(persistent=True) as tape:
            x = tf.constant(a)
            tape.watch(x)
            found, log = tf.linalg.inv(x), tf.linalg.slogdet(x)[1]
        np.testing.assert_allclose(found, inverse, atol=1e-9)
        np.testing.assert_allclose(tape.gradient(found, x), -np.outer(inverse.sum(0), inverse.sum(1)), atol=1e-7)
        np.testing.assert_allclose(tape.gradient(log, x), inverse.T, atol=1e-9)
        np.testing.assert_allclose(tf.linalg.slogdet(a), np.linalg.slogdet(a))
        np.testing.assert_allclose(tf.linalg.cholesky(positive), np.linalg.cholesky(positive), atol=1e-9)


class Divisors(unittest.TestCase):
    def test_whole_numbers_are_not_divided_by_a_zero_that_a_run_makes(self):
        for divide in (lambda x, y: x // y, tf.math.floormod, tf.truncatediv):
            for dtype in (tf.int32, tf.int64):
                halves = tf.data.Dataset.range(4).map(lambda i: divide(tf.constant(8, dtype), tf.cast(3 - i, dtype)))
                found = []
                with self.assertRaises(tf.errors.InvalidArgumentError):
                    for value in halves:
                        found.append(int(value))
                self.assertEqual(found, [int(divide(8, n)) for n in (3, 2, 1)])
                traced = tf.function(divide)
                np.testing.assert_array_equal(traced(tf.constant([7, -7], dtype), tf.constant([2, 2], dtype)),
                                              divide(tf.constant([7, -7], dtype), tf.constant([2, 2], dtype)))
                with self.assertRaises(tf.errors.InvalidArgumentError):
                    traced(tf.constant([7, -7], dtype), tf.constant([2, 0], dtype)).numpy()

    def test_nor_is_any_other_kind_anywhere(self):
        ways = (lambda x, y: x // y, lambda x, y: x % y, tf.math.floordiv, tf.math.floormod, tf.math.mod, tf.truncatediv, tf.truncatemod)
        for divide in ways:
            for dtype in ("int8", "uint8", "int16", "int32", "int64"):
                x, y = tf.constant([7, 5], dtype), tf.constant([2, 0], dtype)
                pairs = tf.data.Dataset.from_tensor_slices((x, y))
                for call in (lambda: divide(x, y).numpy(), lambda: divide(x, 0).numpy(), lambda: tf.function(divide)(x, y).numpy(),
                             lambda: list(pairs.map(divide)), lambda: list(pairs.map(divide, num_parallel_calls=2))):
                    self.assertRaisesRegex(tf.errors.InvalidArgumentError, "division by zero", call)


class Ignored(unittest.TestCase):
    """Settings that no layer can follow are refused, also where they look like "not given"."""

    def test_negative_sides_and_axes_that_are_not_there(self):
        l, x3, x4, x5 = keras.layers, tf.ones((2, 8, 3)), tf.ones((2, 8, 8, 3)), tf.ones((1, 4, 4, 4, 2))
        cases = [(l.ZeroPadding2D(((-3, 0), (0, 0))), x4), (l.ZeroPadding2D(-1), x4), (l.ZeroPadding1D(-1), x3), (l.ZeroPadding3D(-2), x5),
                 (l.Cropping1D(-1), x3), (l.Cropping2D(-5), x4), (l.Cropping2D((1, -1)), x4), (l.Cropping3D(-1), x5),
                 (l.LayerNormalization(axis=-99), x3), (l.BatchNormalization(axis=-99), x3), (l.BatchNormalization(axis=[1, -99]), x3),
                 (l.RMSNormalization(axis=-99), x3), (l.UnitNormalization(axis=-99), x3), (l.Softmax(axis=99), x3),
                 (l.Softmax(axis=-99), x3), (l.Conv2DTranspose(2, 3, strides=2, output_padding=-1), x4)]
        for layer, x in cases:
            with self.assertRaises(ValueError, msg=type(layer).__name__):
                layer(x)
        for make in (lambda: l.Reshape((4, -2)), lambda: l.Permute((2, -2)), lambda: l.ReLU(max_value=-1.0)):
            with self.assertRaises(ValueError):
                make()(x3)

    def test_settings_that_no_engine_takes(self):
        l = keras.layers
        for layer in (l.AveragePooling2D(2, padding=2 ** 63), l.Conv1D(2, 2, kernel_regularizer=float("nan")), l.CategoryEncoding("valid")):
            with self.assertRaises(ValueError):
                layer(tf.ones((2, 8, 8, 3)) if "2D" in type(layer).__name__ else tf.ones((2, 8, 3)))
        for dtype in ({}, {"config": 5}, {"class_name": "os", "config": {"name": ["a"]}}):
            with self.assertRaises(ValueError):
                l.deserialize({"module": "keras.layers", "class_name": "Dense", "config": {"units": 2, "dtype": dtype}})

    def test_rules_for_texts(self):
        l = keras.layers
        for make in (lambda: l.TextVectorization(standardize="upper"), lambda: l.TextVectorization(split="line"), lambda: l.TextVectorization(sparse=True),
                     lambda: l.StringLookup(sparse=True), lambda: l.StringLookup(encoding="latin-1"), lambda: l.IntegerLookup(sparse=True),
                     lambda: l.TextVectorization(encoding="utf-16"), lambda: l.TextVectorization(standardize={"class_name": "x"})):
            self.assertRaises((ValueError, NotImplementedError), make)
        words = l.TextVectorization(standardize=None, split=None, vocabulary=["a b", "c"])
        self.assertEqual(words(["a b", "d"]).numpy().tolist(), [[2], [1]])

    def test_in_files(self):
        text = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.ZeroPadding2D(((3, 0), (0, 0)))]).to_json()
        self.assertEqual(keras.models.model_from_json(text).output_shape, (None, 11, 8, 3))
        with self.assertRaises(ValueError):
            keras.models.model_from_json(text.replace("[3, 0]", "[-3, 0]"))(tf.ones((1, 8, 8, 3)))

    def test_defaults_are_still_there(self):
        l, x3, x4 = keras.layers, tf.ones((2, 8, 3)), tf.ones((2, 8, 8, 3))
        for layer, x, shape in ((l.ZeroPadding2D(), x4, (2, 10, 10, 3)), (l.ZeroPadding2D((1, 2)), x4, (2, 10, 12, 3)), (l.Cropping1D(), x3, (2, 6, 3)),
                                (l.Cropping2D(((1, 2), (0, 1))), x4, (2, 5, 7, 3)), (l.Softmax(axis=[1, 2]), x3, (2, 8, 3)), (l.ReLU(), x3, (2, 8, 3)),
                                (l.LayerNormalization(), x3, (2, 8, 3)), (l.Conv2DTranspose(2, 3, strides=2), x4, (2, 17, 17, 2))):
            self.assertEqual(layer(x).shape, shape, type(layer).__name__)


class Interrupted(unittest.TestCase):
    def interrupt(self, event, count, use):
        """KeyboardInterrupt in GradientTape.__enter__ or __exit__: at its end, or before its line `count`."""
        left = [count]

        def trace(frame, what, arg):
            if not frame.f_code.co_filename.endswith("_tape.py") or frame.f_code.co_name not in ("__enter__", "__exit__"):
                return None

            def lines(frame, what, arg):
                left[0] -= what == event
                if left[0] < 0 and what == event:
                    left[0] = 10 ** 9
                    raise KeyboardInterrupt
                return lines
            return lines

        sys.settrace(trace)
        try:
            use()
            return False
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)

    def test_a_tape_does_not_outlive_an_interrupt(self):
        v = tf.Variable(2.0)

        def use():
            with tf.GradientTape() as tape:
                y = v * v
            return tape.gradient(y, v)

        interrupted = sum(self.interrupt(event, count, use) for event in ("return", "line") for count in range(30))
        self.assertGreater(interrupted, 10)
        self.assertEqual(len(_tape.ACTIVE), 0)
        self.assertEqual(float(use()), 4)
        for _ in range(100):
            float(v * v)
        self.assertLess(_C.info()["nodes"], 50)      # no tape keeps them

    def test_a_tape_that_somebody_holds_stops_when_entering_it_is_interrupted(self):
        held = []

        def use():
            tape = tf.GradientTape(persistent=True)
            held.append(tape)
            with tape:
                pass

        for count in range(1, 8):
            if self.interrupt("line", count, use):
                self.assertNotIn(held[-1], list(_tape.ACTIVE))
        self.assertEqual(len(_tape.ACTIVE), 0)


class Forks(unittest.TestCase):
    """A child of a process whose other threads use Snug works, whatever they were doing."""

    def child(self):
        code = 1
        try:
            signal.alarm(20)
            model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)])
            model.compile("sgd", "mse")
            model.fit(np.ones((64, 8), "f4"), np.ones((64, 2), "f4"), verbose=0)
            total = sum(int(b.numpy().sum()) for b in tf.data.Dataset.range(50).map(lambda x: x * 2).batch(5).prefetch(2))
            product = float(tf.reduce_sum(tf.matmul(tf.ones((64, 64)), tf.ones((64, 64)))))
            code = 0 if (total, product) == (2450, 64.0 ** 3) else 2
        finally:
            os._exit(code)

    def fork(self, times):
        for _ in range(times):
            pid = os.fork()
            if pid == 0:
                self.child()
            self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_while_a_thread_runs_plans(self):
        stop, runs = threading.Event(), threading.Event()

        def run():
            while not stop.is_set():
                float(tf.reduce_sum(tf.matmul(tf.ones((256, 256)), tf.ones((256, 256)))))
                runs.set()      # nothing is imported any more: a module that is, no child can import

        thread = threading.Thread(target=run)
        thread.start()
        runs.wait()
        try:
            self.fork(4)
        finally:
            stop.set()
            thread.join()
        self.assertEqual(float(tf.reduce_sum(tf.ones(3))), 3)

    @unittest.skipIf(SANITIZED, "the sanitizer's own allocator keeps the locks that other threads had at a fork")
    def test_while_pipelines_read_ahead(self):
        elements = iter(tf.data.Dataset.range(10 ** 9).map(lambda x: x * 2, num_parallel_calls=2).prefetch(4))
        next(elements)
        self.fork(4)
        self.assertEqual(int(next(elements)), 2)


N = 300000     # rows and columns that no machine has the bytes for


def too_large():
    """Calls that need more memory than there is, by name."""
    v = tf.Variable(tf.ones((4,)))

    def product():
        return tf.reduce_sum(tf.matmul(tf.random.normal((N, N)), tf.random.normal((N, N))))

    def gradient():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.matmul(tf.ones((N, N)) * v[0], tf.ones((N, N))))
        return float(tape.gradient(y, v)[0])

    def assign():
        v.assign(product() * tf.ones(4))
        v.numpy()

    def fit():
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(N), keras.layers.Dense(N), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(np.ones((4, 4), "f4"), np.ones((4, 1), "f4"), verbose=0)

    traced = tf.function(lambda x: product() * x)
    return {"product": lambda: float(product()), "array": lambda: tf.ones((10 ** 6, 10 ** 6)).numpy(), "gradient": gradient,
            "traced": lambda: float(traced(tf.constant(1.0))), "sort": lambda: tf.sort(tf.random.normal((10 ** 6, 10 ** 6))).numpy(),
            "assign": assign, "fit": fit,
            "dataset": lambda: next(iter(tf.data.Dataset.range(1).map(lambda i: tf.ones((10 ** 6, 10 ** 6))))).numpy()}, v


def resident():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run_out_of_memory(times):
    """Each of them so often: always the same exception, what comes next works, and memory stays."""
    calls, v = too_large()
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    after = lambda: model.fit(np.ones((4, 4), "f4"), np.ones((4, 2), "f4"), verbose=0)
    for name, call in calls.items():
        n, at_first = max(5, times // 20) if name == "fit" else times, 0
        for k in range(n):
            try:
                call()
                raise AssertionError(name + " went well")
            except tf.errors.ResourceExhaustedError:
                pass
            assert float(tf.reduce_sum(tf.ones((1000,)))) == 1000, name
            assert v.numpy().tolist() == [1, 1, 1, 1], name
            if k == n // 2:     # plans and the interpreter's own caches have been made
                after()
                gc.collect()
                at_first = resident()
        after()
        gc.collect()
        grown = resident() - at_first
        assert SANITIZED or grown < 2 << 20, "%s: %d bytes more after %d times" % (name, grown, n)


class OutOfMemory(unittest.TestCase):
    times = 1000 if os.environ.get("SNUG_TEST_FULL") else 40

    def run_alone(self, budget):
        done = subprocess.run([sys.executable, "-B", __file__, "out-of-memory", budget, str(self.times)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])

    def test_a_step_too_large_costs_nothing_later(self):
        self.run_alone("none")

    @unittest.skipIf(SANITIZED, "a budget, of which a sanitizer's memory is a part")
    def test_a_step_too_large_costs_nothing_later_within_a_budget(self):
        self.run_alone("300MiB")


if __name__ == "__main__" and sys.argv[1:2] == ["out-of-memory"]:
    if sys.argv[2] != "none":
        snug.budget(sys.argv[2])
    run_out_of_memory(int(sys.argv[3]))
elif __name__ == "__main__":
    unittest.main()
