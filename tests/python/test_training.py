#!/usr/bin/env python3
"""Variables, tapes and tf.function together."""
import contextlib
import gc
import io
import os
import pickle
import tempfile
import unittest
import weakref
import zipfile

import numpy as np

import snug.tensorflow as tf
from snug import _C, keras


class Variables(unittest.TestCase):
    def test_a_read_keeps_what_it_saw(self):
        v = tf.Variable(1.0)
        old = v.read_value()
        v.assign(2.0)
        v.assign_add(3.0)
        v.assign_sub(1.0)
        self.assertEqual((float(old), float(v)), (1, 4))

    def test_are_operands(self):
        v = tf.Variable([1.0, 2.0])
        self.assertEqual(((v * 2).numpy().tolist(), (1 - v).numpy().tolist(), v[1].numpy()), ([2, 4], [0, -1], 2))

    def test_parts_can_be_assigned(self):
        v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        v[0].assign([8.0, 9.0])
        v[:, 1].assign_add([1.0, 1.0])
        self.assertEqual(v.numpy().tolist(), [[8, 10], [3, 5]])
        self.assertFalse(hasattr(tf.constant([1.0])[0], "assign"))

    def test_a_function_that_looks_at_a_value_lets_its_arguments_go(self):
        """At once, and not when the collector comes by: a batch that waits for it is a batch too many."""
        class Batch:
            pass

        @tf.function
        def step(x, batch):
            return x + 1.0 if float(x) * len(gone) >= 0 else x

        gone, batch = [], Batch()
        weakref.finalize(batch, gone.append, True)
        gc.collect()
        gc.disable()
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(float(step(tf.constant(1.0), batch)), 2)
            del batch
            self.assertEqual(gone, [True])
        finally:
            gc.enable()

    def test_refusals(self):
        self.assertRaises(ValueError, tf.Variable(1.0).assign, [1.0, 2.0])
        self.assertRaises(TypeError, tf.Variable(1).assign, 1.5)


class Tapes(unittest.TestCase):
    def test_gradient_of_structures(self):
        w, b = tf.Variable([[1.0], [2.0]]), tf.Variable(0.5)
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(x @ w + b))
        grads = tape.gradient(loss, {"w": w, "b": b})
        np.testing.assert_allclose(grads["b"].numpy(), 2 * (5.5 + 11.5))
        np.testing.assert_allclose(grads["w"].numpy(), [[2 * (5.5 + 3 * 11.5)], [2 * (2 * 5.5 + 4 * 11.5)]])
        self.assertRaises(RuntimeError, tape.gradient, loss, w)

    def test_second_order_and_persistence(self):
        x = tf.constant(3.0)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=True) as inner:
                inner.watch(x)
                y = x ** 3
                z = y * 2
            dy = inner.gradient(y, x)
        self.assertEqual((float(dy), float(inner.gradient(z, x)), float(outer.gradient(dy, x))), (27, 54, 18))

    def test_what_is_not_reached_is_none_or_zero(self):
        a, b = tf.Variable(1.0), tf.Variable(2.0)
        with tf.GradientTape() as tape:
            y = a * 2
        self.assertIsNone(tape.gradient(y, [a, b])[1])
        with tf.GradientTape() as tape:
            y = a * 2
        self.assertEqual(float(tape.gradient(y, b, unconnected_gradients="zero")), 0)

    def test_gradients_that_names_hold_are_those_of_a_tape_alone(self):
        x = tf.constant(np.random.default_rng(0).normal(size=(4, 1 << 17)).astype("float32"))

        def step(update):
            tf.keras.utils.set_random_seed(1)
            layer, optimizer = tf.keras.layers.Dense(8), tf.keras.optimizers.Adam()
            scale = tf.Variable(tf.ones((1 << 17,)))
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(layer(x * scale)))
            variables = [scale] + layer.trainable_variables
            gradients = tape.gradient(loss, variables)
            if update:
                optimizer.apply_gradients(zip(gradients, variables))
            return [g.numpy() for g in gradients]
        for held, alone in zip(step(True), step(False)):
            np.testing.assert_array_equal(held, alone)

    def test_jacobian(self):
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x ** 2
        self.assertEqual(tape.jacobian(y, x).numpy().tolist(), [[2, 0], [0, 4]])

    def test_a_gradient_of_ones_own(self):
        @tf.custom_gradient
        def f(x):
            return x * x, lambda dy: dy * 100.0

        x = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = f(x * 2.0) * 5.0
        self.assertEqual((float(y), float(tape.gradient(y, x))), (180, 1000))


class Functions(unittest.TestCase):
    def test_one_trace_per_signature(self):
        traced = []

        @tf.function
        def f(a, b=1.0):
            traced.append(1)
            return a * b + 1.0

        self.assertEqual(f(tf.constant([1.0, 2.0])).numpy().tolist(), [2, 3])
        self.assertEqual(f(tf.constant([5.0, 6.0])).numpy().tolist(), [6, 7])
        self.assertEqual(len(traced), 1)
        f(tf.constant([1.0]))
        f(tf.constant([1.0, 2.0]), b=2.0)
        self.assertEqual(len(traced), 3)

    def test_variables_and_gradients_go_through(self):
        v = tf.Variable(2.0)

        @tf.function
        def f(x):
            v.assign_add(1.0)
            return x * v

        with tf.GradientTape():
            y = f(tf.constant(10.0))
        self.assertEqual((float(y), float(v)), (30, 3))
        self.assertEqual(float(f(tf.constant(1.0))), 4)

    def test_there_is_a_trace_for_each_answer(self):
        traced, v = [], tf.Variable(0.0)

        @tf.function
        def f(x):
            traced.append(1)
            y = x if x > 0 else -x
            v.assign_add(tf.cond(tf.equal(y, 4.0), lambda: 100.0, lambda: 1.0))
            return y

        @tf.function
        def outer(x):
            return f(x) * 2

        answers = [float(f(tf.constant(x))) for x in (3.0, -4.0, 3.0, -4.0, -5.0, -5.0)]
        self.assertEqual((answers, float(v)), ([3, 4, 3, 4, 5, 5], 204))
        n = len(traced)
        self.assertEqual([float(outer(tf.constant(x))) for x in (3.0, -4.0)], [6, 8])
        self.assertEqual(len(traced), n)
        x = tf.constant(-4.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        self.assertEqual(float(tape.gradient(y, x)), -1)

    def test_other_peeks_make_it_dynamic(self):
        calls, v = [], tf.Variable(0)

        @tf.function
        def writes_before(x):
            calls.append(1)
            v.assign_add(1)
            return x + 1 if v % 2 == 0 else x

        @tf.function
        def draws_before(x):
            return x + 1 if tf.random.uniform([]) > 0.5 else x

        @tf.function
        def many(i):
            return int(i) + 1

        with contextlib.redirect_stderr(io.StringIO()) as notes:
            self.assertEqual([float(writes_before(tf.constant(1.0))) for _ in range(4)], [1, 2, 1, 2])
            self.assertEqual({float(draws_before(tf.constant(0.0))) for _ in range(40)}, {0, 1})
            self.assertEqual([int(many(tf.constant(i))) for i in range(20)], list(range(1, 21)))
        self.assertEqual((int(v), len(calls)), (4, 5))
        self.assertEqual(notes.getvalue().count("runs at every call"), 3)

    def test_generators_draw_anew_at_each_call(self):
        from snug import keras
        own, seeds = tf.random.Generator.from_seed(5), keras.random.SeedGenerator(3)
        draws = (lambda: own.normal([4]), lambda: own.uniform([4]), lambda: keras.random.normal((4,), seed=seeds),
                 lambda: tf.random.stateless_normal([4], seeds.next()), lambda: tf.random.normal([4]))
        with contextlib.redirect_stderr(io.StringIO()):
            for draw in draws:
                traced = tf.function(draw)
                self.assertEqual(len({tuple(traced().numpy()) for _ in range(4)}), 4)
        same = tf.function(lambda: keras.random.normal((4,), seed=7))
        self.assertEqual(len({tuple(same().numpy()) for _ in range(4)}), 1)

    def test_draws_of_the_host_are_not_frozen_in_traces(self):
        from snug import keras
        picture = tf.reshape(tf.range(48.0), (4, 2, 2, 3))
        wanted, table, rows = tf.constant([[1]], dtype="int64"), tf.reshape(tf.range(20.0), (10, 2)), tf.ones((1, 2))
        draws = (lambda: tf.random.gamma([4], 2.0), lambda: tf.random.poisson([8], 9.0), lambda: keras.random.beta((4,), 2.0, 2.0),
                 lambda: tf.random.uniform_candidate_sampler(wanted, 1, 4, True, 100)[0],
                 lambda: tf.nn.sampled_softmax_loss(table, tf.zeros([10]), wanted, rows, 3, 10),
                 lambda: keras.layers.MixUp()(picture, training=True))
        with contextlib.redirect_stderr(io.StringIO()):
            for draw in draws:
                traced = tf.function(draw)
                self.assertGreater(len({traced().numpy().tobytes() for _ in range(6)}), 1)
                first = []
                for _ in range(2):
                    tf.random.set_seed(3)
                    first.append(traced().numpy().tolist())
                self.assertEqual(*first)
        with self.assertRaisesRegex(NotImplementedError, "log_uniform_candidate_sampler"):
            tf.random.learned_unigram_candidate_sampler(wanted, 1, 4, True, 100)

    def test_steps_in_python_keep_states(self):
        from snug import keras
        x = tf.reshape(tf.range(24.0), (2, 4, 3)) / 24.0
        for kind in (keras.layers.LSTM, keras.layers.GRU, keras.layers.SimpleRNN):
            whole = kind(2, activation=lambda t: tf.sin(t))
            parts = kind(2, activation=lambda t: tf.sin(t), stateful=True)
            whole(x), parts(x)
            parts.set_weights(whole.get_weights())
            parts.reset_states()
            parts(x[:, :2])
            for a, b in zip(parts(x[:, 2:]).numpy().ravel(), whole(x).numpy().ravel()):
                self.assertAlmostEqual(float(a), float(b), 5)

    def test_seeds_of_keras_random_say_what_is_drawn(self):
        from snug import keras
        draw, x = keras.random, tf.reshape(tf.range(40), (2, 20))
        for one in (lambda seed: draw.shuffle(x[0], seed=seed), lambda seed: draw.shuffle(x, axis=1, seed=seed),
                    lambda seed: draw.gamma((2, 3), [1.0, 2.0, 3.0], seed=seed), lambda seed: draw.beta((4,), 2.0, 3.0, seed=seed),
                    lambda seed: draw.binomial((9,), 20, 0.5, seed=seed), lambda seed: draw.categorical(tf.zeros((1, 50)), 9, seed=seed),
                    lambda seed: draw.dropout(tf.ones((30,)), 0.5, seed=seed)):
            self.assertEqual(one(3).numpy().tolist(), one(3).numpy().tolist())
            self.assertNotEqual(one(3).numpy().tolist(), one(4).numpy().tolist())
            seeds = draw.SeedGenerator(3)
            self.assertNotEqual(one(seeds).numpy().tolist(), one(seeds).numpy().tolist())
        for seed in (None, 5):
            turned = draw.shuffle(x, axis=1, seed=seed).numpy()
            self.assertEqual((turned[1] - turned[0]).tolist(), [20] * 20)
            self.assertEqual(sorted(turned[0].tolist()), list(range(20)))
        self.assertEqual(draw.gamma((2, 3), [1.0, 2.0, 3.0]).shape, (2, 3))

    def test_schedules_go_on_in_traces(self):
        from snug import keras
        known = keras.optimizers.schedules.ExponentialDecay(1.0, 1, 0.5)

        class Half(keras.optimizers.schedules.LearningRateSchedule):
            def __call__(self, step):
                return 0.5 * known(step)

        for schedule, ends in ((known, [-1, -1.5, -1.75, -1.875]), (Half(), [-0.5, -0.75, -0.875, -0.9375])):
            v, optimizer = tf.Variable(0.0), keras.optimizers.SGD(schedule)
            inner = tf.function(lambda: optimizer.apply_gradients([(tf.constant(1.0), v)]))

            @tf.function
            def step():
                inner()
                return v + 0.0

            self.assertEqual([float(step()) for _ in range(4)], ends)
        self.assertEqual(known(3).numpy(), 0.125)
        v, optimizer = tf.Variable(0.0), keras.optimizers.SGD(known)

        @tf.function
        def twice():
            for _ in range(2):
                optimizer.apply_gradients([(tf.constant(1.0), v)])
            return v * 10 + tf.cast(optimizer.iterations, tf.float32)

        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual([float(twice()) for _ in range(2)], [-13, -14.75])

    def test_print_shows_each_call(self):
        traced, v = [], tf.Variable(1.0)

        @tf.function
        def f(x):
            traced.append(1)
            tf.print("v", v, {"x": x, "n": 3}, [x, "text"])
            v.assign_add(x)
            return v * 2

        @tf.function
        def outer(x):
            tf.print("outer")
            return f(x)

        with contextlib.redirect_stderr(io.StringIO()) as out:
            self.assertEqual([float(outer(tf.constant(x))) for x in (1.0, 2.0)], [4, 8])
        self.assertEqual(len(traced), 1)
        self.assertEqual(out.getvalue(), "outer\nv 1 {'x': 1, 'n': 3} [1, 'text']\nouter\nv 2 {'x': 2, 'n': 3} [2, 'text']\n")

    def test_training_inside(self):
        w = tf.Variable([[0.5], [-1.0]])
        x, y = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[1.0], [0.0]])

        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ w - y))
            w.assign_sub(0.01 * tape.gradient(loss, w))
            return loss

        eager = [float(step()) for _ in range(3)]
        w.assign([[0.5], [-1.0]])
        traced = tf.function(step)
        self.assertEqual([float(traced()) for _ in range(3)], eager)

    def test_input_signature(self):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def f(x):
            return tf.reduce_sum(x)

        self.assertEqual(float(f([1.0, 2.0])), 3)
        self.assertRaises(TypeError, f, tf.constant([[1.0]]))
        self.assertRaises(TypeError, f, tf.constant([1]))


class Checkpoints(unittest.TestCase):
    def test_variables_come_back(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            v, w = tf.Variable([1.0, 2.0]), tf.Variable(3)
            manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v, more=[w]), folder, max_to_keep=2)
            for _ in range(3):
                manager.save()
            v.assign([0.0, 0.0])
            w.assign(0)
            tf.train.Checkpoint(v=v, more=[w]).restore(tf.train.latest_checkpoint(folder)).assert_consumed()
            self.assertEqual((v.numpy().tolist(), int(w), len(manager.checkpoints)), ([1, 2], 3, 2))
            with self.assertRaises(tf.errors.NotFoundError):
                tf.train.Checkpoint(v=v).restore(folder + "/none")


class Datasets(unittest.TestCase):
    """keras.datasets and get_file look into the cache folder, and nowhere else."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.environ.pop, "KERAS_HOME")
        os.environ["KERAS_HOME"] = folder.name
        self.at = os.path.join(folder.name, "datasets")
        os.makedirs(self.at)

    def test_words_of_imdb_are_numbered_as_keras_numbers_them(self):
        lines = np.empty(3, object)
        lines[:] = [[1, 5], [2, 9, 4], [3]]
        np.savez(os.path.join(self.at, "imdb.npz"), x_train=lines, y_train=np.array([0, 1, 0]), x_test=lines[:1], y_test=np.array([1]))
        (x, y), (x_test, y_test) = tf.keras.datasets.imdb.load_data(num_words=10)
        self.assertEqual(sorted(map(tuple, x)), [(1, 4, 8), (1, 5, 2, 7), (1, 6)])
        self.assertEqual((len(y), x_test.tolist(), y_test.tolist()), (3, [[1, 4, 8]], [1]))
        (x, _), _ = tf.keras.datasets.imdb.load_data(start_char=None, index_from=0, oov_char=None, num_words=5, maxlen=3)
        self.assertEqual(sorted(map(tuple, x)), [(1,), (3,)])

    def test_cifar10_has_channels_last(self):
        folder = os.path.join(self.at, "cifar-10-batches-py")
        os.makedirs(folder)
        for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
            with open(os.path.join(folder, name), "wb") as file:
                pickle.dump({b"data": np.arange(3072, dtype="uint8").reshape(1, 3072), b"labels": [7]}, file)
        (x, y), (x_test, _) = tf.keras.datasets.cifar10.load_data()
        self.assertEqual((x.shape, y.tolist(), x_test.shape), ((5, 32, 32, 3), [[7]] * 5, (1, 32, 32, 3)))
        self.assertEqual(x[0, 0, 1].tolist(), [1, 1, 1])

    def test_get_file_takes_what_is_there(self):
        with self.assertRaisesRegex(FileNotFoundError, "downloads nothing"):
            tf.keras.utils.get_file("a.txt", "https://nowhere/a.txt")
        with open(os.path.join(self.at, "a.txt"), "w") as file:
            file.write("text")
        self.assertEqual(tf.keras.utils.get_file("a.txt", "https://nowhere/a.txt"), os.path.join(self.at, "a.txt"))

    def test_get_file_takes_it_anew_and_unpacks_what_it_is_told(self):
        origin, get = os.path.join(self.at, "from.zip"), lambda **more: tf.keras.utils.get_file("a", "file://" + origin, **more)
        for word in ("old", "new"):
            with zipfile.ZipFile(origin, "w") as file:
                file.writestr(word, word)
            self.assertEqual(os.listdir(get(extract=True)), ["old"])
        self.assertEqual(os.listdir(get(extract=True, force_download=True)), ["new"])
        self.assertEqual(os.listdir(get(extract=True, archive_format=["tar", "zip"], force_download=True)), ["new"])
        for other in ("tar", None):
            with self.assertWarnsRegex(UserWarning, "Could not extract"):
                get(extract=True, archive_format=other, force_download=True)
        self.assertRaises(NotImplementedError, get, extract=True, archive_format="rar", force_download=True)


class Spectra(unittest.TestCase):
    """Windows by name; tests/parity has them by value, since names need SciPy there."""

    def test_windows_have_names(self):
        for name, a, periodic, n in (("hann", 0.5, False, 8), ("hann", 0.5, True, 9), ("hamming", 0.54, True, 8)):
            window = a - (1 - a) * np.cos(2 * np.pi * np.arange(n) / (n - (not periodic)))
            x = np.arange(32, dtype="f4").reshape(1, 32, 1) % 7
            made = [tf.keras.layers.STFTSpectrogram("magnitude", n, window=w, periodic=periodic)(x).numpy() for w in (name, window)]
            np.testing.assert_allclose(*made, rtol=1e-5, atol=1e-5)
        with self.assertRaisesRegex(NotImplementedError, "kaiser"):
            tf.keras.layers.STFTSpectrogram(window="kaiser")(np.zeros((1, 300, 1), "f4"))

    def test_channels_come_first_or_last(self):
        x = np.random.default_rng(0).normal(size=(2, 32, 3)).astype("f4")
        for flat, order in ((False, (0, 2, 1)), (True, (0, 3, 1, 2))):
            last, first = (tf.keras.layers.STFTSpectrogram(frame_length=8, expand_dims=flat, data_format=f"channels_{word}")
                           for word in ("last", "first"))
            np.testing.assert_array_equal(last(x).numpy().transpose(order), first(x.transpose(0, 2, 1)).numpy())


class Plans(unittest.TestCase):
    def test_a_loop_that_prints_each_loss_plans_few_times(self):
        w = tf.Variable(tf.ones((4, 1)))
        x = tf.constant(np.arange(32, dtype="f4").reshape(8, 4) / 32)
        before = _C.info()["misses"]
        for i in range(50):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x[i % 4:i % 4 + 4] @ w - 1.0))
            w.assign_sub((0.1 / (i + 1)) * tape.gradient(loss, w))
            float(loss)
        self.assertLessEqual(_C.info()["misses"] - before, 3)


class Slots(unittest.TestCase):
    def test_memory_is_kept_for_as_many_slots_as_come(self):
        settings = ({}, {"momentum": 0.9}, {"amsgrad": True}, {"centered": True}, {"use_ema": True}, {"gradient_accumulation_steps": 2})
        tried = 0
        for name in tf.keras.optimizers._signatures.OPTIMIZERS:
            for setting in settings:
                try:
                    optimizer = getattr(tf.keras.optimizers, name)(**setting)
                except (TypeError, ValueError):
                    continue  # none of its arguments
                expected = optimizer._slots_to_come()
                optimizer.build([tf.Variable(tf.ones((64, 32)))])
                self.assertEqual(expected, sum(tuple(slot.shape) == (64, 32) for slot in optimizer._slots()), (name, setting))
                tried += 1
        self.assertGreater(tried, 36)


class Sizes(unittest.TestCase):
    def test_a_layer_of_too_many_tensors_says_how_many_there_may_be(self):
        with self.assertRaisesRegex(ValueError, "called with 65 tensors; from 1 to 64 are possible"):
            keras.layers.Add()([keras.Input((2,)) for _ in range(65)])

    def test_lists_may_be_long(self):
        n = 1000
        parts = [tf.ones((1,)) * i for i in range(n)]
        for made in (tf.concat(parts, 0), tf.stack(parts), tf.add_n(parts)):
            self.assertEqual(float(tf.reduce_sum(made)), n * (n - 1) / 2)
        self.assertEqual(tf.unique(tf.range(n) % 7)[0].numpy().tolist(), list(range(7)))

    def test_tensors_are_taken_apart_into_many(self):
        x = tf.reshape(tf.range(600), (200, 3))
        self.assertEqual([int(row[1]) for row in tf.unstack(x)], [3 * i + 1 for i in range(200)])
        self.assertEqual([int(c[2]) for c in tf.unstack(tf.transpose(x), axis=1)], [3 * i + 2 for i in range(200)])
        self.assertEqual([part.numpy().tolist() for part in tf.split(x, 100)[:1]], [[[0, 1, 2], [3, 4, 5]]])
        self.assertEqual(tf.split(tf.transpose(x), [2] + [1] * 198, axis=-1)[-1].numpy().tolist(), [[597], [598], [599]])
        with self.assertRaisesRegex(ValueError, "200 does not split into 150"):
            tf.split(x, 150)

    def test_layers_are_tracked_once(self):
        class Many(keras.layers.Layer):
            def __init__(self):
                super().__init__()
                self.parts = [keras.layers.Dense(1) for _ in range(50)]
                self.first = self.parts[0]
        import copy
        many = Many()
        many.parts.append(keras.layers.Dense(1))
        many.again = many.parts
        other = copy.deepcopy(many)
        other.parts.append(keras.layers.Dense(1))
        self.assertEqual((len(many._all_layers()), len(other._all_layers())), (51, 51))       # made anew, by its constructor


if __name__ == "__main__":
    unittest.main()
