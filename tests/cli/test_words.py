#!/usr/bin/env python3
"""Completions and man pages, against what the command itself says. bash is always there; zsh, fish and man are asked
where they are installed. usage: test_words.py PATH_OF_SNUG PATH_OF_SHARE [unittest options]"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SNUG, SHARE = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
BASH = os.path.join(SHARE, "bash-completion/completions/snug")
ZSH = os.path.join(SHARE, "zsh/site-functions/_snug")
FISH = os.path.join(SHARE, "fish/vendor_completions.d/snug.fish")
# Prints what would be offered for the words given; the cursor is in the last one.
ASK = """source "$1"; shift
complete -p snug > /dev/null || exit 1
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_snug; printf '%s\\n' "${COMPREPLY[@]}" """


def read(path):
    with open(path) as f:
        return f.read()


def output(*args, **more):
    return subprocess.run(args, check=True, capture_output=True, text=True, timeout=600, **more).stdout


def commands():
    return re.findall(r"^  ([a-z-]+) ", output(SNUG, "--help"), re.M)


def options(command):
    """name: (argument, help) as the command's help tells them."""
    rows = re.findall(r"^  --(\S+) (\S*) +(.*)$", output(SNUG, command, "--help"), re.M)
    return {name: (argument, text) for name, argument, text in rows}


def plain(roff):
    """The page's text without its macros and escapes."""
    text = re.sub(r"^\.\S+ ?", "", roff, flags=re.M)
    for escape, meaning in (("\\-", "-"), ("\\(aq", "'"), ("\\&", ""), ("\\fB", ""), ("\\fI", ""), ("\\fR", "")):
        text = text.replace(escape, meaning)
    return text


class Folder(unittest.TestCase):
    """A folder with files to offer."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="snug-words-")
        for name in ("model.json", "w.safetensors", "y.npy", "two words.npy"):
            open(os.path.join(self.dir, name), "w").close()
        os.mkdir(os.path.join(self.dir, "folder"))

    def tearDown(self):
        shutil.rmtree(self.dir)


FILES = {"model.json", "w.safetensors", "y.npy", "two words.npy", "folder"}


class Bash(Folder):
    def offered(self, *words):
        text = output("bash", "--norc", "-c", ASK, "ask", BASH, "snug", *words, cwd=self.dir)
        return {line for line in text.split("\n") if line}

    def test_commands(self):
        self.assertEqual(self.offered(""), {*commands(), "help", "version", "--help", "--version"})
        self.assertEqual(self.offered("p"), {"plan", "predict"})
        self.assertEqual(self.offered("help", "e"), {"evaluate"})
        self.assertEqual(self.offered("--v"), {"--version"})
        self.assertEqual(self.offered("frobnicate", "--"), set())

    def test_options_of_each_command(self):
        self.assertEqual(len(commands()), 11)
        for command in commands():
            self.assertEqual(self.offered(command, "--"), {"--" + name for name in options(command)})
        self.assertEqual(self.offered("fit", "model.json", "--val"), {"--val-x", "--val-y", "--val-sample-weight", "--validation-split"})
        self.assertEqual(self.offered("ops", ""), self.offered("ops", "--"))

    def test_fixed_words(self):
        self.assertEqual(self.offered("ops", "--color", ""), {"auto", "always", "never"})
        self.assertEqual(self.offered("ops", "--color", "a"), {"auto", "always"})
        self.assertEqual(self.offered("plan", "model.json", "--dtype", "f"), {"f32", "f64"})
        self.assertEqual(self.offered("plan", "model.json", "--precision", "mixed_"), {"mixed_bf16", "mixed_f16"})
        self.assertEqual(self.offered("make-data", ""), {"shapes", "blobs"})
        self.assertEqual(self.offered("make-data", "--seed", "3", "b"), {"blobs"})

    def test_a_value_behind_an_equals_sign(self):
        self.assertEqual(self.offered("ops", "--color", "="), {"auto", "always", "never"})
        self.assertEqual(self.offered("ops", "--color", "=", "n"), {"never"})
        self.assertEqual(self.offered("make-data", "--seed", "=", "3", "s"), {"shapes"})
        self.assertEqual(self.offered("plan", "--weights", "=", "w"), {"w.safetensors"})

    def test_files(self):
        self.assertEqual(self.offered("plan", ""), FILES)
        self.assertEqual(self.offered("plan", "--train", "--batch", "3", "m"), {"model.json"})
        self.assertEqual(self.offered("fit", "model.json", "--x", ""), FILES)
        self.assertEqual(self.offered("fit", "model.json", "--weights", ""), {"w.safetensors", "folder"})
        self.assertEqual(self.offered("predict", "model.json", "--out", ""), {"y.npy", "two words.npy", "folder"})
        self.assertEqual(self.offered("make-data", "shapes", ""), {"folder"})

    def test_nothing_where_there_is_nothing_to_know(self):
        for words in (("plan", "--batch", ""), ("fit", "--optimizer", "s"), ("fit", "--validation-split", "")):
            self.assertEqual(self.offered(*words), set())

    def test_operands_are_offered_once(self):
        self.assertEqual(self.offered("plan", "model.json", ""), {"--" + name for name in options("plan")})
        self.assertEqual(self.offered("plan", "model.json", "m"), set())


@unittest.skipUnless(shutil.which("zsh"), "no zsh here")
class Zsh(unittest.TestCase):
    def test_syntax(self):
        output("zsh", "-n", ZSH)


@unittest.skipUnless(shutil.which("fish"), "no fish here")
class Fish(Folder):
    def offered(self, line):
        text = output("fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", FISH, line, cwd=self.dir)
        return {row.split("\t")[0].rstrip("/") for row in text.split("\n") if row}

    def test_syntax(self):
        output("fish", "--no-execute", FISH)

    def test_offers(self):
        self.assertEqual(self.offered("snug "), {*commands(), "help", "version"})
        self.assertEqual(self.offered("snug fit --val"), {"--val-x", "--val-y", "--val-sample-weight", "--validation-split"})
        self.assertEqual(self.offered("snug ops --color a"), {"auto", "always"})
        self.assertEqual(self.offered("snug make-data s"), {"shapes"})
        self.assertEqual(self.offered("snug plan m"), {"model.json"})


class AllShells(unittest.TestCase):
    """What is not asked of a shell is looked for in its file."""

    def test_every_option_is_in_every_file(self):
        zsh, fish = read(ZSH), read(FISH)
        for command in commands():
            of_zsh = re.search(rf"^    {command}\)$(.*?)^        ;;$", zsh, re.M | re.S).group(1)
            self.assertEqual(re.findall(r"'--([a-z-]+)", of_zsh), list(options(command)))
            self.assertEqual(re.findall(rf"^complete .*seen_subcommand_from {command}' -l ([a-z-]+)", fish, re.M),
                             list(options(command)))


class Man(unittest.TestCase):
    @staticmethod
    def path(command):
        return os.path.join(SHARE, "man/man1", f"snug-{command}.1" if command else "snug.1")

    def page(self, command=None):
        return read(self.path(command))

    def test_a_page_for_each_command_and_no_other(self):
        self.assertEqual(set(os.listdir(os.path.join(SHARE, "man/man1"))),
                         {"snug.1"} | {f"snug-{c}.1" for c in commands()})

    def test_sections(self):
        for command in [None, *commands()]:
            found = [s for s in re.findall(r"^\.SH (.*)$", self.page(command), re.M) if s not in ("COMMANDS", "ENVIRONMENT")]
            self.assertEqual(found, ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"])

    def test_every_option_with_its_argument_and_default(self):
        for command in commands():
            entries = re.findall(r"^--(\S+) ?(\S*)\n(.*)$", plain(self.page(command)), re.M)
            self.assertEqual({name: (argument, text) for name, argument, text in entries}, options(command))

    def test_the_overview_has_every_command_and_exit_code(self):
        text = plain(self.page())
        for command in commands():
            self.assertRegex(text, rf"(?m)^{command} ")
            self.assertIn(f"snug-{command}(1)", text)
        for code in (0, 1, 2, 3, 4, 5, 6, 70):
            self.assertRegex(text, rf"(?m)^{code}$")

    def test_examples_are_of_the_command(self):
        for command in commands():
            lines = re.search(r"^\.EX\n(.*?)^\.EE$", self.page(command), re.M | re.S).group(1)
            self.assertRegex(plain(lines), rf"^snug {command}\b")

    @unittest.skipUnless(shutil.which("man") and shutil.which("groff"), "no man here")
    def test_man_has_no_warnings(self):
        for command in [None, *commands()]:
            r = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", self.path(command)], capture_output=True, text=True,
                               env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}, timeout=600)
            self.assertEqual((r.returncode, r.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
