#!/usr/bin/env python3
"""tf.data when things go wrong, and what must not depend on timing: workers, restarts, threads and files left behind."""
import contextlib
import gc
import io
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

import numpy as np

import snug.tensorflow as tf
from snug import _C

Dataset = tf.data.Dataset


def values(dataset):
    return [v.tolist() for v in dataset.as_numpy_iterator()]


def threads():
    return len(os.listdir("/proc/self/task"))


def input_bytes():
    return sum(n for category, owner, n, _ in _C.memory() if category == "input" and not owner)


def run(code, timeout=600):
    """A process of its own: its exit code and what it wrote. Ctrl-C acts there, also where a shell's background ignores it."""
    signals = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    done = subprocess.run([sys.executable, "-c", signals + textwrap.dedent(code)], capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout + done.stderr


class Generators(unittest.TestCase):
    def test_an_exception_comes_as_tensorflow_has_it_with_its_cause(self):
        def bad():
            yield 1
            raise ValueError("no more rows")
        it = iter(Dataset.from_generator(bad, tf.int64))
        self.assertEqual(int(next(it)), 1)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "ValueError: no more rows") as caught:
            next(it)
        self.assertIsInstance(caught.exception.__cause__, ValueError)

    def test_an_exception_waits_for_its_turn_behind_a_prefetch(self):
        def bad():
            yield from range(3)
            raise KeyError("k")
        got = []
        with self.assertRaisesRegex(tf.errors.UnknownError, "KeyError"):
            for x in Dataset.from_generator(bad, tf.int64).map(lambda v: v + 1, num_parallel_calls=2).prefetch(8):
                got.append(int(x))
        self.assertEqual(got, [1, 2, 3])

    def test_wrong_shape_and_wrong_type_say_what_was_expected(self):
        signature = tf.TensorSpec((3,), tf.float32)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r"shape \(2,\) where an element of shape \(3,\)"):
            list(Dataset.from_generator(lambda: iter([[1.0, 2.0]]), output_signature=signature))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "expected type was float32, but the yielded element was text"):
            list(Dataset.from_generator(lambda: iter(["text"]), output_signature=signature))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "did not match the expected structure"):
            list(Dataset.from_generator(lambda: iter([(1, 2, 3)]), output_signature=(signature, signature)))

    def test_a_generator_that_blocks_is_waited_for(self):
        gate = threading.Event()

        def slow():
            yield 1
            gate.wait(20)
            yield 2
        it = iter(Dataset.from_generator(slow, tf.int64))
        self.assertEqual(int(next(it)), 1)
        threading.Timer(0.1, gate.set).start()
        self.assertEqual(int(next(it)), 2)

    def test_it_is_closed_with_its_iterator(self):
        closed = []

        def endless():
            try:
                while True:
                    yield 0
            finally:
                closed.append(True)
        it = iter(Dataset.from_generator(endless, tf.int64).batch(2))
        next(it)
        del it
        gc.collect()
        self.assertEqual(closed, [True])

    def test_ctrl_c_stops_a_wait_and_the_program_goes_on(self):
        code, said = run("""
            import os, signal, threading, time
            import snug.tensorflow as tf
            def slow():
                yield 1
                time.sleep(3600)
                yield 2
            d = tf.data.Dataset.from_generator(slow, tf.int64).map(lambda x: x + 1, num_parallel_calls=2).prefetch(2)
            threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                for x in d:
                    print(int(x), flush=True)
            except KeyboardInterrupt:
                print("stopped")
            print(sum(int(v) for v in tf.data.Dataset.range(4)))
        """)
        self.assertEqual(code, 0, said)
        self.assertIn("stopped\n6\n", said)

    def test_ctrl_c_while_workers_work(self):
        code, said = run("""
            import os, signal, threading
            import numpy as np
            import snug.tensorflow as tf
            d = tf.data.Dataset.range(10 ** 9).map(lambda x: tf.random.normal([2000]) + tf.cast(x, tf.float32),
                                                   num_parallel_calls=3).batch(8).prefetch(2)
            threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                for x in d:
                    pass
            except KeyboardInterrupt:
                del d
                print("stopped")
        """)
        self.assertEqual((code, said.strip().splitlines()[-1:]), (0, ["stopped"]), said)


class Streams(unittest.TestCase):
    def pipeline(self, workers):
        x = np.arange(400, dtype=np.float32).reshape(100, 4)
        return (Dataset.from_tensor_slices(x).shuffle(30, seed=5, reshuffle_each_iteration=False).map(
            lambda r: r * tf.random.uniform([4]), num_parallel_calls=workers).filter(lambda r: r[0] > 3.0).batch(7).prefetch(2))

    def test_worker_counts_change_nothing(self):
        tf.random.set_seed(1)
        want = values(self.pipeline(None))
        self.assertGreater(len(want), 8)
        for workers in (1, 2, 3, 8, tf.data.AUTOTUNE):
            tf.random.set_seed(1)
            self.assertEqual(values(self.pipeline(workers)), want)

    def test_a_restart_in_the_middle_goes_on_exactly(self):
        for at in (0, 3, 6):
            d = self.pipeline(2)
            it = iter(d)
            for _ in range(at):
                next(it)
            state = it.save()
            want = [v.numpy().tolist() for v in it]
            again = iter(d)
            again.restore(state)
            self.assertEqual([v.numpy().tolist() for v in again], want)

    def test_checkpoints_hold_the_place_of_an_iterator(self):
        it = iter(Dataset.range(20).shuffle(20, seed=3).batch(2))
        checkpoint = tf.train.Checkpoint(step=tf.Variable(0), iterator=it)
        next(it), next(it)
        with tempfile.TemporaryDirectory() as folder:
            path = checkpoint.save(os.path.join(folder, "c"))
            want = [v.numpy().tolist() for v in it]
            checkpoint.restore(path)
            self.assertEqual([v.numpy().tolist() for v in it], want)

    def test_draws_differ_from_element_to_element_and_from_map_to_map(self):
        a = values(Dataset.range(20).map(lambda i: tf.random.uniform([])))
        b = values(Dataset.range(20).map(lambda i: tf.random.uniform([])))
        self.assertEqual(len(set(a + b)), 40)

    def test_whatever_draws_is_drawn_for_each_element(self):
        """Also where it is given nothing of the element, and is called neither random nor from tf.random."""
        ones, keras, v1, tried = tf.ones([64]), tf.keras, tf.compat.v1, 0
        for draw in (lambda: tf.nn.dropout(ones, 0.5), lambda: tf.nn.dropout(ones, 0.5, seed=3), lambda: v1.nn.dropout(ones, 0.5),
                     lambda: keras.random.dropout(ones, 0.5), lambda: keras.backend.dropout(ones, 0.5),
                     lambda: keras.backend.truncated_normal([64]), lambda: v1.truncated_normal([64]), lambda: keras.random.shuffle(tf.range(64)),
                     lambda: keras.random.binomial([64], 3.0, 0.5), lambda: tf.random.poisson([64], 9.0), lambda: tf.random.gamma([64], 2.0)):
            mapped = Dataset.range(6).map(lambda i: draw(), num_parallel_calls=2)
            self.assertEqual(len({v.tobytes() for v in mapped.as_numpy_iterator()}), 6)
            tried += 1
        self.assertEqual(tried, 11)
        kept = Dataset.range(6).map(lambda i: tf.nn.experimental.stateless_dropout(ones, 0.5, [1, 2]))
        self.assertEqual(len({v.tobytes() for v in kept.as_numpy_iterator()}), 1)

    def test_functions_are_repeated_without_python(self):
        calls = []

        def counted(x):
            calls.append(1)
            return tf.cast(x, tf.float32) * 2.0
        self.assertEqual(values(Dataset.range(50).map(counted, num_parallel_calls=2)), [2.0 * i for i in range(50)])
        self.assertEqual(len(calls), 1)

    def test_layers_without_weights_are_repeated_without_python(self):
        layers = tf.keras.layers
        mixed = tf.keras.Sequential([layers.RandomFlip(), layers.RandomRotation(0.2), layers.RandomZoom(0.1), layers.RandomCrop(6, 6),
                                     layers.RandomTranslation(0.1, 0.1), layers.RandomContrast(0.2), layers.RandomBrightness(0.1)])
        x = np.random.RandomState(0).randint(0, 255, (24, 8, 8, 3)).astype("float32")
        calls = []

        def augment(picture):
            calls.append(1)
            return mixed(picture, training=True)
        tf.random.set_seed(1)
        want = values(Dataset.from_tensor_slices(x).map(augment))
        self.assertEqual(len(calls), 1)
        self.assertEqual(np.shape(want), (24, 6, 6, 3))
        self.assertEqual(len({str(v) for v in want}), 24)
        tf.random.set_seed(1)
        self.assertEqual(values(Dataset.from_tensor_slices(x).map(augment, num_parallel_calls=3)), want)

    def test_equal_seeds_turn_pictures_and_masks_alike(self):
        class Augment(tf.keras.layers.Layer):
            def __init__(self):
                super().__init__()
                self.pictures, self.masks = (tf.keras.layers.RandomFlip("horizontal", seed=4) for _ in range(2))

            def call(self, pictures, masks):
                return self.pictures(pictures), self.masks(masks)
        x = np.random.RandomState(0).rand(6, 4, 4, 1).astype("float32")
        augment, turned = Augment(), set()
        for a, b in Dataset.from_tensor_slices((x, x)).repeat(4).batch(3).map(augment, num_parallel_calls=2):
            np.testing.assert_array_equal(a, b)
            turned.add(a.numpy().tobytes())
        self.assertGreater(len(turned), 2)
        for _ in range(3):
            np.testing.assert_array_equal(*augment(x, x))
        together = tf.function(lambda v: augment(v, v))
        made = [together(tf.constant(x)) for _ in range(4)]
        for a, b in made:
            np.testing.assert_array_equal(a, b)
        self.assertGreater(len({a.numpy().tobytes() for a, _ in made}), 1)

    def test_equal_seeds_draw_alike_in_layers_that_are_functions(self):
        x = np.random.RandomState(0).rand(4, 4, 4, 3).astype("float32")
        for name, settings, in_c in (("RandomHue", {"factor": 0.5}, True), ("RandomErasing", {}, True),
                                     ("RandomGaussianBlur", {"sigma": (0.2, 0.9)}, True), ("RandomColorJitter", {"hue_factor": 0.5}, True),
                                     ("MixUp", {}, False), ("RandAugment", {}, False)):
            a, b, other = (getattr(tf.keras.layers, name)(seed=seed, **settings) for seed in (4, 4, 5))
            both = lambda v: (a(v, training=True), b(v, training=True), other(v, training=True))
            mapped = Dataset.from_tensors(x).repeat(6).map(both, num_parallel_calls=2 if in_c else None)
            self.assertEqual(mapped._each, in_c)
            with contextlib.redirect_stderr(io.StringIO()):
                traced = tf.function(both)
                ways = [both(tf.constant(x)) for _ in range(6)], [traced(tf.constant(x)) for _ in range(6)], list(mapped)
            for made in ways:
                for p, q, _ in made:
                    np.testing.assert_array_equal(p, q)
                self.assertGreater(len({p.numpy().tobytes() for p, _, _ in made}), 2)
                self.assertTrue(any(not np.array_equal(p, r) for p, _, r in made))

    def test_a_class_of_the_users_is_its_own_whatever_its_name(self):
        class Rescaling(tf.keras.layers.Layer):
            scale, offset = 2.0, 0.0

            def call(self, x):
                return x + 100.0

        class Halving(tf.keras.layers.Rescaling):
            def call(self, x):
                return super().call(x) / 2.0

        class Plain(tf.keras.layers.Rescaling):
            pass
        x = Dataset.from_tensors(np.float32([1, 2]))
        for layer, want in ((Rescaling(), [101, 102]), (Halving(3.0), [1.5, 3]), (Plain(3.0), [3, 6]), (tf.keras.layers.Rescaling(3.0), [3, 6])):
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(values(x.map(lambda v: layer(v))), [want], type(layer))

    def test_a_range_of_sigma_is_drawn_within(self):
        """Of a lone light, the middle is the darker the wider it is spread."""
        x = np.zeros((1, 5, 5, 1), "float32")
        x[0, 2, 2, 0] = 1.0
        layer = tf.keras.layers.RandomGaussianBlur((1.0, 1.0), 3, (0.3, 1.0), value_range=(0, 1), seed=1)
        narrow, wide = (tf.keras.ops.image.gaussian_blur(x, (3, 3), (s, s)).numpy()[0, 2, 2, 0] for s in (0.3, 1.0))
        made = {float(layer(x, training=True)[0, 2, 2, 0]) for _ in range(6)}
        self.assertTrue(len(made) == 6 and wide < min(made) and max(made) < narrow, made)

    def test_resampling_follows_the_global_seed(self):
        def drawn():
            tf.random.set_seed(2)
            return [int(x) for _, x in Dataset.range(60).rejection_resample(lambda x: tf.cast(x > 9, "int32"), [0.5, 0.5])]
        self.assertEqual(drawn(), drawn())

    def test_functions_that_look_at_values_go_back_to_python(self):
        d = Dataset.range(3)
        self.assertEqual([v.numpy() for v in d.map(lambda i: tf.strings.format("n={}", i))], [b"n=0", b"n=1", b"n=2"])
        self.assertEqual(values(d.map(lambda i: int(i) * 2)), [0, 2, 4])
        self.assertEqual(values(d.map(lambda i: i if tf.is_tensor(i) else -1)), [0, 1, 2])
        self.assertEqual(values(d.map(lambda i: -1 if tf.get_static_value(i) is None else i)), [-1, -1, -1])

    def test_elements_have_many_columns_and_lists_any_length(self):
        columns = {f"c{i}": np.arange(5.0) + i for i in range(100)}
        batch = list(Dataset.from_tensor_slices(columns).map(lambda row: {k: v + 1 for k, v in row.items()}).batch(5))[0]
        self.assertEqual(batch["c99"].numpy().tolist(), [100, 101, 102, 103, 104])
        zipped = Dataset.zip(tuple(Dataset.range(3) for _ in range(100)))
        self.assertEqual([sum(int(v) for v in e) for e in zipped], [0, 100, 200])
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "129 parts; there may be 128"):
            Dataset.zip(tuple(Dataset.range(3) for _ in range(129)))
        many = [Dataset.range(i, i + 1) for i in range(1500)]
        self.assertEqual(values(Dataset.choose_from_datasets(many, Dataset.range(1500))), list(range(1500)))
        self.assertEqual(sorted(values(Dataset.sample_from_datasets(many, seed=1))), list(range(1500)))

    def test_arrays_are_not_copied(self):
        x = np.zeros((4, 1000), np.float32)
        d = Dataset.from_tensor_slices(x)
        x[2, :] = 7
        self.assertEqual([float(r[0]) for r in d], [0, 0, 7, 0])

    def test_iterators_work_beside_each_other_and_in_threads(self):
        d = Dataset.range(300).map(lambda i: i * 2, num_parallel_calls=2).batch(3)
        got = {}

        def walk(name):
            got[name] = [v for b in d.as_numpy_iterator() for v in b]
        all_ = [threading.Thread(target=walk, args=(k,)) for k in range(4)]
        for t in all_:
            t.start()
        for t in all_:
            t.join()
        self.assertTrue(all(got[k] == [2 * i for i in range(300)] for k in range(4)))

    def test_elements_outlive_their_pipeline(self):
        d = Dataset.from_tensor_slices(np.arange(6.0).reshape(3, 2)).map(lambda r: r + 1.0, num_parallel_calls=2).batch(2)
        kept = list(d)
        del d
        gc.collect()
        self.assertEqual([k.numpy().tolist() for k in kept], [[[1, 2], [3, 4]], [[5, 6]]])


class Leftovers(unittest.TestCase):
    def test_no_threads_files_or_bytes_are_left(self):
        x = np.arange(3000, dtype=np.float32).reshape(100, 30)

        def once(stop):
            with tempfile.TemporaryDirectory() as folder:
                d = Dataset.from_tensor_slices(x).map(lambda r: r / 2.0, num_parallel_calls=3).cache(os.path.join(folder, "c"))
                for n, _ in enumerate(d.shuffle(20).batch(4).prefetch(2)):
                    if n == stop:
                        break
        for stop in (1000, 1000):           # what is made once is there now
            once(stop)
        gc.collect()
        before = threads(), len(os.listdir("/proc/self/fd")), input_bytes()
        for stop in (0, 3, 1000, 7, 1000):
            once(stop)
        gc.collect()
        next(iter(Dataset.range(1)))        # lets go of arrays that other threads were the last to use
        for _ in range(50):
            if threads() <= before[0]:
                break
            time.sleep(0.02)
        self.assertLessEqual(threads(), before[0])
        self.assertEqual(len(os.listdir("/proc/self/fd")), before[1])
        self.assertLessEqual(input_bytes(), before[2])

    def test_long_passes_are_told_of(self):
        code, said = run("""
            import sys, time, snug
            import snug.tensorflow as tf
            def slow():
                for i in range(60):
                    time.sleep(0.025)
                    yield i
            d = tf.data.Dataset.from_generator(slow, output_signature=tf.TensorSpec([], tf.int32))
            snug.progress(1)
            assert len(list(d.shuffle(50))) == 60
            print("quiet", file=sys.stderr)
            snug.progress(0)
            assert len(list(d.cache())) == 60
            print("told", file=sys.stderr)
            snug.progress(1)
            assert len(list(d.cache())) == 60
        """)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"(snug: shuffle buffer: \d+ of 50\n)+quiet\ntold\n(snug: cache: .*\n)+")

    def test_a_bad_picture_is_named_and_can_be_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            for i in range(3):
                tf.io.write_file(os.path.join(folder, f"{i}.jpg"), tf.io.encode_jpeg(np.full((8, 8, 3), i, np.uint8)))
            with open(os.path.join(folder, "1.jpg"), "wb") as file:
                file.write(b"no picture at all")
            d = Dataset.list_files(os.path.join(folder, "*.jpg"), shuffle=False).map(
                lambda p: tf.io.decode_jpeg(tf.io.read_file(p)), num_parallel_calls=2)
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r"1\.jpg"):
                list(d)
            self.assertEqual(len(list(d.ignore_errors())), 2)
            self.assertEqual(len(list(d.batch(1).prefetch(1).apply(tf.data.experimental.ignore_errors()))), 2)


if __name__ == "__main__":
    unittest.main()
