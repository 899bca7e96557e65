#!/usr/bin/env python3
"""Tensors from Python values and back, operators, indexing, text."""
import unittest
import weakref

import numpy as np

import snug.tensorflow as tf
from snug import _C


class Conversion(unittest.TestCase):
    def test_numbers_and_lists_take_tensorflows_dtypes(self):
        for value, dtype in ((1, "int32"), (1.5, "float32"), (True, "bool"), ([1, 2.5], "float32"), (2 ** 40, "int64"),
                             ([1, 2 ** 40], "int64"), ([np.float64(1)], "float64"), ([np.int64(1), 2], "int32"),
                             (np.ones(2), "float64"), (np.array([1, 2]), "int64"), ([], "float32"), ([1, True], "int32")):
            self.assertEqual(tf.constant(value).dtype, dtype, value)

    def test_values_arrive(self):
        a = np.arange(24).reshape(2, 3, 4)
        for dtype in ("float32", "float64", "int32", "int64", "uint8", "float16", "int8"):
            np.testing.assert_array_equal(tf.constant(a.astype(dtype)).numpy(), a.astype(dtype))
        np.testing.assert_array_equal(tf.constant(a[:, ::-1, ::2]).numpy(), a[:, ::-1, ::2])
        np.testing.assert_array_equal(tf.constant([a[0], a[1]], dtype=tf.float32).numpy(), a.astype("f4"))
        np.testing.assert_array_equal(tf.constant([[1, 2], [3, 4]]).numpy(), [[1, 2], [3, 4]])
        self.assertEqual(tf.constant([[], []]).shape, (2, 0))

    def test_an_array_changed_later_changes_nothing(self):
        a = np.ones(3, "f4")
        t = tf.constant(a)
        a[0] = 5
        self.assertEqual(t.numpy()[0], 1)

    def test_what_numpy_gives_is_a_copy(self):
        t = tf.constant([1.0, 2.0])
        t.numpy()[0] = 9
        self.assertEqual(float(t[0]), 1)

    def test_half_precision_is_cast_and_moved(self):
        h = tf.cast(tf.constant([2.2, 70000.0, -0.5]), tf.float16)
        np.testing.assert_array_equal(h.numpy(), np.array([2.2, 70000.0, -0.5], "f4").astype("f2"))
        self.assertEqual(tf.cast(tf.reshape(h[::2], (2, 1)), tf.int32).numpy().tolist(), [[2], [0]])

    def test_refusals(self):
        self.assertRaises(ValueError, tf.constant, [[1], [2, 3]])
        self.assertRaises(ValueError, tf.constant, [True, 1])
        self.assertRaises(ValueError, tf.constant, None)
        self.assertRaises(ValueError, tf.constant, 2 ** 64)
        self.assertRaises(TypeError, tf.constant, 1.5, tf.int32)
        self.assertRaises(ValueError, tf.convert_to_tensor, tf.constant(1.0), tf.int32)

    def test_shape_argument(self):
        self.assertEqual(tf.constant(3, shape=(2, 2)).numpy().tolist(), [[3, 3], [3, 3]])
        self.assertEqual(tf.constant([1, 2, 3, 4], shape=(2, 2)).numpy().tolist(), [[1, 2], [3, 4]])

    def test_lists_with_tensors_are_stacked(self):
        x = tf.constant([1.0, 2.0])
        np.testing.assert_array_equal(tf.convert_to_tensor([x, 2 * x]).numpy(), [[1, 2], [2, 4]])
        np.testing.assert_array_equal(tf.convert_to_tensor([x[0], 7]).numpy(), [1, 7])

    def test_buffers_are_read_only(self):
        m = memoryview(tf.constant([[1.0, 2.0]]))
        self.assertEqual((m.shape, m.readonly, m.tolist()), ((1, 2), True, [[1.0, 2.0]]))
        self.assertEqual(np.asarray(tf.constant([1, 2])).tolist(), [1, 2])


class Operators(unittest.TestCase):
    def test_numbers_take_the_tensors_dtype(self):
        f, i = tf.constant([1.0, 2.0]), tf.constant([1, 2])
        self.assertEqual((f + 1).dtype, tf.float32)
        self.assertEqual((2 - f).numpy().tolist(), [1, 0])
        self.assertEqual((i / 2).dtype, tf.float64)
        self.assertEqual((i // 2).numpy().tolist(), [0, 1])
        self.assertEqual((7 % i).numpy().tolist(), [0, 1])
        self.assertEqual((i ** 2).numpy().tolist(), [1, 4])
        self.assertEqual((-i).numpy().tolist(), [-1, -2])
        self.assertEqual((f > 1).numpy().tolist(), [False, True])
        self.assertEqual((1 == i).numpy().tolist(), [True, False])
        self.assertRaises(TypeError, lambda: i + 1.5)
        self.assertRaises(tf.errors.InvalidArgumentError, lambda: f + i)
        self.assertRaises(tf.errors.InvalidArgumentError, lambda: tf.ones((2, 3)) + tf.ones((2, 4)))

    def test_whole_numbers_of_64_bits_are_exact(self):
        x = np.array([1, 2, -7, 2 ** 60 + 1])
        t = tf.constant(x)
        for k in (6364136223846793005, -2 ** 62 - 1, 2 ** 63 - 1, -2 ** 63, 2 ** 53 + 1):
            self.assertEqual((t * k).numpy().tolist(), (x * np.int64(k)).tolist())
            self.assertEqual(tf.add(t, k).numpy().tolist(), (x + np.int64(k)).tolist())
            self.assertEqual(tf.function(lambda v: v - k)(t).numpy().tolist(), (x - np.int64(k)).tolist())
            self.assertTrue(bool(tf.constant(k, tf.int64) == k))
            self.assertEqual(tf.fill([2], k).numpy().tolist(), [k, k])
        self.assertEqual(tf.clip_by_value(t * 5, -3, 2 ** 60 + 3).numpy().tolist(), np.clip(x * 5, -3, 2 ** 60 + 3).tolist())
        self.assertEqual((tf.fill([2], 2 ** 40).dtype, tf.fill([2], 7).dtype), (tf.int64, tf.int32))

    def test_bits_of_the_ends_of_every_type(self):
        for dtype in ("int8", "uint8", "int16", "int32", "uint32", "int64"):
            ends = np.iinfo(dtype)
            some = np.array([ends.min, ends.min + 1, 1, ends.max // 3, ends.max - 1, ends.max], dtype)
            x, y = np.repeat(some, 6), np.tile(some, 6)
            for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
                got = getattr(tf.bitwise, name)(tf.constant(x), tf.constant(y)).numpy()
                self.assertEqual(got.tolist(), getattr(np, name)(x, y).tolist(), f"{name} of {dtype}")

    def test_arrays_follow_the_tensor(self):
        f = tf.constant([1.0, 2.0])
        for y in (f + np.ones(2), np.ones(2) + f, f + [1, 1], np.float64(1) + f):
            self.assertEqual((y.dtype, y.numpy().tolist()), (tf.float32, [2, 3]))

    def test_matmul_and_bool(self):
        a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        self.assertEqual((a @ a).numpy().tolist(), [[7, 10], [15, 22]])
        b = tf.constant([True, False])
        self.assertEqual(((b & True).numpy().tolist(), (~b).numpy().tolist()), ([True, False], [False, True]))

    def test_none_is_not_equal(self):
        self.assertIs(tf.constant(1) == None, False)
        self.assertIs(tf.constant(1) != None, True)

    def test_hash_is_refused_and_ref_is_not(self):
        t = tf.constant(1)
        self.assertRaises(TypeError, hash, t)
        self.assertIs({t.ref(): 1} and t.ref().deref(), t)


class Index(unittest.TestCase):
    def test_as_numpy(self):
        a = np.arange(60).reshape(3, 4, 5)
        t = tf.constant(a)
        for key in (0, -1, (1, 2), (1, 2, 3), slice(1, 3), (slice(None), 1), (Ellipsis, 2), (None, 0), (slice(None, None, -1),),
                    (slice(None), slice(3, 0, -2)), (slice(2, 1),), (0, Ellipsis, None, slice(None, None, 2)),
                    (slice(None), slice(-2, None), slice(1, -1))):
            np.testing.assert_array_equal(t[key].numpy(), a[key], str(key))

    def test_by_tensors(self):
        t = tf.constant([10, 20, 30])
        self.assertEqual(int(t[tf.constant(1)]), 20)
        self.assertEqual(int(t[tf.constant(0) + 2]), 30)
        self.assertEqual(t[t > 15].numpy().tolist(), [20, 30])

    def test_refusals(self):
        t = tf.constant([10, 20, 30])
        self.assertRaises(tf.errors.InvalidArgumentError, lambda: t[3])
        self.assertRaises(tf.errors.InvalidArgumentError, lambda: t[0, 0])
        self.assertRaises(TypeError, lambda: t[0.5])
        self.assertRaises(TypeError, lambda: t["a"])

    def test_iteration(self):
        self.assertEqual([int(x) for x in tf.constant([1, 2, 3])], [1, 2, 3])
        self.assertRaises(TypeError, iter, tf.constant(1))
        self.assertEqual(len(tf.ones((4, 2))), 4)


class Text(unittest.TestCase):
    def test_as_tensorflow_prints(self):
        self.assertEqual(repr(tf.constant([1.0, 2.0])),
                         "<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>")
        self.assertEqual(repr(tf.constant(1.5)), "<tf.Tensor: shape=(), dtype=float32, numpy=1.5>")
        self.assertEqual(str(tf.constant([[1, 2], [3, 4]])),
                         "tf.Tensor(\n[[1 2]\n [3 4]], shape=(2, 2), dtype=int32)")
        self.assertEqual(f"{tf.constant(1.25):.1f} {tf.constant(3.7)} {tf.constant([1, 2])}", "1.2 3.700000047683716 [1 2]")
        self.assertEqual(repr(tf.Variable([1.0], name="w")),
                         "<tf.Variable 'w:0' shape=(1,) dtype=float32, numpy=array([1.], dtype=float32)>")


class Borrowing(unittest.TestCase):
    """Large arrays: a temporary is kept as it is, anything that somebody else can reach is copied."""

    def kept(self, make):
        before = _C.info()["tensor_bytes"]
        x = make()
        data = np.frombuffer(memoryview(x), "f4")
        self.assertEqual(_C.info()["tensor_bytes"] - before, x.shape.num_elements() * 4)
        owner = memoryview(x)
        return x, data, owner

    def test_a_temporary_is_kept(self):
        seen = []

        class Spy:
            def __call__(self):
                a = np.full((600, 600), 2.0, "f4")
                seen.append(a.ctypes.data)
                return a

        x, data, _ = self.kept(lambda: tf.constant(Spy()()))
        self.assertEqual(data.ctypes.data, seen[-1])
        self.assertEqual(float(tf.reduce_sum(x)), 2 * 600 * 600)
        y, data, _ = self.kept(lambda: tf.convert_to_tensor(Spy()(), dtype=tf.float32))
        self.assertEqual(data.ctypes.data, seen[-1])
        del x, y, data, _

    def test_what_others_can_reach_is_copied(self):
        import functools
        a = np.ones((600, 600), "f4")
        holder, box = (np.ones((600, 600), "f4"),), [np.ones((600, 600), "f4")]
        partial = functools.partial(tf.constant, np.ones((600, 600), "f4"))
        refs = []

        def watched():
            b = np.ones((600, 600), "f4")
            refs.append(weakref.ref(b))
            return b

        made = [tf.constant(a), tf.constant(a[:]), tf.constant(*holder), tf.constant(box[0]), partial(), tf.constant(watched()),
                *map(tf.constant, box), tf.constant(a.T), tf.constant(a.reshape(-1))]
        a[:] = 5
        holder[0][:] = 5
        box[0][:] = 5
        partial.args[0][:] = 5
        for x in made:
            self.assertEqual(float(tf.reduce_sum(x)), 600 * 600)

    def test_bytes_go_with_the_tensor(self):
        before = _C.info()["bytes"]
        for _ in range(20):
            x = tf.constant(np.zeros((1000, 1000), "f4"))
            y = x + 1.0
            float(y[0, 0])
        del x, y
        self.assertLess(_C.info()["bytes"] - before, 1 << 20)


class Arguments(unittest.TestCase):
    """What was once taken and not heeded."""

    def test_ragged_rows_keep_dtype_and_are_checked(self):
        rows = tf.RaggedTensor.from_row_lengths(tf.constant([1, 2, 3], tf.int64), [1, 2])
        self.assertEqual((rows.dtype, rows.to_tensor(shape=[3, None]).numpy().tolist()), (tf.int64, [[1, 0], [2, 3], [0, 0]]))
        self.assertEqual((int(rows.row_lengths(axis=0)), int(rows.bounding_shape(axis=1))), (2, 2))
        deep = tf.ragged.constant([[[1], [2, 3]], [[4]]])
        self.assertEqual((deep.flat_values.numpy().tolist(), deep.values.to_list()), ([1, 2, 3, 4], [[1], [2, 3], [4]]))
        self.assertEqual(deep.row_lengths(axis=2).to_list(), [[1, 2], [1]])
        for wrong in ([1, 1], [4, -1]):
            self.assertRaises(tf.errors.InvalidArgumentError, tf.RaggedTensor.from_row_lengths, [1, 2, 3], wrong)
        self.assertRaises(NotImplementedError, tf.ragged.stack, [[1], [2]], 1)

    def test_wrong_bytes_become_what_is_asked_for(self):
        wrong = b"a\xff\xffb\x01\xe2\x82c"
        decode = lambda **kwargs: bytes(tf.strings.unicode_decode(wrong, "UTF-8", replacement_char=63, **kwargs).numpy().tolist())
        self.assertEqual((decode(), decode(replace_control_characters=True)), (b"a??b\x01?c", b"a??b??c"))
        self.assertEqual(decode(errors="ignore", replace_control_characters=True), b"abc")
        self.assertRaises(tf.errors.InvalidArgumentError, decode, errors="strict")
        self.assertEqual(tf.strings.unicode_encode([97, 0xd800, 0x110000], "UTF-8", replacement_char=63).numpy(), b"a??")

    def test_lengths_dtypes_and_sizes(self):
        ops, x = tf.keras.ops, np.arange(30, dtype="f4").reshape(5, 6)
        for length in ([4, 8], [7, 5], None):
            np.testing.assert_allclose(tf.signal.rfft2d(x, length).numpy(), np.fft.rfft2(x, length), atol=1e-3)
        made = [ops.logspace(0, 2, 3, dtype="float64"), ops.geomspace(1, 4, 3, dtype="float64"), ops.nancumsum([1.0], dtype="float64")]
        self.assertEqual([t.dtype.name for t in made], ["float64"] * 3)
        self.assertEqual(ops.vander(tf.constant([4099], tf.int64), N=3).numpy().tolist(), [[4099 ** 2, 4099, 1]])
        self.assertEqual(ops.unique([3, 1, 3, 2], size=5, fill_value=9).numpy().tolist(), [1, 2, 3, 9, 9])
        found, places = ops.unique([3, 1, 3, 2], sorted=False, return_inverse=True)
        self.assertEqual((found.numpy().tolist(), places.numpy().tolist()), ([3, 1, 2], [0, 1, 0, 2]))

    def test_channels_first_is_heeded_or_refused(self):
        ops, x = tf.keras.ops, np.random.rand(1, 3, 8, 6).astype("f4")
        first = ops.adaptive_max_pool(x, (2, 3), data_format="channels_first").numpy()
        np.testing.assert_array_equal(first.transpose(0, 2, 3, 1), ops.adaptive_max_pool(x.transpose(0, 2, 3, 1), (2, 3)).numpy())
        self.assertRaises(NotImplementedError, ops.image.sobel_edges, x, data_format="channels_first")

    def test_cross_entropies_along_an_axis_leave_the_others_in_order(self):
        r = np.random.default_rng(5)
        x, t = r.normal(size=(2, 3, 4, 5)).astype("f4"), r.random((2, 3, 4, 5)).astype("f4")
        last = tf.nn.softmax_cross_entropy_with_logits(t.transpose(0, 2, 3, 1), x.transpose(0, 2, 3, 1)).numpy()
        v1 = tf.compat.v1.nn
        for made in (tf.nn.softmax_cross_entropy_with_logits(t, x, axis=1), v1.softmax_cross_entropy_with_logits(labels=t, logits=x, dim=1),
                     v1.softmax_cross_entropy_with_logits_v2(labels=t, logits=x, axis=-3)):
            np.testing.assert_array_equal(made.numpy(), last)

    def test_the_last_axis_of_overlaps_is_an_axis(self):
        r = np.random.default_rng(3)
        t, p = (r.random((2, 3, 4)) > 0.5).astype("f4"), r.random((2, 3, 4)).astype("f4")
        both, all_t, all_p = (t * p).sum(-1), t.sum(-1), p.sum(-1)
        dice, tversky = 1 - 2 * both / (all_t + all_p + 1e-7), 1 - both / (both + 0.3 * (all_t - both) + 0.7 * (all_p - both) + 1e-7)
        losses = tf.keras.losses
        for last in (-1, 2):
            np.testing.assert_allclose(losses.Dice(axis=last)(t, p).numpy(), dice.mean(), 1e-5)
            np.testing.assert_allclose(losses.dice(t, p, axis=last).numpy(), dice, 1e-5)
            np.testing.assert_allclose(losses.Tversky(0.3, 0.7, axis=last)(t, p).numpy(), tversky.mean(), 1e-5)

    def test_rows_of_tables_are_shortened_each_alone(self):
        table = tf.Variable([[3.0, 4.0], [0.0, 0.0], [0.3, 0.4]])
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 2], max_norm=1.0))
        np.testing.assert_array_equal(tf.convert_to_tensor(tape.gradient(total, table)).numpy(), [[0, 0], [1, 1], [1, 1]])
        rows = tf.nn.embedding_lookup(table, tf.ragged.constant([[0], [2, 1]]), max_norm=1.0)
        np.testing.assert_allclose(rows.flat_values.numpy(), [[0.6, 0.8], [0.3, 0.4], [0, 0]], 1e-6)
        self.assertEqual(tf.nn.embedding_lookup(tf.constant([3.0, -4.0, 0.5]), [0, 1, 2], max_norm=1.0).numpy().tolist(), [1, -1, 0.5])
        zeros = tf.Variable(tf.zeros(3))
        with tf.GradientTape() as tape:
            y = tf.clip_by_norm(zeros, 2.0)
        self.assertEqual(tape.gradient(y, zeros).numpy().tolist(), [1, 1, 1])

    def test_diagonals_and_orders_that_cannot_be_are_refused(self):
        for diagonal, k in ((np.zeros((1,) * 7 + (2,), "f4"), 0), (np.zeros(2, "f4"), 1), (np.zeros(2, "f4"), -2 ** 63)):
            self.assertRaises(tf.errors.InvalidArgumentError, tf.linalg.set_diag, tf.zeros((2, 2)), diagonal, k=k)
        for k in (2 ** 63 - 1, -2 ** 63):
            self.assertRaises(tf.errors.InvalidArgumentError, tf.linalg.diag, [1.0, 2.0], k=k)
        self.assertRaises(tf.errors.InvalidArgumentError, tf.keras.ops.normalize, [1.0, 2.0], order=0)

    def test_sparse_labels_are_told_what_to_do(self):
        with self.assertRaisesRegex(NotImplementedError, "to_dense"):
            tf.nn.ctc_loss(tf.sparse.from_dense([[1, 2]]), tf.zeros((3, 1, 4)), [2], [3])

    def test_budgets_are_shares_and_short(self):
        _C.check_budget("50%")
        for wrong in ("150%", "0%", "nan%", "%", "-1%"):
            self.assertRaises(ValueError, _C.check_budget, wrong)
        self.assertRaises(ValueError, _C.wish, "1" * 40, None)
        self.assertRaises(OverflowError, _C.tell_passes, 1 << 80)


if __name__ == "__main__":
    unittest.main()
