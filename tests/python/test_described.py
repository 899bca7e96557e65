#!/usr/bin/env python3
"""help(), inspect.signature and completion show what TensorFlow's and Keras' do: every public function and class takes the arguments that
tests/parity/signatures.json has of it, in that order, with those defaults; or the difference stands in tests/parity/signatures_differ.txt
with a reason. Rows of layers have one default each, whichever way it is asked for."""
import inspect
import json
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PARITY = os.path.join(ROOT, "tests", "parity")
sys.path.insert(0, PARITY)
import signatures  # noqa: E402
from snug import _C, _check  # noqa: E402

# `name` is what an operation is called; all of Keras' classes take it, `dtype` and more, some as arguments and others among **kwargs.
NAMED = re.compile(r"\bname='[^']*'|\bname=<[^>]*>")
BESIDE = re.compile(r"(, )?(\bname=None|\bdtype=None|\*\*kwargs)(?=[,)])")


def plain(module, text):
    text = NAMED.sub("name=None", text)
    if module.startswith("keras.") and not module.startswith("keras.ops"):
        text = BESIDE.sub("", text).replace("(, ", "(")
    return text


def found_at(module, name):
    if _check.lacks(module) or _check.lacks(f"{module}.{name}"):
        return None
    import snug  # noqa: F401
    from snug import keras, tensorflow
    at = {"tensorflow": tensorflow, "keras": keras}[module.split(".")[0]]
    for part in module.split(".")[1:] + [name]:
        at = getattr(at, part)
    return at


def compared():
    """(module.name, recorded, ours) of all that both have and that are not the same."""
    with open(os.path.join(PARITY, "signatures.json")) as file:
        recorded = json.load(file)
    for module, names in recorded.items():
        if module == "tf.data.Dataset":
            continue
        dotted = module if module.startswith("keras") else "tensorflow" + module[2:]
        for name, text in names.items():
            at = None if text == signatures.OPEN else found_at(dotted, name)
            ours = signatures.describe(at)
            if ours is not None and plain(module, ours) != plain(module, text):
                yield f"{module}.{name}", text, ours


def known():
    """{module.name: what Snug shows} of the differences that have a reason."""
    found, reason = {}, None
    with open(os.path.join(PARITY, "signatures_differ.txt")) as file:
        for line in file.read().splitlines()[2:]:
            if line.startswith("# "):
                reason = line
            elif line:
                assert reason, line
                name, _, text = line.partition(" ")
                found[name] = text
    return found


class Signatures(unittest.TestCase):
    maxDiff = None

    def test_all_are_tensorflows_or_have_a_reason(self):
        found = {name: ours for name, _, ours in compared()}
        expected = known()
        self.assertEqual({n: t for n, t in found.items() if expected.get(n) != t}, {}, "new differences: mend them, or give a reason")
        self.assertEqual(sorted(set(expected) - set(found)), [], "these are the same now: take them from the list")

    def test_most_are_the_same(self):
        with open(os.path.join(PARITY, "signatures.json")) as file:
            recorded = sum(map(len, json.load(file).values()))
        self.assertGreater(recorded, 2900)
        self.assertLess(len(known()), 310)

    def test_a_class_of_the_users_shows_its_own(self):
        from snug import keras

        class Mine(keras.layers.Dense):
            def __init__(self, a, b=2):
                super().__init__(a + b)

        class Same(keras.layers.Dense):
            pass
        self.assertEqual(signatures.describe(Mine), "(a, b=2)")
        self.assertEqual(signatures.describe(Same), signatures.describe(keras.layers.Dense))
        self.assertEqual(list(inspect.signature(keras.layers.Dense(3)).parameters), ["args", "kwargs"])      # a call of it


class Help(unittest.TestCase):
    def test_each_layer_says_a_sentence(self):
        from snug.keras import layers
        for name in _C.layer_names():
            text = inspect.getdoc(getattr(layers, name))
            self.assertRegex(text, r"(?s)^\S.*\.$", name)

    def test_functions_say_a_sentence(self):
        from snug import keras, tensorflow as tf
        for function in (tf.matmul, tf.reduce_sum, keras.ops.matmul, tf.strings.length, tf.convert_to_tensor):
            self.assertRegex(inspect.getdoc(function), r"\w+ \w+.*\.$", function)

    def test_help_shows_arguments_and_the_sentence(self):
        import pydoc

        from snug import keras, tensorflow as tf
        text = pydoc.plain(pydoc.render_doc(keras.layers.LSTM))
        self.assertIn("class LSTM(_Built)\n |  LSTM(units, activation='tanh', recurrent_activation='sigmoid'", text)
        self.assertIn("Long short-term memory over the steps of sequences.", text)
        self.assertIn("matmul(a, b, transpose_a=False", pydoc.plain(pydoc.render_doc(tf.matmul)))
        self.assertIn("add(x1, x2)", pydoc.plain(pydoc.render_doc(keras.ops.add)))

    def test_completion_has_the_names(self):
        from snug.keras import layers
        self.assertLess({"Dense", "Conv2D", "MaxPool2D", "Bidirectional", "RandomCrop"}, set(dir(layers)))
        self.assertNotIn("LayerScale", dir(layers))


class Rows(unittest.TestCase):
    """The two defaults of a setting in a row of layers.def, the engine's and Python's, say the same."""

    # What None stands for; None where the engine finds it by other settings, or the class in Python does.
    ELSEWHERE = {"lora_rank", "lora_alpha", "quantization_config", "flash_attention", "gptq_unpacked_column_size", "weights", "use_cudnn",
                 "synchronized", "renorm", "renorm_clipping", "renorm_momentum", "sparse", "activity_regularizer", "batch_size", "shape",
                 "ragged", "input_tensor", "optional"}

    def agree(self, python, numbers, engine):
        if isinstance(engine, str):
            return (python or "linear").lower() == engine.lower() or python is None and engine in ("", "channels_last")
        if python is None or engine is None:
            return python is None and engine in (None, 0.0, -1.0, -2.0) or engine is None
        every = python if isinstance(python, tuple) else (python,)
        flat = [v for part in every for v in (part if isinstance(part, tuple) else (part,))]
        return all(v == engine for v in flat) and len(flat) in (1, numbers)

    def test_layers_that_run_a_cell_of_their_own_say_so(self):
        """Those with weights between steps; a cell alone knows no steps. Keras' files have their weights below the cell."""
        said = {name for name in _C.layer_names() if _C.layer_row(name)["cell"]}
        have = {name for name in _C.layer_names()
                if {"recurrent_initializer", "return_sequences"} <= {key for key in _C.layer_row(name)["settings"]}}
        self.assertEqual(said, have)
        self.assertEqual(len(said), 6)

    def test_defaults_agree(self):
        from snug.keras import _serial
        wrong = []
        for name in _C.layer_names():
            row = _C.layer_row(name)
            for key, default in _serial.parse_signature(row["arguments"]):
                if key in self.ELSEWHERE or default is _serial.REQUIRED:
                    continue
                if key not in row["settings"] or not self.agree(default, *row["settings"][key]):
                    wrong.append((name, key, default, row["settings"].get(key)))
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
