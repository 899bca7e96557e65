#!/usr/bin/env python3
"""The command as people and scripts meet it: exit codes, messages, streams, JSON, the bar, Ctrl-C.
usage: test_cli.py PATH_OF_SNUG [unittest options]"""
import fcntl
import json
import math
import os
import pty
import re
import resource
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import files  # noqa: E402

SNUG = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/snug"
# A sanitizer build must answer requests that are too large, not stop, and must give freed memory back: budgets count it.
os.environ["ASAN_OPTIONS"] = "allocator_may_return_null=1:quarantine_size_mb=0"
COMMANDS = ["plan", "fit", "evaluate", "predict", "summary", "inspect", "ops", "layers", "doctor", "data", "make-data"]
DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")
BELOW_ANY = "1MiB"  # a budget that no process is within
# Two processes of the same command differ there by more than the budgets that are compared.
PLAIN = unittest.skipIf("SNUG_TEST_SANITIZED" in os.environ, "floors of several processes, which have a sanitizer's memory in them")
FULL = bool(os.environ.get("SNUG_TEST_FULL")) and "SNUG_TEST_SANITIZED" not in os.environ


def environment(**more):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    env.update({"TERM": "xterm", **more})
    return env


class Case(unittest.TestCase):
    """A folder with a model of 4 numbers and 3 classes, and data for it."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="snug-cli-")
        cls.model = files.model(
            cls.at("m.json"), 4, [files.dense("hidden", 8, "relu"), files.dense("out", 3, "softmax")],
            optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        rows = 40
        cls.x = files.npy(cls.at("x.npy"), "<f4", (rows, 4), [math.sin(i * 0.7) for i in range(rows * 4)])
        cls.y = files.npy(cls.at("y.npy"), "<i4", (rows,), [i * 7 % 3 for i in range(rows)])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    @classmethod
    def at(cls, name):
        return os.path.join(cls.dir, name)

    def run_snug(self, *args, env=None, **more):
        return subprocess.run([SNUG, *map(str, args)], capture_output=True, timeout=600, env=env or environment(), **more)

    def ok(self, *args, **more):
        r = self.run_snug(*args, **more)
        self.assertEqual(r.returncode, 0, r.stderr.decode())
        return r

    def fails(self, code, *pieces, args, **more):
        """Exits with the code; the pieces are in the message; nothing on stdout; no escapes in the message."""
        r = self.run_snug(*args, **more)
        text = r.stderr.decode()
        self.assertEqual(r.returncode, code, text)
        for piece in pieces:
            self.assertIn(piece, text)
        self.assertEqual(r.stdout, b"")
        self.assertIn("snug: ", text)
        self.assertNotIn("\x1b", text)
        return text

    def json_of(self, *args):
        r = self.ok(*args, "--json")
        return json.loads(r.stdout)

    def floor(self, *words):
        """The smallest budget that a plan tells, in bytes."""
        r = self.run_snug("plan", *words, "--train", "--quick", "--json", "--budget", BELOW_ANY)
        self.assertEqual(r.returncode, 3, r.stderr)
        return json.loads(r.stdout)["floor_bytes"]

    def fit_args(self, *more, x=None, y=None, model=None):
        return ["fit", model or self.model, "--x", x or self.x, "--y", y or self.y, *more]


class Spill(Case):
    """Slots of an optimizer in a file: the same weights from fewer bytes; folders that cannot are refused."""

    def smallest(self, *args):
        """What a refusal says is enough, in MiB."""
        r = self.run_snug(*args, "--budget", BELOW_ANY)
        self.assertEqual(r.returncode, 3, r.stderr)
        return float(re.search(rb"the smallest is ([0-9.]+) MiB", r.stderr).group(1))

    @PLAIN
    def test_small_budgets_train_the_same_weights(self):
        model = files.model(self.at("wide.json"), 512, [files.dense("a", 2048, "relu"), files.dense("b", 3, "softmax")],
                            optimizer="nadam", loss="sparse_categorical_crossentropy")
        fit = ["fit", model, "--x", "normal:80x512@1", "--y", "labels:80@2@3", "--batch", "32", "--epochs", "2",
               "--seed", "7"]
        high, low = self.smallest(*fit), self.smallest(*fit, "--spill", self.dir)
        self.assertLess(low + 2, high)
        budget = f"{(low + high) / 2:.1f}MiB"
        self.assertEqual(self.run_snug(*fit, "--budget", budget, "--spill", "off").returncode, 3)
        for out, more in (("plain", []), ("small", ["--budget", budget, "--spill", self.dir])):
            r = self.run_snug(*fit, "--save", self.at(out), *more)
            self.assertEqual(r.returncode, 0, r.stderr)
        with open(self.at("plain"), "rb") as a, open(self.at("small"), "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.assertFalse([n for n in os.listdir(self.dir) if n.startswith("snug-spill")])

    def test_folders_that_cannot_are_refused_by_name(self):
        for folder, text in (("/nowhere/at/all", b"No such file or directory"), ("/dev/shm", b"it is on tmpfs")):
            r = self.run_snug("fit", self.model, "--x", self.x, "--y", self.y, "--spill", folder)
            self.assertEqual(r.returncode, 6, r.stderr)
            self.assertIn(text, r.stderr)
            self.assertIn(folder.encode(), r.stderr)


class Usage(Case):
    def test_without_arguments_the_overview_goes_to_stderr(self):
        r = self.run_snug()
        self.assertEqual((r.returncode, r.stdout), (2, b""))
        self.assertIn(b"usage: snug COMMAND", r.stderr)

    def test_help_goes_to_stdout(self):
        for args in (["--help"], ["-h"], ["help"]):
            r = self.ok(*args)
            self.assertEqual(r.stderr, b"")
            for command in COMMANDS:
                self.assertIn(f"  {command} ".encode(), r.stdout)
            for code in ("0 ok", "2 usage", "3 does not fit", "4 bad input", "5 NaN", "6 file", "70", "130"):
                self.assertIn(code.encode(), r.stdout)

    def test_help_of_every_command_tells_defaults(self):
        for command in COMMANDS:
            for args in ([command, "--help"], [command, "-h"], ["help", command]):
                r = self.ok(*args)
                self.assertTrue(r.stdout.startswith(f"usage: snug {command} ".encode()))
            options = re.findall(r"^  (--[a-z-]+) (\S*)\s+(.*)$", r.stdout.decode(), re.M)
            self.assertIn("--json", [o[0] for o in options])
            for name, _, text in options:
                if name != "--help":
                    self.assertRegex(text, r"default|required", f"{command} {name}")
            self.assertTrue(all(len(line) <= 110 for line in r.stdout.decode().splitlines()), command)

    def test_version(self):
        for word in ("--version", "version"):
            self.assertRegex(self.ok(word).stdout, rb"^snug \d+\.\d+\.\d+\n$")

    def test_unknown_command(self):
        self.fails(2, "there is no command 'frobnicate'", "snug --help", args=["frobnicate"])
        self.fails(2, "there is no command 'fti'", "did you mean `snug fit`?", args=["fti"])
        self.fails(2, "there is no command 'frobnicate'", args=["help", "frobnicate"])

    def test_unknown_option(self):
        self.fails(2, "snug ops has no option --sparkle", "snug ops --help", args=["ops", "--sparkle"])
        self.fails(2, "snug fit has no option --epoch", "did you mean --epochs?", args=["fit", "m", "--epoch", 3])
        self.fails(2, "snug ops has no option --epochs", args=["ops", "--epochs", 3])
        self.fails(2, "snug ops has no option -q", args=["ops", "-q"])

    def test_missing_and_wrong_values(self):
        for args, piece in (
                (["fit", "m", "--epochs"], "--epochs needs a value: N"),
                (["fit", "m", "--epochs="], "--epochs has an empty value"),
                (["ops", "--json=yes"], "--json takes no value"),
                (["fit"], "snug fit needs MODEL"),
                (["make-data", "blobs"], "snug make-data needs shapes|blobs DIR"),
                (["ops", "extra"], "'extra' is one too many; it takes options only"),
                (["plan", "a", "b"], "'b' is one too many; it takes MODEL"),
                (["ops", "--color", "pink"], "--color is auto, always or never, not 'pink'"),
                (["ops", "--threads", "0"], "--threads 0: a whole number from 1 to 1024 is needed"),
                (["ops", "--threads", "two"], "--threads two: a whole number"),
                (["fit", self.model], "fit needs --x and --y"),
                (["evaluate", self.model, "--x", self.x], "evaluate needs --x and --y"),
                (["predict", self.model, "--x", self.x], "predict needs --x and --out"),
                (self.fit_args("--val-x", self.x), "--val-y is missing"),
                (self.fit_args("--epochs", "0"), "--epochs 0: a whole number of at least 1"),
                (self.fit_args("--epochs", "99999999999"), "--epochs 99999999999: a whole number of at most"),
                (self.fit_args("--batch", "1.5"), "--batch 1.5: a whole number of at least 1"),
                (self.fit_args("--batch", "-1"), "--batch -1: a whole number of at least 1"),
                (self.fit_args("--seed", "-1"), "--seed -1: a whole number of at least 0"),
                (self.fit_args("--validation-split", "1"), "--validation-split 1: a number from 0 to 0.999"),
                (self.fit_args("--validation-split", "nan"), "--validation-split nan: a number"),
                (self.fit_args("--dtype", "f16"), "--dtype is f32 or f64, not 'f16'"),
                (self.fit_args("--precision", "i8"), "'i8' is no dtype policy; there are float32, "),
                (self.fit_args("--precision", "mixed_f32"), "'mixed_f32' is no dtype policy"),
                (self.fit_args("--precision", "f32", "--dtype", "f32"), "--dtype and --precision say the same"),
                (["make-data", "spirals", self.at("d")], "there is no data set 'spirals'; there are: shapes, blobs"),
                (["make-data", "blobs", self.at("d"), "--train-rows", "0"], "--train-rows 0")):
            with self.subTest(args):
                self.fails(2, piece, args=args)

    def test_wrong_contents_of_a_model_are_4(self):
        """Nobody typed them: what the file says is wrong, not the command."""
        with open(self.model) as file:
            good = json.load(file)

        def written(change):
            made = json.loads(json.dumps(good))
            change(made, next(row["config"] for row in made["config"]["layers"] if "units" in row["config"]))
            with open(self.at("wrong.json"), "w") as file:
                json.dump(made, file)
            return self.at("wrong.json")
        for change, piece in ((lambda m, d: d.update(units=-1), "units=-1"), (lambda m, d: d.update(units=1 << 62), "units"),
                              (lambda m, d: d.update(units=2.5), "whole number"), (lambda m, d: d.update(units="x"), "is no number"),
                              (lambda m, d: d.pop("units"), "units=0"), (lambda m, d: d.update(kernel_initializer="spiral"), "spiral"),
                              (lambda m, d: m["config"]["layers"].append(m["config"]["layers"][-1]), "already")):
            path = written(change)
            for command in ("inspect", "plan", "summary"):
                with self.subTest(piece, command=command):
                    self.fails(4, piece, args=[command, path])
        rate = {"class_name": "Adam", "config": {"learning_rate": -1}}
        path = written(lambda m, d: m.update(compile_config={"optimizer": rate, "loss": "mse"}))
        self.fails(4, "learning_rate", args=["fit", path, "--x", self.x, "--y", self.y])
        self.fails(4, "has more bytes than any file", args=["inspect", self.huge_weights()])

    def huge_weights(self):
        head = b'{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}'
        with open(self.at("huge.safetensors"), "wb") as file:
            file.write(len(head).to_bytes(8, "little") + head)
        return self.at("huge.safetensors")

    def test_equals_sign_and_space_are_the_same(self):
        a = self.ok("plan", self.model, "--batch", "8", "--json").stdout
        b = self.ok("plan", "--batch=8", self.model, "--json").stdout
        self.assertEqual(json.loads(a)["arena_bytes"], json.loads(b)["arena_bytes"])
        self.assertEqual(json.loads(b)["batch"], 8)


class Page(Case):
    """docs/command.md says what the command does."""

    def setUp(self):
        self.page = files.read(os.path.join(os.path.dirname(DATA), "..", "docs", "command.md")).decode()

    def test_every_command_and_exit_code_is_on_the_page(self):
        for command in COMMANDS:
            self.assertIn(f"| `snug {command}", self.page)
        for code in ("0", "1", "2", "3", "4", "5", "6", "70", "128 + n"):
            self.assertIn(f"\n| {code} | ", self.page)

    def test_every_json_key_is_on_the_page(self):
        w = self.at("page.safetensors")
        for args in (["plan", self.model, "--train", "-v"], self.fit_args("--memory", "--save", w), ["summary", self.model],
                     ["inspect", self.model], ["inspect", self.x], ["inspect", w], ["ops"], ["doctor"],
                     ["predict", self.model, "--x", self.x, "--out", self.at("page.npy")],
                     ["make-data", "blobs", self.at("page"), "--train-rows", 2, "--test-rows", 2]):
            value = self.json_of(*args)
            row = next(r for r in self.page.splitlines() if r.startswith(f"| {args[0]} |"))
            for key in value[0] if isinstance(value, list) else value:
                if key not in ("accuracy", "kind"):
                    self.assertRegex(row if key != "memory" or args[0] != "fit" else self.page, rf"\b{key}\b", args[0])


class BadInput(Case):
    def test_missing_files(self):
        for args in (["plan", "no/model.json"], self.fit_args(model="no/model.json"), self.fit_args(x="no/model.json"),
                     self.fit_args("--weights", "no/model.json"), ["inspect", "no/model.json"]):
            with self.subTest(args):
                self.fails(6, "no/model.json", "No such file", args=args)
        self.fails(6, "directory", args=["inspect", self.dir])

    def test_truncated_npy(self):
        data = files.read(self.x)
        for n in (0, 5, 20, 100, len(data) - 1):
            path = self.at("cut.npy")
            files.write(path, data[:n])
            self.fails(4, path, args=self.fit_args(x=path))
        self.fails(4, "truncated: its header describes 640 bytes of data, 639 are there", args=self.fit_args(x=path))

    def test_wrong_shape(self):
        wide = files.npy(self.at("wide.npy"), "<f4", (40, 5), [0] * 200)
        self.fails(4, "5", "4", args=self.fit_args(x=wide))
        few = files.npy(self.at("few.npy"), "<i4", (39,), [0] * 39)
        self.fails(4, "40", "39", args=self.fit_args(y=few))
        deep = files.npy(self.at("deep.npy"), "<f4", (40, 2, 2), [0] * 160)
        self.fails(4, "[40,2,2]", args=self.fit_args(x=deep))

    def test_wrong_dtype(self):
        labels = files.npy(self.at("labels.npy"), "<f4", (40,), [0] * 40)
        self.fails(4, "y is f32[40]", "whole numbers", args=self.fit_args(y=labels))

    def test_layers_lists_every_class_with_its_settings(self):
        text = self.ok("layers").stdout.decode()
        self.assertRegex(text, r"(?m)^Dense$")
        self.assertIn("units=0 activation=linear use_bias=true", text)
        rows = self.json_of("layers")
        self.assertIn("BatchNormalization", [r["class"] for r in rows])

    def test_unknown_layer_is_named_with_those_like_it(self):
        path = files.model(self.at("unknown.json"), 4, [{"class_name": "Conv7D", "config": {"name": "c"}}])
        for command in ("plan", "summary", "inspect"):
            text = self.fails(1, "Conv7D", "Conv2D", "Conv1D", "snug layers", "layers.def", args=[command, path])
            self.assertIn(path, text)

    def test_labels_out_of_range(self):
        for bad in (3, -1):
            y = files.npy(self.at("bad.npy"), "<i4", (40,), [0] * 33 + [bad] + [0] * 6)
            self.fails(4, "row 33 of y", f"label {bad}", "3 classes", args=self.fit_args(y=y))

    def test_nan_in_the_data_stops_before_the_first_state_write(self):
        w = self.at("start.safetensors")
        self.ok(*self.fit_args("--save", w))
        x = files.npy(self.at("nan.npy"), "<f4", (40, 4), [0.5] * 100 + [-math.nan] + [0.5] * 59)
        saved = self.at("after.safetensors")
        text = self.fails(5, "nan", args=self.fit_args("--weights", w, "--save", saved, x=x))
        self.assertIn("row 25 of x has nan", text)
        self.assertFalse(os.path.exists(saved))

    def test_a_nan_is_shown_without_its_sign(self):
        x = files.npy(self.at("nan.npy"), "<f4", (40, 4), [-math.nan] * 160)
        r = self.ok("evaluate", self.model, "--x", x, "--y", self.y)
        self.assertRegex(r.stdout.decode(), r"^loss: nan\b")

    def test_nan_made_by_a_layer_is_found(self):
        model = files.model(self.at("exp.json"), 4, [files.dense("fine", 4), files.dense("boom", 4, "exponential"),
                                                      files.dense("out", 1)])
        x = files.npy(self.at("big.npy"), "<f4", (40, 4), [3e38] * 160)
        y = files.npy(self.at("y1.npy"), "<f4", (40, 1), [0.0] * 40)
        text = self.fails(5, "epoch 1, step 1 of 2", args=self.fit_args(model=model, x=x, y=y))
        self.assertRegex(text, r"layer (fine|boom)")

    def test_nothing_but_whole_steps_is_kept_when_the_loss_explodes(self):
        model = files.model(self.at("line.json"), 4, [files.dense("out", 1)])
        y = files.npy(self.at("y1.npy"), "<f4", (40, 1), [1e3] * 40)
        text = self.fails(5, "epoch", args=self.fit_args("--optimizer", "sgd:lr=1e30", "--epochs", 50, model=model, y=y))
        self.assertIn("learning rate", text)
        self.assertEqual(text.count("check_finite"), 1, text)
        self.assertNotIn("-nan", text)

    def test_batch_larger_than_the_data_is_all_of_it(self):
        r = self.json_of(*self.fit_args("--batch", 1000))
        self.assertEqual(r["steps"], 1)

    def test_json_nested_10000_deep(self):
        path = self.at("deep.json")
        files.write(path, ("[" * 10000 + "]" * 10000).encode())
        self.fails(4, path, "nested deeper than 64 levels", args=["plan", path])
        self.fails(4, path, "nested deeper than 64 levels", args=["inspect", path])

    def test_tensor_of_2_to_the_62_bytes(self):
        header = json.dumps({"a": {"dtype": "F32", "shape": [1 << 60], "data_offsets": [0, 1 << 62]}}).encode()
        path = self.at("huge.safetensors")
        files.write(path, struct.pack("<Q", len(header)) + header)
        self.fails(4, path, args=["inspect", path])
        self.fails(4, path, args=["fit", self.model, "--x", self.x, "--y", self.y, "--weights", path])
        path = files.npy(self.at("huge.npy"), "<f4", (1 << 60,), raw=b"")
        self.fails(4, path, "4611686018427387904 bytes", args=self.fit_args(x=path))
        path = files.model(self.at("huge.json"), 1 << 20, [files.dense("d", 1 << 40)])
        r = self.run_snug("fit", path, "--x", f"zeros:8x{1 << 20}", "--y", f"zeros:8x{1 << 40}")
        self.assertIn(r.returncode, (1, 3), r.stderr)
        path = files.model(self.at("huger.json"), 1 << 30, [files.dense("d", 1 << 40)])
        self.fails(4, "address space", args=["plan", path])

    def test_output_that_cannot_be_written(self):
        below = os.path.join(self.x, "out")  # a file where a folder should be
        for option in ("--save", "--save-best", "--csv"):
            text = self.fails(6, below, args=self.fit_args(option, below))
            self.assertNotIn("Epoch", text)  # told before training
        self.fails(6, below, args=["predict", self.model, "--x", self.x, "--out", below])
        self.fails(6, below, args=["make-data", "blobs", below])
        self.fails(6, "/proc/none/w", args=self.fit_args("--save", "/proc/none/w"))

    def test_full_disk(self):
        """A limit on the size of files stands for the disk: writing more is refused."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256))
        out = self.at("full.npy")
        self.fails(6, out, "cannot write", args=["predict", self.model, "--x", self.x, "--out", out], preexec_fn=limit)
        save = self.at("full.safetensors")
        self.fails(6, save, "cannot write", args=self.fit_args("--save", save), preexec_fn=limit)
        self.fails(6, "x_train.npy", args=["make-data", "blobs", self.at("full")], preexec_fn=limit)
        self.assertEqual([n for n in os.listdir(self.dir) if n.startswith("full.")], [])
        self.assertEqual(os.listdir(self.at("full")), [])

    def test_full_stdout(self):
        for args in (["ops"], ["--help"], ["--version"], ["plan", self.model], ["plan", self.model, "--json", "-v"],
                     ["summary", self.model], ["inspect", self.x], ["evaluate", self.model, "--x", self.x, "--y", self.y]):
            with open("/dev/full", "w") as full, self.subTest(args):
                r = subprocess.run([SNUG, *args], stdout=full, stderr=subprocess.PIPE, timeout=600)
                self.assertEqual(r.returncode, 6, r.stderr)
                self.assertIn(b"standard output", r.stderr)

    def test_weights_of_another_model(self):
        w, other = self.at("w.safetensors"), files.model(self.at("o.json"), 4, [files.dense("hidden", 9), files.dense("out", 3)])
        self.ok(*self.fit_args("--save", w))
        self.fails(4, "hidden/kernel", "[4,8]", "[4,9]", args=["plan", other, "--weights", w])
        third = files.model(self.at("t.json"), 4, [files.dense("third", 3)])
        self.fails(4, "third/kernel", w, args=["plan", third, "--weights", w])
        os.truncate(w, 50)
        self.fails(4, w, args=["plan", self.model, "--weights", w])

    def test_one_tensor_is_not_two_weights(self):
        """A short name is accepted only where it means one weight."""
        entries, at = {}, 0
        for name, shape in (("kernel", [4, 4]), ("bias", [4])):
            n = 4 * math.prod(shape)
            entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
            at += n
        header = json.dumps(entries).encode()
        w = files.write(self.at("short.safetensors"), struct.pack("<Q", len(header)) + header + bytes(at))
        one = files.model(self.at("one.json"), 4, [files.dense("a", 4)])
        two = files.model(self.at("two.json"), 4, [files.dense("a", 4), files.dense("b", 4)])
        self.ok("plan", one, "--weights", w)
        self.fails(4, "'kernel' could be a/kernel and b/kernel", args=["plan", two, "--weights", w])

    def test_text_from_files_cannot_speak_to_the_terminal(self):
        path = files.model(self.at("esc.json"), 4, [{"class_name": "Evil\x1b[2J\x07", "config": {}}])
        text = self.fails(1, "Evil?[2J?", args=["plan", path])
        self.assertNotIn("\x07", text)

    def test_files_of_another_kind_are_named(self):
        w = self.at("kind.safetensors")
        self.ok(*self.fit_args("--save", w))
        self.fails(4, self.x + " is an array (.npy), not a model", "to_json()", args=["plan", self.x])
        self.fails(4, w + " is weights (safetensors), not a model", args=["plan", w])
        self.fails(4, "expected snug plan 1 before '{", args=self.fit_args("--plan", self.model))

    def test_a_step_that_the_machine_cannot_hold_names_the_budget(self):
        rows = 10 ** 12
        self.fails(1, "TiB) for arena exceed the", "--budget auto", args=self.fit_args("--batch", rows, x=f"normal:{rows}x4@1", y=f"labels:{rows}@1@3"))

    def test_shapes_of_open_axes(self):
        open_ = files.model(self.at("open.json"), [None, None, 3], [{"class_name": "Flatten", "config": {"name": "f"}}])
        self.fails(2, "axis 1 of its input 'input' is open", "--input-shape 96,96,3", args=["plan", open_])
        for shape in ("96,abc,3", "96,96,3,7", "96x96x3", "99999999999,96,3", "-1,96,3"):
            self.fails(2, f"the shape '{shape}' is none of its input", "like 96,96,3", args=["plan", open_, "--input-shape=" + shape])
        self.assertEqual(self.json_of("plan", open_, "--input-shape", "4,5,3")["layers"][0]["output"], [32, 60])

    def test_numbers_that_are_too_large_are_usage(self):
        self.fails(2, "'norml:40x4@1' is neither a file nor a recipe", "normal:SHAPE@SEED", args=self.fit_args(x="norml:40x4@1"))
        self.fails(2, "--batch", "at most 1099511627776", args=["plan", self.model, "--batch", (1 << 63) - 1])
        self.fails(2, "more than the", "address space", args=["plan", self.model, "--budget", "9" * 30])

    def test_a_batch_of_more_rows_than_a_plan_has_slices(self):
        """Each row alone would be one more than a plan may have."""
        r = self.run_snug("plan", self.model, "--batch", (1 << 20) + 1, "--budget", BELOW_ANY, "--quick", "--json")
        self.assertIn(r.returncode, (0, 3), r.stderr)
        self.assertLessEqual(json.loads(r.stdout)["slices"], 1 << 20)

    def test_a_disk_without_room_for_the_weights_is_told_before_the_first_step(self):
        model = files.model(self.at("broad.json"), 4, [files.dense("broad", 9000), files.dense("d", 3)], optimizer="adam", loss="mse")
        disk = self.at("disk")
        os.mkdir(disk)
        words = [SNUG, "fit", model, "--x", "missing.npy", "--y", "missing.npy", "--save", os.path.join(disk, "w.safetensors")]
        r = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k tmpfs "$0" || exit 77; exec "$@"', disk, *words],
                           capture_output=True, text=True)
        if r.returncode == 77 or r.stderr.startswith("unshare:"):
            self.skipTest(f"nothing can be mounted here: {r.stderr}")
        self.assertEqual(r.returncode, 6, r.stderr)
        self.assertIn("it will have 281.3 KiB and that disk has 64.0 KiB left", r.stderr)

    def test_a_folder_in_the_place_of_a_file_is_told_before_the_work(self):
        for option in ("--save", "--csv"):
            self.fails(6, f"cannot write '{self.dir}': it is a folder", args=self.fit_args(option, self.dir, x="missing.npy"))
        self.fails(6, "it is a folder; name a file", args=["predict", self.model, "--x", self.x, "--out", self.dir])
        self.fails(2, "has no option --lr; `snug fit --help`", args=self.fit_args("--lr", "3"))

    def test_pages_and_plans_are_whole_or_not_there(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
        for option in ("--html", "--save-plan"):
            path = self.at("page" + option)
            self.fails(6, f"cannot write '{path}'", "File too large", args=["plan", self.model, option, path], preexec_fn=limit)
            self.assertFalse(os.path.exists(path) or os.path.exists(path + ".tmp"))

    def test_what_is_no_file_is_not_replaced_by_one(self):
        """As /dev/stdout, which is a link."""
        link, target = self.at("link.plan"), self.at("target.plan")
        os.symlink(target, link)
        self.ok("plan", self.model, "--save-plan", link)
        self.assertTrue(os.path.islink(link))
        with open(target) as f:
            self.assertTrue(f.read().startswith("snug plan 1"))
        os.symlink("target.weights", self.at("link.weights"))
        self.ok(*self.fit_args("--save", self.at("link.weights"), "--csv", "/dev/null"))
        self.assertTrue(os.path.islink(self.at("link.weights")))
        self.assertGreater(os.path.getsize(self.at("target.weights")), 400)
        os.symlink("no/folder/w", self.at("astray.weights"))
        r = self.run_snug(*self.fit_args("--save", self.at("astray.weights")))
        self.assertEqual(r.returncode, 6)
        self.assertIn(b"astray.weights': No such file", r.stderr)
        self.assertNotIn(b"Epoch", r.stdout + r.stderr)  # before the first step
        self.ok("predict", self.model, "--x", self.x, "--out", "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        predict = ("predict", self.model, "--x", self.x, "--weights", self.at("link.weights"), "--out")
        self.ok(*predict, self.at("out.npy"))
        piped = self.ok(*predict, "/dev/stdout").stdout
        with open(self.at("out.npy"), "rb") as f:
            self.assertEqual(f.read(), piped)

    def test_archives_say_what_to_do(self):
        path = self.at("m.keras")
        files.write(path, b"PK\x03\x04rest")
        self.fails(1, ".keras archive", "to_json()", args=["plan", path])


class Json(Case):
    def keys(self, value, *keys):
        self.assertEqual(sorted(value), sorted(keys))

    def test_plan_within_a_budget(self):
        plan = ["plan", self.model, "--batch", 8, "--train"]
        roomy = self.floor(self.model, "--batch", 8) + (50 << 20)
        self.assertEqual(self.json_of(*plan, "--budget", roomy, "--quick")["floor_bytes"], 0)
        p = self.json_of(*plan, "--budget", roomy)
        self.assertTrue(p["fits"])
        self.assertEqual(sum(r["bytes"] for r in p["rows"] if not r["in_arena"]), roomy)
        self.assertLess(p["peak_bytes"], p["floor_bytes"] + (8 << 20))
        self.assertEqual(p["means"], [])
        self.assertTrue(self.json_of(*plan, "--budget", roomy, "--best")["fits"])
        small = self.run_snug(*plan, "--budget", BELOW_ANY, "--json")
        self.assertEqual(small.returncode, 3)
        self.assertIn(b"does not fit 1.0 MiB", small.stderr)
        p = json.loads(small.stdout)
        self.assertFalse(p["fits"])
        self.assertTrue(self.json_of(*plan, "--budget", p["floor_bytes"])["fits"])

    def test_a_budget_too_small_is_refused_before_data_is_looked_at(self):
        r = self.run_snug("fit", self.model, "--x", "missing.npy", "--y", "missing.npy", "--budget", BELOW_ANY)
        self.assertEqual(r.returncode, 3)
        self.assertRegex(r.stderr, rb"budget of 1\.0 MiB is too small .* the smallest is \d+\.\d MiB")
        r = self.run_snug("plan", self.model, "--batch", "64", "--train", "--budget", BELOW_ANY)
        self.assertEqual(r.returncode, 3)
        for text in (b"does not fit 1.0 MiB: the smallest budget is", b"even the smallest plan has an arena of",
                     b"what would fit:", b"--budget ", b"--optimizer sgd"):
            self.assertIn(text, r.stdout)

    @PLAIN
    def test_nothing_fits_below_the_smallest_budget(self):
        # a wide layer under Adam: its plan without a gradient is smaller than any with one
        model = files.model(self.at("wide.json"), 512, [files.dense("a", 2048, "relu")], optimizer="adam", loss="mse")
        plan = [SNUG, "plan", model, "--train", "--threads", "1", "--json", "--budget"]
        floor = self.floor(model, "--threads", "1")
        for more, code in ((-(1 << 20), 3), (256 << 10, 0)):
            self.assertEqual(subprocess.run(plan + [str(floor + more)], capture_output=True).returncode, code)

    def test_batches_that_are_advised_fit(self):
        model = os.path.join(os.path.dirname(DATA), "..", "examples", "models", "shapes_cnn.json")
        common = [SNUG, "plan", model, "--train", "--threads", "1"]
        budget = self.floor(model, "--threads", "1", "--batch", "1") - (512 << 10)  # not even a batch of 1 fits
        for more in (0, 640 << 10):
            r = subprocess.run(common + ["--batch", "64", "--budget", str(budget + more)], capture_output=True, text=True)
            for batch in re.findall(r"--batch (\d+)", r.stdout):
                slack = str(budget + more + (256 << 10))
                self.assertTrue(self.json_of(*common[1:], "--batch", batch, "--budget", slack)["fits"])

    @PLAIN
    def test_the_trade_from_no_limit_to_the_floor(self):
        curve = self.json_of("plan", self.model, "--batch", 512, "--train", "--curve")["points"]
        self.assertGreaterEqual(len(curve), 2)
        for fast, small in zip(curve, curve[1:]):
            self.assertLessEqual(small["budget_bytes"], fast["budget_bytes"])
            self.assertGreaterEqual(small["step_seconds"], fast["step_seconds"])
        self.assertEqual(curve[0]["slices"], 1)
        floor = curve[-1]["budget_bytes"]
        self.assertTrue(self.json_of("plan", self.model, "--batch", 512, "--train", "--budget", floor)["fits"])

    def test_a_page_stands_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.html")
            roomy = self.floor(self.model, "--batch", 64) + (50 << 20)
            self.json_of("plan", self.model, "--batch", 64, "--train", "--budget", roomy, "--html", path)
            with open(path) as file:
                page = file.read()
        self.assertTrue(page.startswith("<!doctype html>"))
        self.assertEqual(page.count("<svg"), 3)
        self.assertEqual(page.count("<svg"), page.count("</svg>"))
        self.assertIn("</style>", page)
        self.assertNotRegex(page, r"(?i)https?://|<script|@import|url\(")
        self.assertNotIn("nan", page.lower())
        bytes_of, during = (re.findall(r"<li><span style=\"background:var\((--\w+)\)\"></span>([a-z, ]+)", part)
                            for part in page.split("<h2>")[2:])
        self.assertIn("validation, remainder ", [name for _, name in bytes_of])
        for legend in bytes_of, during:
            self.assertEqual(len({color for color, _ in legend}), len(legend))
            self.assertTrue(all(page.count(color + ":#") == 2 for color, _ in legend))  # in light and in dark

    def test_budgets_of_a_page_can_be_read_off(self):
        """Also where no power of two lies between them."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.html")
            self.json_of("plan", self.model, "--train", "--html", path)
            with open(path) as file:
                trade = file.read().split("</svg>")[0]
        self.assertGreaterEqual(len(re.findall(r"text-anchor=middle>[0-9.]+ [KMG]iB<", trade)), 2)

    def test_a_plan_that_was_saved_is_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.txt")
            plan = self.json_of("plan", self.model, "--batch", 8, "--train", "--save-plan", path)
            fit = [SNUG, *map(str, self.fit_args()), "--batch", "8", "--plan", path, "--json"]
            done = subprocess.run(fit, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["arena_bytes"], plan["arena_bytes"])
            roomy = subprocess.run(fit + ["--budget", str(plan["peak_bytes"] + (50 << 20))], capture_output=True, text=True)
            self.assertEqual(roomy.returncode, 0, roomy.stderr)
            needs = r"plan that was given needs \d+\.\d MiB, the budget is "
            for budget, words in ((BELOW_ANY, needs + r"1\.0 MiB"), (str(plan["peak_bytes"] * 4 // 5), needs + "|do not fit the budget of")):
                tight = subprocess.run(fit + ["--budget", budget], capture_output=True, text=True)
                self.assertEqual(tight.returncode, 3, tight.stderr)
                self.assertRegex(tight.stderr, words)
            fit[fit.index("--batch") + 1] = "16"
            wrong = subprocess.run(fit, capture_output=True, text=True)
            self.assertEqual(wrong.returncode, 4, wrong.stderr)
            self.assertIn("of another model, batch, machine or version", wrong.stderr)

    def test_budgets_that_are_none(self):
        for text, words in (("0", "0"), ("-5MiB", "-5MiB"), ("lots", "lots"), ("900TiB", "900TiB"), ("0%", "0%"),
                            ("150%", "150%"), ("", "")):
            r = subprocess.run([SNUG, "plan", self.model, "--budget", text], capture_output=True, text=True)
            self.assertEqual(r.returncode, 2, r.stderr)
            self.assertIn(words, r.stderr)
            self.assertIn("budget", r.stderr)

    def test_plan(self):
        for train in ([], ["--train"]):
            p = self.json_of("plan", self.model, "--batch", 8, *train)
            self.keys(p, "model", "batch", "train", "peak_bytes", "fits", "budget_bytes", "floor_bytes", "slices",
                      "precision", "recomputed", "spilled_bytes", "step_seconds", "plain_seconds", "means", "state_bytes", "arena_bytes", "lower_bound_bytes", "gap",
                      "flops", "nodes", "steps", "peak_layer", "peak_operator", "rows", "inputs", "loss", "layers")
            self.assertEqual(p["train"], bool(train))
            self.assertEqual([r["name"] for r in p["layers"]], ["hidden", "out"])
            self.keys(p["layers"][0], "name", "type", "output", "weight_bytes", "at_peak_bytes", "own_peak_bytes", "flops")
            self.assertEqual(p["layers"][0]["output"], [8, 8])
            self.assertEqual(p["layers"][0]["weight_bytes"], (4 * 8 + 8) * 4)
            outside = sum(r["bytes"] for r in p["rows"] if not r["in_arena"])
            inside = sum(r["bytes"] for r in p["rows"] if r["in_arena"])
            self.assertEqual(outside, p["peak_bytes"])
            self.assertEqual(inside, p["arena_bytes"])
            peak = sum(r["at_peak_bytes"] for r in p["layers"] + [p["inputs"], p["loss"]])
            self.assertEqual(peak, p["lower_bound_bytes"])
            self.assertAlmostEqual(p["gap"], p["arena_bytes"] / p["lower_bound_bytes"] - 1, places=5)

    def test_plan_with_steps(self):
        p = self.json_of("plan", self.model, "--train", "-v")
        self.assertTrue(p["plan"].startswith("snug plan 1\n"))
        self.assertEqual(len(re.findall(r"^s\d+ ", p["plan"], re.M)), p["steps"])

    def test_fit_evaluate_predict(self):
        w, out = self.at("w.safetensors"), self.at('p"\n.npy')
        r = self.json_of(*self.fit_args("--epochs", 2, "--validation-split", 0.25, "--save", w))
        self.keys(r, "epochs", "steps", "stopped", "arena_bytes", "predicted_peak_bytes", "loss", "accuracy", "val_loss", "val_accuracy")
        self.assertEqual((r["epochs"], r["steps"], r["stopped"]), (2, 2, False))
        self.keys(self.json_of(*self.fit_args()), "epochs", "steps", "stopped", "arena_bytes", "predicted_peak_bytes", "loss", "accuracy")
        e = self.json_of("evaluate", self.model, "--weights", w, "--x", self.x, "--y", self.y)
        self.keys(e, "loss", "accuracy")
        p = self.json_of("predict", self.model, "--weights", w, "--x", self.x, "--out", out)
        self.assertEqual(p, {"rows": 40, "dtype": "f32", "shape": [40, 3], "out": out})

    def test_memory_is_a_member(self):
        out = self.at("p.npy")
        for args in (self.fit_args("--memory"), ["evaluate", self.model, "--x", self.x, "--y", self.y, "--memory"],
                     ["predict", self.model, "--x", self.x, "--out", out, "--memory"]):
            m = self.json_of(*args)["memory"]
            self.keys(m, "process_bytes", "process_peak_bytes", "counted_bytes", "counted_peak_bytes", "residual_bytes", "parts", "rows")
            self.assertEqual(sum(p["bytes"] for p in m["parts"]) + m["residual_bytes"], m["counted_bytes"])
            self.keys(m["rows"][0], "category", "owner", "bytes", "peak_bytes")
            sums = {r["category"] for r in m["rows"] if not r["owner"]}
            self.assertTrue({"weights", "arena", "input"} <= sums, sums)

    def test_summary_and_inspect(self):
        s = self.json_of("summary", self.model)
        self.keys(s, "name", "layers", "inputs", "outputs", "params", "trainable_params")
        self.assertEqual(s["params"], 4 * 8 + 8 + 8 * 3 + 3)
        self.keys(s["layers"][0], "name", "type", "output", "params", "trainable_params", "connected_to")
        self.keys(self.json_of("inspect", self.model), "kind", "name", "input", "layers", "inputs", "outputs", "optimizer", "loss", "metrics")
        self.keys(self.json_of("inspect", self.x), "kind", "format", "dtype", "shape", "bytes", "packed")

    @PLAIN
    def test_a_graph_is_a_model(self):
        """The text of a graph goes where the JSON of a model goes, and gives what the same layers give."""
        models = os.path.join(os.path.dirname(os.path.dirname(DATA)), "examples", "models")
        keras, graph = os.path.join(models, "shapes_cnn.json"), os.path.join(models, "shapes_cnn.graph")
        how = ["--loss", "sparse_categorical_crossentropy", "--metrics", "accuracy",
               "--optimizer", "adam:lr=0.0010000000474974513", "--batch", 16]
        data = ["--x", "uniform:40x32x32x3@1", "--y", "labels:40@2@8"]
        plan = self.at("sliced.plan")
        whole = self.json_of("plan", keras, "--train", *how, "--budget", "1GiB")
        sliced = self.json_of("plan", keras, "--train", *how, "--budget", whole["floor_bytes"] + (1 << 20), "--save-plan", plan)
        self.assertLess(sliced["arena_bytes"], whole["arena_bytes"])
        self.assertEqual(self.json_of("plan", graph, "--train", *how)["arena_bytes"], whole["arena_bytes"])
        for within in ([], ["--plan", plan]):  # of the layers, which fits the graph as well
            for name, model in (("keras", keras), ("graph", graph)):
                self.ok("fit", model, *data, *how, *within, "--save", self.at(name + ".safetensors"))
            self.assertEqual(files.read(self.at("keras.safetensors")), files.read(self.at("graph.safetensors")))
        for name, model in (("keras", keras), ("graph", graph)):
            self.ok("predict", model, "--weights", self.at("keras.safetensors"), *data[:2], "--out", self.at(name + ".npy"))
        self.assertEqual(files.read(self.at("keras.npy")), files.read(self.at("graph.npy")))
        values = [self.json_of("evaluate", m, "--weights", self.at("keras.safetensors"), *data, *how[:4]) for m in (keras, graph)]
        self.assertEqual(values[0]["loss"], values[1]["loss"])
        s = self.json_of("summary", graph)
        self.assertEqual((s["name"], s["params"], s["inputs"][0]["name"]), ("shapes_cnn", 90040, "x"))
        self.assertEqual(self.json_of("inspect", graph)["layers"][1], {"name": "conv2d", "type": "Graph", "output": [None, 32, 32, 16]})

    def test_graphs_that_are_wrong(self):
        start = "snug graph 1\n%0 input x f32[?,4]\n%1 = relu(%0) | forward -> f32[?,4]\n"
        for text, piece in ((start, "it has no output"), (start + "output y %1\n\0", "zero byte"), (start + "output y %2\n", "line 4"),
                            (start + "%2 = rely(%1)", "rely"), (start.replace("?", "9" * 30), "line 2"), ("snug graph 2\n", "line 1")):
            path = files.write(self.at("wrong.graph"), text.encode())
            for command in ("inspect", "plan", "summary"):
                with self.subTest(piece, command=command):
                    self.fails(4, piece, "wrong.graph", args=[command, path])
        path = files.write(self.at("fixed.graph"), (start.replace("?", "8") + "output y %1\n").encode())
        self.assertIn("fixes a batch of 8 rows", self.fails(4, args=["plan", path, "--batch", 16]))
        self.ok("plan", path, "--batch", 8)
        self.fails(2, "says the shapes of its inputs itself", args=["plan", path, "--input-shape", "4"])
        self.assertIn("make the graph in f64", self.fails(1, args=["plan", path, "--batch", 8, "--dtype", "f64"]))

    def test_ops_doctor_make_data(self):
        ops = self.json_of("ops")
        self.assertIn("matmul", [o["name"] for o in ops])
        self.keys(ops[0], "name", "min_inputs", "max_inputs", "attributes", "in_place", "effect", "accumulates")
        d = self.json_of("doctor")
        for key in ("snug", "oneDNN", "cpu", "threads", "instruction_set", "memory", "available", "cgroup_limit",
                    "may_still_take", "overcommit", "huge_pages", "this_process"):
            self.assertIn(key, d)
        m = self.json_of("make-data", "blobs", self.at("blobs"), "--train-rows", 10, "--test-rows", 5)
        self.keys(m, "kind", "folder", "files")
        self.assertEqual(sorted(m["files"]), sorted(os.listdir(self.at("blobs"))))

    def test_infinite_values_are_null(self):
        """What JSON has no number for."""
        model = files.model(self.at("mape.json"), 4, [files.dense("o", 1)], optimizer="sgd", loss="mse", metrics=["mape"])
        x = files.npy(self.at("far.npy"), "<f4", (4, 4), [1e30] * 16)
        y = files.npy(self.at("fary.npy"), "<f4", (4, 1), [0.0] * 4)
        r = self.run_snug("evaluate", model, "--x", x, "--y", y, "--json")
        if r.returncode == 0:
            self.assertIsNone(json.loads(r.stdout)["loss"])
        else:
            self.assertEqual(r.returncode, 5)


class Streams(Case):
    def test_data_on_stdout_messages_on_stderr(self):
        r = self.ok(*self.fit_args("--epochs", 2))
        self.assertEqual(r.stdout, b"")
        text = r.stderr.decode()
        self.assertRegex(text, r"^Epoch 1/2\n2/2 - \d+s - \d+\w?s/step - loss: \d\.\d{4} - accuracy: \d\.\d{4} - mem: \d+ MB\n"
                               r"Epoch 2/2\n2/2 - ")
        r = self.ok("evaluate", self.model, "--x", self.x, "--y", self.y)
        self.assertRegex(r.stdout, rb"^loss: \S+ - accuracy: \S+\n$")
        self.assertEqual(r.stderr, b"note: without --weights the model has new weights, which nobody trained\n")
        w = self.at("streams.safetensors")
        self.ok(*self.fit_args("--save", w))
        self.assertEqual(self.ok("evaluate", self.model, "--weights", w, "--x", self.x, "--y", self.y).stderr, b"")
        for args in (["plan", self.model], ["summary", self.model], ["inspect", self.x], ["ops"], ["doctor"]):
            self.assertEqual(self.ok(*args).stderr, b"")

    def test_no_escapes_where_there_is_no_terminal(self):
        for args in (self.fit_args(), ["plan", self.model, "--train"], ["evaluate", self.model, "--x", self.x, "--y", self.y]):
            r = self.ok(*args)
            self.assertNotIn(b"\x1b", r.stdout + r.stderr)
            self.assertNotIn(b"\r", r.stdout + r.stderr)

    def test_color(self):
        self.assertIn(b"\x1b[1m", self.ok("plan", self.model, "--color", "always").stdout)
        self.assertIn(b"\x1b[1m", self.ok("plan", self.model, "--color=always", env=environment(NO_COLOR="1")).stdout)
        self.assertNotIn(b"\x1b", self.ok("plan", self.model, "--color", "always", "--json").stdout)
        r = self.run_snug("plan", "none.json", "--color", "always")
        self.assertTrue(r.stderr.startswith(b"\x1b[31msnug:\x1b[0m "))

    def on_a_terminal(self, args, **env):
        """What a terminal of 100 columns gets on stdout and stderr, and the exit code."""
        command, variables = [SNUG, *map(str, args)], environment(**env)
        try:
            pid, fd = pty.fork()
        except OSError as e:  # a container without /dev/pts
            self.skipTest(f"no terminal can be made here: {e}")
        if pid == 0:
            try:
                os.execve(SNUG, command, variables)
            finally:
                os._exit(127)
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        out = b""
        while True:
            try:
                piece = os.read(fd, 65536)
            except OSError:
                break
            if not piece:
                break
            out += piece
        os.close(fd)
        return out.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_keras_bar_on_a_terminal(self):
        text, code = self.on_a_terminal(self.fit_args("--epochs", 1))
        self.assertEqual(code, 0)
        self.assertIn("Epoch 1/1\r\n", text)
        last = text.rstrip("\r\n").split("\r")[-1]
        self.assertRegex(last, "^\x1b\\[1m2/2\x1b\\[0m \x1b\\[32m━{20}\x1b\\[0m \x1b\\[1m\\d+s\x1b\\[0m \\d+\\w?s/step"
                               " - loss: \\d\\.\\d{4} - accuracy: \\d\\.\\d{4} - mem: \\d+ MB *$")
        text, code = self.on_a_terminal(["evaluate", self.model, "--x", self.x, "--y", self.y])
        self.assertEqual(code, 0)
        self.assertIn("\x1b[1m2/2\x1b[0m", text)
        self.assertRegex(text, r"\nloss: \S+ - accuracy: \S+\r\n$")

    def test_terminal_without_colours(self):
        for env in ({"NO_COLOR": "1"}, {}):
            args = self.fit_args("--epochs", 1) + ([] if env else ["--color", "never"])
            text, code = self.on_a_terminal(args, **env)
            self.assertEqual(code, 0)
            self.assertNotIn("\x1b", text)
            self.assertIn("2/2 " + "━" * 20, text)
        text, _ = self.on_a_terminal(self.fit_args("--epochs", 1), TERM="dumb")
        self.assertNotIn("\x1b", text)
        self.assertNotIn("━", text)
        text, _ = self.on_a_terminal(["plan", self.model], NO_COLOR="1")
        self.assertNotIn("\x1b", text)
        text, _ = self.on_a_terminal(["plan", self.model])
        self.assertIn("\x1b[1mpeak", text)


class Training(Case):
    def same(self, a, b):
        self.assertEqual(files.read(a), files.read(b))

    def test_same_seed_same_bytes(self):
        a, b, c = self.at("a.safetensors"), self.at("b.safetensors"), self.at("c.safetensors")
        args = self.fit_args("--epochs", 3, "--shuffle", "--batch", 16)
        self.ok(*args, "--seed", 5, "--save", a)
        self.ok(*args, "--seed", 5, "--save", b)
        self.ok(*args, "--seed", 6, "--save", c)
        self.same(a, b)
        self.assertNotEqual(files.read(a), files.read(c))

    def test_evaluate_after_save_and_load_is_the_same(self):
        w = self.at("e.safetensors")
        fit = self.json_of(*self.fit_args("--epochs", 2, "--val-x", self.x, "--val-y", self.y, "--save", w))
        e = self.json_of("evaluate", self.model, "--weights", w, "--x", self.x, "--y", self.y)
        self.assertEqual((e["loss"], e["accuracy"]), (fit["val_loss"], fit["val_accuracy"]))

    def test_predictions_do_not_depend_on_the_batch(self):
        first = None
        for batch in (1, 3, 7, 32, 40, 1000):
            out = self.at(f"p{batch}.npy")
            self.ok("predict", self.model, "--seed", 3, "--x", self.x, "--out", out, "--batch", batch)
            shape, values = files.read_npy(out)
            self.assertEqual(shape, (40, 3))
            for i in range(0, 120, 3):
                self.assertAlmostEqual(sum(values[i:i + 3]), 1, places=5)
            first = first or out
            self.same(first, out)

    def test_packed_idx_and_recipes_are_data(self):
        x = files.idx_gz(self.at("x-idx.gz"), (12, 4), [i * 5 % 256 for i in range(48)])
        y = files.idx_gz(self.at("y-idx.gz"), (12,), [i % 3 for i in range(12)])
        self.assertEqual(self.json_of(*self.fit_args("--batch", 5, "--shuffle", "--epochs", 2, x=x, y=y))["steps"], 6)
        r = self.json_of(*self.fit_args("--batch", 64, x="normal:256x4@7", y="labels:256@7@3"))
        self.assertEqual(r["steps"], 4)
        self.assertLess(r["loss"], 3)

    def test_flags_override_the_compile_settings_of_the_file(self):
        y = files.npy(self.at("hot.npy"), "<f4", (40, 3), [1, 0, 0] * 40)
        r = self.json_of(*self.fit_args("--loss", "categorical_crossentropy", "--metrics", "mae,mse", "--optimizer",
                                        "sgd:lr=0.5,momentum=0.9", y=y))
        self.assertEqual([k for k in r if k in ("mae", "mse", "accuracy")], ["mae", "mse"])
        self.fails(2, "'sparkle' is not known; there are sgd, adam, adamw, rmsprop", args=self.fit_args("--optimizer", "sparkle"))
        self.fails(2, "sparkle", "mean_squared_error", args=self.fit_args("--loss", "sparkle"))
        for option, typo, meant in (("--loss", "categorcal_crossentropy", "categorical_crossentropy"), ("--optimizer", "Adan", "adam"),
                                    ("--metrics", "acuracy", "accuracy"), ("--optimizer", "sgd:lr=cosine_decai(decay_steps=3)", "cosine_decay")):
            self.fails(2, f"is not known; did you mean {meant}? There are", args=self.fit_args(option, typo))

    def test_a_loss_of_python_code_can_be_replaced_and_is_not_asked_for(self):
        own = files.model(self.at("own.json"), 4, [files.dense("d", 3)], optimizer="adam", loss="my_loss")
        out = self.at("own.npy")
        text = self.fails(1, "compile settings of " + own, "loss 'my_loss' is not known", "--loss", args=["plan", own, "--train"])
        self.assertNotIn("did you mean", text)
        self.assertEqual(self.json_of("plan", own, "--train", "--loss", "mse")["train"], True)
        for args in (["plan", own], ["summary", own], ["predict", own, "--x", self.x, "--out", out]):
            self.ok(*args)
        self.fails(2, "predict has no option --loss", args=["predict", own, "--x", self.x, "--out", out, "--loss", "mse"])

    def test_best_patience_and_csv(self):
        best, csv = self.at("best.safetensors"), self.at("log.csv")
        r = self.json_of(*self.fit_args("--epochs", 30, "--optimizer", "sgd:lr=0", "--patience", 2, "--save-best", best, "--csv", csv))
        self.assertTrue(r["stopped"])
        self.assertEqual(r["epochs"], 3)
        lines = files.read(csv).decode().splitlines()
        self.assertEqual(lines[0], "epoch,loss,accuracy")
        self.assertEqual(len(lines), 4)
        self.assertEqual(self.json_of("inspect", best)["kind"], "safetensors")
        slow = self.json_of(*self.fit_args("--epochs", 3, "--optimizer", "sgd:lr=1,clipvalue=1e-30", "--reduce-rate", 1))
        self.assertEqual(slow["epochs"], 3)
        self.fails(2, "reduce-rate", args=self.fit_args("--reduce-rate", 0))

    def test_shapes_are_too_hard_for_a_linear_model(self):
        self.ok("make-data", "shapes", self.at("shapes"), "--train-rows", 3000, "--test-rows", 500)
        model = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "models", "shapes_linear.json")
        r = self.json_of("fit", model, "--x", self.at("shapes/x_train.npy"), "--y", self.at("shapes/y_train.npy"), "--val-x",
                         self.at("shapes/x_test.npy"), "--val-y", self.at("shapes/y_test.npy"), "--epochs", 10, "--shuffle")
        self.assertLess(r["val_accuracy"], 0.7)
        self.assertLess(r["accuracy"], 0.7)

    def test_f64(self):
        w, out = self.at("d.safetensors"), self.at("d.npy")
        self.ok(*self.fit_args("--dtype", "f64", "--save", w))
        self.assertEqual({t["dtype"] for t in self.json_of("inspect", w)["tensors"]}, {"f64"})
        self.ok("predict", self.model, "--dtype", "f64", "--weights", w, "--x", self.x, "--out", out)
        self.assertEqual(len(files.read_npy(out)[1]), 120)

    def test_precision(self):
        """Weights are in the policy's type, what is predicted in the other; .npy has no bf16."""
        for precision, weights, file in (("mixed_bf16", "f32", "<f4"), ("mixed_f16", "f32", "<f2"), ("bf16", "bf16", "<f4"), ("f16", "f16", "<f2"), ("f64", "f64", "<f8"),
                                         ("f32", "f32", "<f4")):
            with self.subTest(precision):
                w, out, given = self.at(precision + ".safetensors"), self.at(precision + ".npy"), ("--precision", precision)
                self.ok(*self.fit_args(*given, "--save", w))
                self.assertEqual({t["dtype"] for t in self.json_of("inspect", w)["tensors"]}, {weights})
                self.ok("predict", self.model, *given, "--weights", w, "--x", self.x, "--out", out)
                with open(out, "rb") as f:
                    self.assertIn(f"'descr': '{file}'".encode(), f.read(128))
                self.assertEqual(len(files.read_npy(out)[1]), 120)
                self.assertGreater(self.json_of("evaluate", self.model, *given, "--weights", w, "--x", self.x, "--y", self.y)["accuracy"], 0.2)

    def test_weights_of_halves_in_files(self):
        """Formats by types, in and out: F16 and BF16 as they are in safetensors, f16 in .npy; what there is no name for, or another format,
        is refused with what to do."""
        for precision in ("f16", "bf16"):
            w, again, wide = (self.at(f"{precision}{k}.safetensors") for k in range(3))
            self.ok(*self.fit_args("--precision", precision, "--save", w))
            self.ok(*self.fit_args("--precision", precision, "--weights", w, "--optimizer", "sgd:learning_rate=0", "--save", again))
            self.assertEqual(files.read(w), files.read(again))
            self.ok(*self.fit_args("--precision", "f64", "--weights", w, "--optimizer", "sgd:learning_rate=0", "--save", wide))
            self.ok(*self.fit_args("--precision", precision, "--weights", wide, "--optimizer", "sgd:learning_rate=0", "--save", again))
            self.assertEqual(files.read(w), files.read(again))
        half, bits, out = self.at("half.npy"), self.at("bits.npy"), self.at("y.npy")
        files.npy(half, "<f2", (40, 4), [k / 8 - 10 for k in range(160)])
        self.ok("predict", self.model, "--precision", "f16", "--weights", self.at("f160.safetensors"), "--x", half, "--out", out)
        files.npy(bits, "<V2", (40, 4), raw=bytes(320))
        self.fails(4, "bits.npy holds elements '<V2', which is how numpy saves bfloat16: save astype('float32')",
                   args=("predict", self.model, "--x", bits, "--out", out))
        for begin, what in ((b"\x89HDF\r\n\x1a\n", "an HDF5 file"), (b"PK\3\4\0\0\0\0", "a zip, as .keras and .npz are"), (b"\x93NUMPY\1\0", "an .npy array")):
            files.write(bits, begin + bytes(100))
            self.fails(4, f"is {what}, and not safetensors: load it in Python", args=("predict", self.model, "--weights", bits, "--x", self.x, "--out", out))
        for name in ("w.npz", "w.weights.h5", "w.keras", "w.npy"):
            self.fails(2, f"{os.path.splitext(name)[0]}.safetensors (Python's", args=self.fit_args("--save", self.at(name)))
            self.fails(2, "the command writes safetensors", args=self.fit_args("--save-best", self.at(name)))

    def test_the_demos_network_learns_in_halves(self):
        """In the demo's 15 epochs to 95 % and more; in four it is on its way. SNUG_TEST_FULL runs all."""
        epochs, least = (15, 0.95) if FULL else (4, 0.7)
        self.ok("make-data", "shapes", self.at("shapes"), "--train-rows", 10000, "--seed", 1)
        model = os.path.join(os.path.dirname(os.path.dirname(DATA)), "examples", "models", "shapes_cnn.json")
        given = lambda part: ("--x", self.at(f"shapes/x_{part}.npy"), "--y", self.at(f"shapes/y_{part}.npy"))
        for precision in ("mixed_bf16", "mixed_f16"):
            w, half = self.at(precision + "_cnn.safetensors"), ("--precision", precision)
            self.ok("fit", model, *given("train"), *half, "--epochs", epochs, "--batch", 64, "--shuffle", "--seed", 1, "--save", w)
            self.assertGreaterEqual(self.json_of("evaluate", model, *given("test"), *half, "--weights", w)["accuracy"], least, precision)

    def test_a_loss_scale_goes_with_accumulated_gradients(self):
        for precision in ("mixed_f16", "mixed_bf16"):
            self.ok(*self.fit_args("--precision", precision, "--optimizer", "sgd:gradient_accumulation_steps=2"))

    def test_halves_take_less(self):
        """The arena of a step, in the same run: less with halves, and only where it was asked for."""
        def arena(*given):
            return self.json_of("plan", wide, "--train", "--batch", 256, "--quick", *given)["arena_bytes"]
        wide = files.model(self.at("w.json"), 64, [files.dense(name, 128, "relu") for name in "abcd"] + [files.dense("out", 3)])
        self.assertEqual(arena(), arena("--precision", "f32"))
        self.assertLess(arena("--precision", "mixed_bf16"), arena())

    def precisions(self, model, *more):
        return {row["precision"]: row for row in self.json_of("plan", model, "--precisions", *more)["precisions"]}

    def test_precisions_beside_each_other(self):
        """The table's rows are the plans of each, its price of a loss scale their difference, and a curve in a precision begins with its plan."""
        wide = files.model(self.at("p.json"), 64, [files.dense(name, 128, "relu") for name in "abcd"] + [files.dense("out", 3)])
        step = ("--train", "--batch", 256)
        rows, f32 = self.precisions(wide, *step), self.json_of("plan", wide, *step, "--quick")
        self.assertEqual(list(rows), ["f32", "mixed_bf16", "mixed_f16", "bf16", "f16", "f64"])
        for name, row in rows.items():
            plan = self.json_of("plan", wide, *step, "--quick", "--precision", name)
            self.assertEqual([plan[k] for k in ("precision", "arena_bytes", "state_bytes", "step_seconds")],
                             [name, row["arena_bytes"], row["state_bytes"], row["step_seconds"]])
            self.assertAlmostEqual(row["of_f32"], row["step_seconds"] / f32["step_seconds"], places=4)
            self.assertEqual((row["slower"], row["models"]), (row["of_f32"] > 1.05, name == "f32"))
            self.assertEqual(plan.get("in_f32"), None if name in ("f32", "f64") else
                             {"arena_bytes": f32["arena_bytes"], "step_seconds": f32["step_seconds"], "faster": row["slower"]})
            curve = self.json_of("plan", wide, *step, "--curve", "--precision", name)
            self.assertEqual((curve["precision"], curve["points"][0]["step_seconds"]), (name, row["step_seconds"]))
        price = self.json_of("plan", wide, *step, "--precisions")["loss_scale"]
        self.assertEqual(price["arena_bytes"], rows["mixed_f16"]["arena_bytes"] - rows["mixed_bf16"]["arena_bytes"])
        self.assertGreater(price["step_seconds"], 0)
        self.assertGreater(rows["f64"]["of_f32"], 1.05)

    def test_precisions_as_a_table(self):
        said = self.ok("plan", self.model, "--train", "--precisions", "--precision", "mixed_bf16").stdout.decode()
        self.assertRegex(said, r'Precisions of "\w+", batch 32, a training step\n')
        self.assertRegex(said, r"\n  mixed_bf16 .*x.*  <- the model's\n")
        self.assertRegex(said, r"\n  f64 .*x  slower\n")
        self.assertIn("mixed_f16 has a loss scale, and keeps all gradients until each was looked at: beside mixed_bf16", said)
        self.assertNotIn("loss scale", self.ok("plan", self.model, "--precisions").stdout.decode())
        said = self.ok("plan", self.model, "--train", "--precision", "mixed_bf16").stdout.decode()
        self.assertRegex(said, r"  mixed_bf16 beside f32: the arena takes [\d.]+ KiB instead of [\d.]+ KiB, a step .* instead of [\d.]+ us")
        self.assertNotIn("beside f32", self.ok("plan", self.model, "--train").stdout.decode())
        self.assertIn(", a training step in bf16\n", self.ok("plan", self.model, "--train", "--curve", "--precision", "bf16").stdout.decode())
        self.fails(2, "--curve is of one precision, --precisions of all", args=("plan", self.model, "--curve", "--precisions"))
        self.fails(2, "leave --weights out", args=("plan", self.model, "--weights", "w.safetensors", "--precisions"))

    def test_a_value_made_again_lies_over_what_an_earlier_block_left_of_it(self):
        """In the smallest plan of this batch a block writes rows where the block before left the last row of the same value."""
        model = os.path.join(os.path.dirname(os.path.dirname(DATA)), "examples", "models", "shapes_cnn.json")
        self.assertGreater(self.floor(model, "--precision", "mixed_f16", "--batch", 48, "--threads", 2), 1 << 20)

    def test_precisions_that_are_refused_or_do_not_fit(self):
        large = files.model(self.at("large.json"), 64, [files.dense(name, 2000, "relu") for name in "ab"])
        rows = self.precisions(large, "--train", "--budget", "16MiB")
        self.assertEqual({(row["fits"], "of_f32" in row, row["floor_bytes"] > 16 << 20) for row in rows.values()}, {(False, False, True)})
        said = self.ok("plan", large, "--train", "--budget", "16MiB", "--precisions").stdout.decode()
        self.assertEqual(said.count("does not fit: the smallest budget is"), 6)
        graph = self.precisions(os.path.join(os.path.dirname(os.path.dirname(DATA)), "examples", "models", "shapes_cnn.graph"))
        self.assertEqual([name for name, row in graph.items() if "refused" not in row], ["f32"])

    def interrupted_fit(self, number, *more):
        process = subprocess.Popen([SNUG, *self.fit_args("--epochs", "2000000", *more)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment())
        text, deadline = b"", time.time() + 600
        while b"Epoch 3/" not in text and time.time() < deadline:
            if select.select([process.stderr], [], [], 1)[0]:
                text += os.read(process.stderr.fileno(), 4096)
        process.send_signal(number)
        while True:  # drain until it ends
            piece = os.read(process.stderr.fileno(), 65536)
            if not piece:
                break
            text = (text + piece)[-65536:]
        out = process.stdout.read()
        code = process.wait(timeout=600)
        process.stdout.close()
        process.stderr.close()
        return code, out, text.decode()

    def test_ctrl_c_saves_and_exits_with_130(self):
        w = self.at("ctrl.safetensors")
        code, out, text = self.interrupted_fit(signal.SIGINT, "--save", w, "--json")
        self.assertEqual(code, 130, text)
        self.assertIn("stopped by the user after", text)
        self.assertIn("the weights are saved", text)
        self.assertTrue(json.loads(out)["stopped"])
        self.ok("evaluate", self.model, "--weights", w, "--x", self.x, "--y", self.y)
        self.assertGreater(json.loads(out)["steps"], 3)

    def test_sigterm_saves_too_and_exits_with_143(self):
        code, _, text = self.interrupted_fit(signal.SIGTERM)
        self.assertEqual(code, 143, text)
        self.assertIn("--save would have kept the weights", text)

    def test_models_of_three_generations_of_keras_run(self):
        for name, shape in (("keras3_cnn", "28x28x1"), ("tfkeras2_cnn", "8x8x3"), ("keras2_list", "20")):
            model = os.path.join(DATA, name + ".json")
            out = self.at("k.npy")
            self.ok("plan", model, "--batch", 2)
            self.ok("predict", model, "--x", f"uniform:3x{shape}@1", "--out", out)
            self.assertEqual(files.read_npy(out)[0][0], 3)


class Threads(Case):
    def test_the_result_does_not_depend_on_how_many_there_are(self):
        first = None
        for threads in (1, 2, 3):
            w = self.at("t.safetensors")
            self.ok(*self.fit_args("--threads", threads, "--save", w))
            first = first or files.read(w)
            self.assertEqual(files.read(w), first)


class SeveralEnds(Case):
    """Inputs a (12 numbers) and b (5 x 4), outputs first (3 numbers) and second (4 classes)."""
    MODEL = os.path.join(os.path.dirname(DATA), "golden", "io_list_f32", "model.json")
    X = ["--x", "normal:20x12@1", "--x", "normal:20x5x4@2"]
    Y = ["--y", "normal:20x3@3", "--y", "labels:20@4@4"]

    def test_values_have_the_names_of_the_outputs(self):
        names = {"loss", "first_loss", "second_loss", "first_mae", "second_accuracy"}
        self.assertEqual(set(self.json_of("evaluate", self.MODEL, *self.X, *self.Y)), names)
        fit = self.json_of("fit", self.MODEL, *self.X, *self.Y, "--validation-split", 0.2)
        self.assertLessEqual(names | {"val_" + n for n in names}, set(fit))

    def test_feeds_go_by_name_or_by_order(self):
        by_order = self.json_of("evaluate", self.MODEL, *self.X, *self.Y)
        by_name = self.json_of("evaluate", self.MODEL, "--x", "b=normal:20x5x4@2", "--y", "second=labels:20@4@4", "--x", "normal:20x12@1",
                               "--y", "first=normal:20x3@3")
        self.assertEqual(by_order, by_name)

    def test_loss_is_the_weighted_sum(self):
        v = self.json_of("evaluate", self.MODEL, *self.X, *self.Y, "--loss-weights", "second=0.25;first=2")
        self.assertAlmostEqual(v["loss"], 2 * v["first_loss"] + 0.25 * v["second_loss"], places=5)
        v = self.json_of("evaluate", self.MODEL, *self.X, *self.Y[:2], "--loss", "mse;none", "--metrics", "none", "--loss-weights", "1;1")
        self.assertEqual(set(v), {"loss"})

    def test_predictions_of_each_output_have_a_file(self):
        self.ok("predict", self.MODEL, *self.X, "--out", self.at("p.npy"))
        self.assertEqual(files.read_npy(self.at("p_first.npy"))[0], (20, 3))
        self.assertEqual(files.read_npy(self.at("p_second.npy"))[0], (20, 4))
        told = self.json_of("predict", self.MODEL, *self.X, "--out", "second=" + self.at("s.npy"), "--out", self.at("f.npy"))
        self.assertEqual([o["name"] for o in told["outputs"]], ["first", "second"])
        self.assertEqual(files.read(self.at("s.npy")), files.read(self.at("p_second.npy")))
        self.fails(2, "--out is missing for 'first'", args=["predict", self.MODEL, *self.X, "--out", "second=" + self.at("s.npy")])

    def test_missing_and_surplus_feeds_are_refused(self):
        self.fails(2, "x 1 ('b')", args=["evaluate", self.MODEL, *self.X[:2], *self.Y])
        self.fails(2, "one too many", "2 inputs", args=["evaluate", self.MODEL, *self.X, "--x", "zeros:20x2", *self.Y])
        self.fails(2, "y 1 ('second')", args=["evaluate", self.MODEL, *self.X, *self.Y[:2]])
        self.fails(2, "no output 'third'", args=["evaluate", self.MODEL, *self.X, *self.Y, "--loss", "third=mse"])

    def test_weights_of_examples_and_classes(self):
        one = self.json_of("evaluate", self.model, "--x", self.x, "--y", self.y)
        twice = self.json_of("evaluate", self.model, "--x", self.x, "--y", self.y, "--sample-weight", "constant:40@2")
        self.assertAlmostEqual(twice["loss"], 2 * one["loss"], places=5)
        self.assertEqual(twice["accuracy"], one["accuracy"])
        args = ["fit", self.model, "--x", self.x, "--y", self.y, "--batch", 40]
        plain, weighted = self.json_of(*args), self.json_of(*args, "--class-weight", "0=3,1=3,2=3")
        self.assertAlmostEqual(weighted["loss"], 3 * plain["loss"], places=4)
        self.fails(2, "like 0=1,1=3.5", args=[*args, "--class-weight", "many"])
        self.fails(2, "no class and its weight", args=[*args, "--class-weight", "1e300=2"])
        self.fails(2, "only one can act", args=[*args, "--class-weight", "0=2", "--sample-weight", "constant:40@2"])
        self.fails(4, "sample_weight has 39", args=[*args, "--sample-weight", "constant:39@2"])


class Reports(Case):
    def test_summary_is_keras_to_the_character(self):
        """golden/*.txt: model.summary() of Keras 3.15 on a terminal of 120 columns."""
        golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
        for name in ("keras3_cnn", "long_names"):
            model = os.path.join(DATA, name + ".json")
            with open(os.path.join(golden, name + ".summary.txt")) as f:
                self.assertEqual(self.ok("summary", model).stdout.decode(), f.read())
        for name, case in (("graph_ends", "io_list_f32"), ("graph_operations", "ops_shapes_f32")):
            model = os.path.join(os.path.dirname(DATA), "golden", case, "model.json")
            with open(os.path.join(golden, name + ".summary.txt")) as f:
                self.assertEqual(self.ok("summary", model).stdout.decode(), f.read())

    def test_plan_text(self):
        text = self.ok("plan", self.model, "--batch", 8, "--train").stdout.decode()
        p = self.json_of("plan", self.model, "--batch", 8, "--train")
        self.assertIn('Plan of "m", input f32[?,4], batch 8: a training step with adam and '
                      "sparse_categorical_crossentropy\npeak ", text)
        for row in p["rows"]:
            self.assertRegex(text, rf"\n {{2,4}}{re.escape(row['name'])} ")
        for layer in p["layers"]:
            self.assertRegex(text, rf"\n  {layer['name']} +\(8, \d\) ")
        self.assertRegex(text, r"packing gap \d+\.\d\d %")
        self.assertIn(f"the arena is fullest in layer {p['peak_layer']}, operator {p['peak_operator']}", text)
        self.assertIn(f"{p['nodes']} nodes, {p['steps']} steps", text)
        self.assertNotIn("snug plan 1", text)
        verbose = self.ok("plan", self.model, "--batch", 8, "--train", "-v").stdout.decode()
        self.assertIn("\nsnug plan 1\n", verbose)
        self.assertIn("prediction (--train plans a training step)", self.ok("plan", self.model).stdout.decode())

    def test_memory_text(self):
        text = self.ok(*self.fit_args("--memory")).stdout.decode()
        self.assertTrue(text.startswith("Where the memory went\n"))
        for row in ("weights", "optimizer", "arena", "input", "process, as the system counts it", "Largest owners"):
            self.assertIn(row, text)

    def test_ops_table(self):
        text = self.ok("ops").stdout.decode()
        self.assertTrue(text.startswith("operator "))
        self.assertRegex(text, r"\nmatmul ")


if __name__ == "__main__":
    unittest.main(verbosity=1)
