#!/usr/bin/env python3
"""Functions of keras.ops in configurations: their classes stand where Keras has them (tests/parity/names.txt, recorded), what is no tensor
is a setting under its name in the table, and a model that is read again, by Python or by the engine, is the same."""
import inspect
import json
import os
import unittest

import numpy as np

from snug import _plan, keras
from snug.keras import _operations, _symbolic, ops

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# No classes of Keras': they give no tensor, or are made of others.
NO_CLASS = {"convert_to_numpy", "dtype", "is_tensor", "shape", "image", "linalg", "nn", "numpy"}


def recorded():
    """{module of keras.ops: its names}"""
    with open(os.path.join(ROOT, "tests", "parity", "names.txt")) as file:
        lines = [line.split(":") for line in file if line.startswith("keras.ops")]
    return {module.removeprefix("keras.ops").removeprefix("."): set(names.split()) for module, names in lines}


def rows_of(model):
    return [row for row in model.get_config()["layers"] if row["module"].startswith("keras.src.ops")]


class Modules(unittest.TestCase):
    def test_each_function_has_its_module(self):
        names, mine = recorded(), {module: set(words.split()) for module, words in _operations._MODULES.items()}
        for module in ("nn", "linalg", "image"):
            self.assertEqual(mine[module], names[module], module)
        elsewhere = names[""] - names["nn"] - names["linalg"] - names["numpy"] - NO_CLASS
        self.assertEqual(mine["core"] | mine["math"] | mine["einops"], elsewhere)
        self.assertEqual(sum(map(len, mine.values())), len(set().union(*mine.values())))

    def test_classes_are_found_again(self):
        words = [word for word in recorded()[""] - NO_CLASS if ops._find(word) is not None]
        self.assertGreater(len(words), 240)
        for word in words:
            self.assertEqual(_symbolic.word_of(_symbolic.Operation(None, word).class_name), _symbolic._WORDS.get(word, word))
        for word, name in (("batch_normalization", "BatchNorm"), ("rms_normalization", "RMSNorm"), ("psnr", "PSNR"), ("irfft", "IRFFT"),
                           ("ctc_decode", "CTCDecode"), ("hsv_to_rgb", "HSVToRGB"), ("abs", "Absolute"), ("log_softmax", "LogSoftmax")):
            self.assertEqual(_symbolic.Operation(None, word).class_name, name)


class Settings(unittest.TestCase):
    def test_names_in_the_table_are_those_of_the_functions(self):
        found = 0
        for word in recorded()[""] - NO_CLASS:
            settings = {name for name, is_setting in _operations._arguments(word) if is_setting}
            if ops._find(word) is not None and settings:
                self.assertLessEqual(settings, set(inspect.signature(getattr(ops, word)).parameters), word)
                found += 1
        self.assertGreater(found, 100)
        self.assertEqual([key for key in _operations._OTHERWISE if key[1] not in dict(_operations._arguments(key[0]))], [])

    def test_what_is_no_tensor_is_a_setting(self):
        x, picture, places = keras.Input((4,), 2), keras.Input((4, 4, 1), 2), keras.Input((2,), 2, dtype="int32")
        for module, made, operands, config in (
                ("numpy", lambda: ops.mean(x, -1, True), 1, {"axis": -1, "keepdims": True}),
                ("numpy", lambda: ops.concatenate([x, x], 1), 1, {"axis": 1}),
                ("numpy", lambda: ops.reshape(x, (2, 2, 2)), 1, {"newshape": [2, 2, 2]}),
                ("numpy", lambda: ops.clip(x, 0.0, 1.0), 1, {"x_min": 0.0, "x_max": 1.0}),
                ("numpy", lambda: ops.take(x, [0, 1], 1), 2, {"axis": 1}),
                ("numpy", lambda: ops.take(x, places, 1), 2, {"axis": 1}),
                ("numpy", lambda: ops.quantile(x, 0.5, 1), 2, {"axis": 1}),
                ("numpy", lambda: ops.roll(x, 1, 1), 1, {"shift": 1, "axis": 1}),
                ("numpy", lambda: ops.maximum(x, 0.5), 2, {}),
                ("numpy", lambda: ops.where(x > 0.0, x, 0.0), 3, {}),
                ("numpy", lambda: x * 2.0, 2, {}),
                ("numpy", lambda: ops.transpose(x, (1, 0)), 1, {"axes": [1, 0]}),
                ("core", lambda: ops.slice(x, (0, 1), (2, 2)), 2, {"shape": [2, 2]}),
                ("core", lambda: ops.cast(x, "int32"), 1, {"dtype": "int32"}),
                ("math", lambda: ops.top_k(x, 2)[0], 1, {"k": 2}),
                ("math", lambda: ops.logsumexp(x, 1), 1, {"axis": 1}),
                ("nn", lambda: ops.leaky_relu(x, 0.3), 1, {"negative_slope": 0.3}),
                ("nn", lambda: ops.hard_shrink(x, 0.2), 1, {"threshold": 0.2}),
                ("nn", lambda: ops.one_hot(places, 3), 1, {"num_classes": 3}),
                ("nn", lambda: ops.max_pool(picture, 2, 2, "same"), 1, {"pool_size": 2, "strides": 2, "padding": "same"}),
                ("nn", lambda: ops.batch_normalization(x, ops.mean(x, 0), ops.var(x, 0), -1), 3, {"axis": -1}),
                ("image", lambda: ops.image.resize(picture, (2, 2)), 1, {"size": [2, 2]})):
            y = made()
            model = keras.Model([x, picture, places], y)
            row = next(row for row in reversed(rows_of(model)) if row["module"] == "keras.src.ops." + module)
            text = (row["class_name"], config)
            self.assertEqual({k: v for k, v in row["config"].items() if k != "name"}, config, text)
            self.assertEqual(len(row["inbound_nodes"][0]["args"]), operands, text)
            given = [np.linspace(-1, 1, 8).reshape(2, 4).astype("f4"), np.arange(32.0).reshape(2, 4, 4, 1).astype("f4"), np.int32([[0, 1], [1, 2]])]
            again = keras.models.model_from_json(model.to_json())
            np.testing.assert_array_equal(again(given), model(given), str(text))
            self.assertEqual(json.loads(again.to_json())["config"]["layers"][-1]["config"].keys(),
                             json.loads(model.to_json())["config"]["layers"][-1]["config"].keys())

    def test_the_engine_reads_what_python_writes(self):
        x = keras.Input((4,))
        y = ops.hard_shrink(ops.batch_normalization(x, ops.mean(x, 0), ops.var(x, 0), -1), 0.2)
        y = ops.leaky_relu(ops.mean(ops.clip(y, 0.0, 1.0), -1, True), 0.3)
        model = keras.Model(x, keras.layers.Dense(1)(y))
        self.assertIn("peak", str(_plan.plan(model, 8, train=False)))


if __name__ == "__main__":
    unittest.main()
