#!/usr/bin/env python3
"""tf.data: the stages that scripts use."""
import gc
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import snug.tensorflow as tf

Dataset = tf.data.Dataset


class Stages(unittest.TestCase):
    def test_slices_in_batches_with_a_short_last_one(self):
        x, y = np.arange(10.0).reshape(5, 2), np.arange(5)
        got = list(Dataset.from_tensor_slices((x, y)).batch(2))
        self.assertEqual([b.shape[0] for _, b in got], [2, 2, 1])
        np.testing.assert_array_equal(got[1][0].numpy(), x[2:4])
        self.assertEqual(len(Dataset.from_tensor_slices(y).batch(2, drop_remainder=True)), 2)

    def test_map_filter_take_skip_repeat(self):
        d = Dataset.range(10).map(lambda i: i * i).filter(lambda i: i % 2 == 0).skip(1).take(3).repeat(2)
        self.assertEqual([int(i) for i in d], [4, 16, 36, 4, 16, 36])

    def test_a_function_that_fails_leaves_nothing_behind(self):
        def once():
            with self.assertRaises(tf.errors.ResourceExhaustedError):
                next(iter(Dataset.range(1).map(lambda i: tf.ones((10**6, 10**6), tf.int64) * i))).numpy()
        objects = []
        for k in range(41):
            once()
            if k in (10, 40):
                gc.collect()
                objects.append(len(gc.get_objects()))
        self.assertLess(objects[1] - objects[0], 30)  # one each

    def test_shuffle_keeps_all_and_changes_each_time(self):
        d = Dataset.range(100).shuffle(100, seed=3)
        first, second = [int(i) for i in d], [int(i) for i in d]
        self.assertEqual(sorted(first), list(range(100)))
        self.assertNotEqual(first, second)
        again = Dataset.range(100).shuffle(100, seed=3)
        self.assertEqual([int(i) for i in again], first)

    def test_structures_and_zip(self):
        d = Dataset.from_tensor_slices({"a": [1, 2], "b": [[1.0], [2.0]]})
        self.assertEqual([int(e["a"]) for e in d], [1, 2])
        z = Dataset.zip((Dataset.range(3), Dataset.range(3, 6)))
        self.assertEqual([(int(a), int(b)) for a, b in z], [(0, 3), (1, 4), (2, 5)])

    def test_generator_and_numpy(self):
        d = Dataset.from_generator(lambda: iter([(1, [1.0, 2.0])]), output_signature=(
            tf.TensorSpec((), tf.int32), tf.TensorSpec((2,), tf.float32)))
        (a, b), = list(d)
        self.assertEqual((a.dtype, b.dtype, b.numpy().tolist()), (tf.int32, tf.float32, [1, 2]))
        self.assertEqual(list(Dataset.range(3).as_numpy_iterator()), [0, 1, 2])

    def test_padded_batch_and_unbatch(self):
        d = Dataset.from_generator(lambda: iter([[1], [1, 2, 3]]), output_types=tf.int32).padded_batch(2)
        self.assertEqual(next(iter(d)).numpy().tolist(), [[1, 0, 0], [1, 2, 3]])
        self.assertEqual([int(i) for i in Dataset.range(6).batch(4).unbatch()], list(range(6)))

    def test_a_module_that_cannot_be_had_is_an_error_of_its_own(self):
        """Where objects of the interpreter do not fit, say."""
        text = ("import sys, numpy, snug.tensorflow as tf\nsys.modules['snug._strings'] = None\ntry:\n"
                "    tf.data.Dataset.from_tensor_slices(numpy.ones(3))\nexcept ImportError:\n    print('refused')\n")
        done = subprocess.run([sys.executable, "-B", "-c", text], capture_output=True, text=True)
        self.assertEqual(done.stdout, "refused\n", done.stderr)

    def test_saved_elements_come_back(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):      # the second takes the first one's place
                Dataset.from_tensor_slices({"b": ["x", "y"], "a": ([1, 2], [[1.5], [2.5]])}).save(folder)
            back = Dataset.load(folder)
            self.assertEqual([(int(e["a"][0]), e["a"][1].numpy().tolist(), e["b"].numpy()) for e in back], [(1, [1.5], b"x"), (2, [2.5], b"y")])
            self.assertEqual((int(back.cardinality()), len(os.listdir(folder))), (2, 2))
            self.assertEqual(len(list(back.batch(2).map(lambda e: e["b"]))), 1)
            Dataset.from_generator(lambda: iter([[1], [1, 2]]), output_signature=tf.TensorSpec([None], tf.int64)).save(folder)
            self.assertEqual([e.numpy().tolist() for e in Dataset.load(folder)], [[1], [1, 2]])
            os.remove(os.path.join(folder, next(n for n in os.listdir(folder) if n.startswith("elements"))))
            self.assertRaises(tf.errors.NotFoundError, Dataset.load, folder)


class Pictures(unittest.TestCase):
    def test_a_picture_is_saved_as_its_name_says(self):
        x = np.arange(48, dtype=np.float32).reshape(4, 4, 3)
        with tempfile.TemporaryDirectory() as d:
            for name, first in (("a.png", b"\x89PNG"), ("a.jpg", b"\xff\xd8\xff")):
                path = os.path.join(d, name)
                tf.keras.utils.save_img(path, x, scale=False)
                with open(path, "rb") as f:
                    self.assertEqual(f.read(len(first)), first)
            np.testing.assert_array_equal(np.asarray(tf.keras.utils.load_img(os.path.join(d, "a.png"))), x)
            with self.assertRaisesRegex(NotImplementedError, "file_format='bmp'"):
                tf.keras.utils.save_img(os.path.join(d, "a.png"), x, file_format="bmp")


if __name__ == "__main__":
    unittest.main()
