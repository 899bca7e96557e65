#!/usr/bin/env python3
"""An operation's own seed, and the program's: TensorFlow's rules for both, with numbers of the engine's."""
import unittest

import numpy as np

import snug.tensorflow as tf

# Of each, something that is drawn with a seed.
PICTURE = tf.reshape(tf.range(12 * 12 * 3), (12, 12, 3))
DRAWS = {
    "uniform": lambda seed: tf.random.uniform((8,), seed=seed),
    "whole": lambda seed: tf.random.uniform((8,), 0, 1000, tf.int32, seed=seed),
    "between": lambda seed: tf.random.uniform((8,), tf.constant(1.0), tf.constant(2.0), seed=seed),
    "normal": lambda seed: tf.random.normal((8,), seed=seed),
    "truncated": lambda seed: tf.random.truncated_normal((8,), seed=seed),
    "shuffle": lambda seed: tf.random.shuffle(tf.range(40), seed=seed),
    "categorical": lambda seed: tf.random.categorical(tf.zeros((1, 1000)), 8, seed=seed),
    "gamma": lambda seed: tf.random.gamma((8,), 2.0, seed=seed),
    "poisson": lambda seed: tf.random.poisson((8,), 500.0, seed=seed),
    "candidates": lambda seed: tf.random.uniform_candidate_sampler([[1]], 1, 8, False, 1000, seed=seed)[0],
    "dropout": lambda seed: tf.nn.dropout(tf.ones((80,)), 0.5, seed=seed),
    "crop": lambda seed: tf.image.random_crop(tf.range(1000000), (1,), seed=seed),
    "flips": lambda seed: tf.image.random_flip_left_right(tf.tile(PICTURE[None], (60, 1, 1, 1)), seed=seed)[:, 0, 0, 0],
    "brightness": lambda seed: tf.image.random_brightness(tf.zeros((1, 1, 3)), 0.5, seed=seed),
    "contrast": lambda seed: tf.image.random_contrast(PICTURE, 0.1, 0.9, seed=seed),
    "saturation": lambda seed: tf.image.random_saturation(tf.cast(PICTURE, tf.float32), 0.1, 0.9, seed=seed),
    "hue": lambda seed: tf.image.random_hue(tf.cast(PICTURE, tf.float32), 0.5, seed=seed),
}


def drawn(draw, *seeds):
    return [np.asarray(draw(seed)).tolist() for seed in seeds]


class SeedTest(unittest.TestCase):
    def test_both_seeds_fix_a_sequence(self):
        for name, draw in DRAWS.items():
            with self.subTest(name):
                tf.random.set_seed(5)
                first, second, other, free = drawn(draw, 1, 1, 2, None)
                self.assertEqual(len({str(v) for v in (first, second, other, free)}), 4)
                tf.random.set_seed(5)
                drawn(draw, None, 2, 2)                                # what others draw changes nothing
                self.assertEqual(drawn(draw, 1, 1), [first, second])
                tf.random.set_seed(6)
                self.assertNotEqual(drawn(draw, 1), [first])

    def test_a_seed_of_its_own_takes_none_of_the_programs_numbers(self):
        for name, draw in DRAWS.items():
            with self.subTest(name):
                tf.random.set_seed(5)
                free = drawn(draw, None, None)
                tf.random.set_seed(5)
                self.assertEqual(drawn(draw, 1, None, 0, None)[1::2], free)

    def test_in_a_function_each_place_draws_the_next_at_each_call(self):
        for name in set(DRAWS) - {"gamma", "poisson", "candidates"}:    # these run outside of traces
            with self.subTest(name):
                draw = DRAWS[name]
                tf.random.set_seed(5)
                eager = drawn(draw, 1, 1, 1)
                function = tf.function(lambda: (draw(1), draw(1), draw(2)))
                other = tf.function(lambda: draw(1))
                around = tf.function(lambda: function())
                called = lambda f: [np.asarray(v).tolist() for v in f()]
                tf.random.set_seed(5)
                calls = [called(function) for _ in range(3)]
                self.assertEqual([c[0] for c in calls], eager)
                self.assertEqual([c[1] for c in calls], eager)
                self.assertFalse(any(c[2] in eager for c in calls))
                self.assertEqual(np.asarray(other()).tolist(), eager[0])
                tf.random.set_seed(5)
                self.assertEqual([called(around) for _ in range(3)], calls)

    def test_a_loop_over_tensors_draws_the_next_each_time_round(self):
        draw = lambda: tf.random.uniform((), seed=1)

        def stacked(values):
            return tf.stack(list(values))

        def rows():
            out = tf.TensorArray(tf.float32, 4)
            for i in tf.range(4):
                out = out.write(i, draw())
            return out.stack()
        loops = {"rows": rows, "map": lambda: tf.map_fn(lambda x: x * 0 + draw(), tf.zeros(4)),
                 "scan": lambda: tf.scan(lambda state, x: x * 0 + draw(), tf.zeros(4), 0.0),
                 "while": lambda: tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, tf.concat([s[1:], [draw()]], 0)),
                                                (0, tf.zeros(4)), maximum_iterations=9)[1]}
        tf.random.set_seed(5)
        numbers = [float(draw()) for _ in range(8)]
        for name, loop in loops.items():
            with self.subTest(name):
                function = tf.function(lambda: (loop(), draw()))
                tf.random.set_seed(5)
                (first, after), (second, later) = ([v.numpy().tolist() for v in function()] for _ in range(2))
                self.assertEqual(first + second, numbers)
                self.assertEqual([after, later], numbers[:2])            # another place
        unrolled = tf.function(lambda: stacked(draw() for _ in range(3)))
        self.assertEqual(len(set(unrolled().numpy().tolist())), 1)       # three places, as in TensorFlow

    def test_in_a_session_each_operation_draws_the_next_at_each_run(self):
        v1 = tf.compat.v1
        with tf.Graph().as_default():
            pair = [v1.random_uniform((4,), seed=1), v1.random_uniform((4,), seed=1), v1.random_uniform((4,), seed=2)]
            runs = []
            for _ in range(2):
                with v1.Session() as session:
                    runs.append([[v.tolist() for v in session.run(pair)] for _ in range(2)])
        (first, second), again = runs
        self.assertEqual(first[0], first[1])
        self.assertEqual(second[0], second[1])
        self.assertEqual(len({str(v) for v in (first[0], first[2], second[0], second[2])}), 4)
        self.assertEqual(again, [first, second])

    def test_a_call_that_fails_draws_nothing(self):
        tf.random.set_seed(5)
        first = drawn(DRAWS["normal"], 1)
        tf.random.set_seed(5)
        with self.assertRaises(tf.errors.InvalidArgumentError):
            tf.random.normal((8,), tf.zeros((3,)), tf.ones((5,)), seed=1)
        self.assertEqual(drawn(DRAWS["normal"], 1), first)

    def test_a_seed_is_one_integer(self):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "seed must be one integer"):
            tf.random.uniform((2,), seed=[1, 2])

    def test_pipelines_draw_by_it_whatever_the_number_of_workers(self):
        def elements(seed, workers=None):
            tf.random.set_seed(1)
            return [float(v) for v in tf.data.Dataset.range(20).map(lambda x: tf.random.uniform((), seed=seed), num_parallel_calls=workers)]
        self.assertEqual(elements(1), elements(1, 3))
        self.assertFalse(set(elements(1)) & set(elements(2)))
        self.assertEqual(len(set(elements(1))), 20)

    def test_a_picture_and_its_mask_are_turned_together(self):
        pictures = tf.data.Dataset.from_tensors(PICTURE).repeat(40)
        turned = pictures.map(lambda x: (tf.image.random_flip_left_right(x, seed=3), tf.image.random_flip_left_right(x[..., :1], seed=3)))
        first = [(int(a[0, 0, 0]), int(b[0, 0, 0])) for a, b in turned]
        self.assertTrue(all(a == b for a, b in first))
        self.assertEqual(len(set(first)), 2)

    def test_keras_repeats_what_a_seed_gives(self):
        for draw in (lambda seed: tf.keras.random.normal((4,), seed=seed), lambda seed: tf.keras.random.shuffle(tf.range(40), seed=seed),
                     lambda seed: tf.random.stateless_uniform((4,), (seed, 0)), lambda seed: tf.keras.initializers.HeNormal(seed=seed)((4, 2)),
                     lambda seed: tf.keras.random.dropout(tf.ones(80), 0.5, seed=seed)):
            tf.random.set_seed(1)
            first, second, other = drawn(draw, 1, 1, 2)
            tf.random.set_seed(2)
            self.assertEqual(first, second)
            self.assertNotEqual(first, other)
            self.assertEqual(drawn(draw, 1), [first])


if __name__ == "__main__":
    unittest.main()
