#!/usr/bin/env python3
"""README.md, ARCHITECTURE.md, CONTRIBUTING.md and docs/: their commands run as printed, what they name exists, their measured numbers are those
of bench/speed.json. usage: test_docs.py SOURCE BUILD

How a page says what a block is, by the word behind its fence:
  sh       commands, run by bash one block after the other in one folder that looks like a fresh clone with `make` run in it
  console  `$ command` and what it prints: those lines come in that order, other numbers allowed; `...` stands for any lines
  python   a program for build/venv/bin/python
  text, c  nothing is run
A block whose next line begins with `*Needs ` (a GPU, TensorFlow, ...) is skipped; one with `*Takes ` runs where SNUG_TEST_FULL is set, but
for what this test is itself part of (`make`, `make test`). One that calls make is of the second kind."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] + sorted(os.path.relpath(p, SOURCE) for p in glob.glob(os.path.join(SOURCE, "docs", "*.md")))
BLOCK = re.compile(r"^```(\S*)\n(.*?)^```\n(?:\n?\*((?:Needs|Takes) [^\n*]*)\*)?", re.M | re.S)
LANGUAGES = {"sh", "console", "python", "text", "c"}
MOST_WORDS = 1000  # of the README
OWN = {"make", "make test", "make test-full"}
PEERS = re.compile(r"TensorFlow|PyTorch|JAX|ONNX Runtime|oneDNN|OpenBLAS|pocketfft|tf\.data(?! ?\.)")
MEASURED = ["docs/speed.md", "docs/libraries.md"]  # where figures beside other engines and libraries stand
TEST_TAKES = {"README.md": r"make test\n```\n\*Takes ([^:*\n]+)", "CONTRIBUTING.md": r"`make test` before you are done: it takes ([^,\n]+)",
              "docs/reliability.md": r"(?m)^\| `make test` \|.*\| ([^|]+) \|$"}
FIGURE = re.compile(r"(?<![\w.=])(\d[\d,.]*) ?(ns|us|ms|s|MiB|/s|x)\b(?! \d)")


def read(name):
    with open(os.path.join(SOURCE, name)) as f:
        return f.read()


def blocks(name):
    """(line, language, text, mark) of each block."""
    text = read(name)
    for m in BLOCK.finditer(text):
        yield text.count("\n", 0, m.start()) + 1, m.group(1), m.group(2), m.group(3)


def commands(text):
    """Those of a console block: the lines behind `$ `, and what each prints."""
    parts = re.split(r"^\$ ", text, flags=re.M)
    return [(part.split("\n", 1)[0], part.split("\n", 1)[1]) for part in parts[1:]]


def plain(line):
    """Without bars, numbers and the units that follow from them."""
    line = re.sub(r"[\u2580-\u259f]| <- bottleneck", "", line)
    return " ".join(re.sub(r"[-+]?\d[\d,.]*( ?([KMGT]?i?B|[num]?s|KFLOP|[KMGT])\b)?", "#", line).split())


def missing(expected, output):
    """The first expected line that does not come, or None."""
    rest = iter([plain(line) for line in output.split("\n")])
    for line in expected.split("\n"):
        if line.strip() not in ("", "...") and plain(line) not in rest:
            return line
    return None


class Clone:
    """A folder with the tree's top, `build` and nothing else; what commands write lies beside that."""

    def __init__(self, whole=False):
        self.dir = tempfile.mkdtemp(prefix="snug-docs-")
        names = subprocess.run(["git", "ls-files"], cwd=SOURCE, capture_output=True, text=True, check=True).stdout.splitlines()
        if whole:
            for name in names:
                os.makedirs(os.path.dirname(os.path.join(self.dir, name)), exist_ok=True)
                shutil.copy(os.path.join(SOURCE, name), os.path.join(self.dir, name))
        else:
            for name in {n.split("/")[0] for n in names}:
                os.symlink(os.path.join(SOURCE, name), os.path.join(self.dir, name))
            os.symlink(BUILD, os.path.join(self.dir, "build"))

    def run(self, *command):
        environment = {**os.environ, "PATH": os.path.join(self.dir, "build") + ":" + os.environ["PATH"], "SNUG_DEVICE": "cpu", "NO_COLOR": "1"}
        return subprocess.run(command, cwd=self.dir, capture_output=True, text=True, timeout=120 if not os.environ.get("SNUG_TEST_FULL") else 1800, env=environment, errors="replace")

    def remove(self):
        shutil.rmtree(self.dir)


class Commands(unittest.TestCase):
    def left_out(self, mark, text):
        if mark is None:
            return False
        return mark.startswith("Needs") or not os.environ.get("SNUG_TEST_FULL") or bool(OWN & set(text.split("\n")))

    def try_block(self, clone, where, language, text):
        if language == "sh":
            pairs = [(("bash", "-euo", "pipefail", "-c", text), "")]
        elif language == "python":
            pairs = [(("build/venv/bin/python", "-c", text), "")]
        else:
            pairs = [(("bash", "-euo", "pipefail", "-c", command), expected) for command, expected in commands(text)]
        for command, expected in pairs:
            run = clone.run(*command)
            self.assertEqual(run.returncode, 0, f"{where}: {command[-1]}\n{run.stdout[-1500:]}{run.stderr[-1500:]}")
            line = missing(expected, run.stdout + "\n" + run.stderr)
            self.assertIsNone(line, f"{where}: this does not come any more: {line}\n{run.stdout[-3000:]}")

    def page(self, name):
        clone, skipped = Clone(), []
        try:
            for line, language, text, mark in blocks(name):
                if language not in ("sh", "console", "python"):
                    continue
                with self.subTest(page=name, line=line):
                    self.assertTrue(mark or not re.search(r"^make\b", text, re.M), f"{name}:{line}: how long does make take?")
                    if self.left_out(mark, text):
                        skipped.append(f"{name}:{line} {mark}")
                    elif "make " in text:
                        whole = Clone(whole=True)
                        self.try_block(whole, f"{name}:{line}", language, text)
                        whole.remove()
                    else:
                        self.try_block(clone, f"{name}:{line}", language, text)
        finally:
            clone.remove()
        for one in skipped:
            with self.subTest(page=one):
                self.skipTest(one)


for _name in PAGES:
    setattr(Commands, "test_" + re.sub(r"\W", "_", _name), lambda self, name=_name: self.page(name))


class Pages(unittest.TestCase):
    def test_each_block_says_what_it_is(self):
        for name in PAGES:
            for line, language, _, _ in blocks(name):
                self.assertIn(language, LANGUAGES, f"{name}:{line}")
            self.assertIsNone(re.search(r"(?:\A|\n)\n {4}[^\s*-][^\n]*\n(?! {2})", read(name)), f"{name}: a block of commands without a fence")

    def test_commands_name_files_that_git_has(self):
        tracked = set(subprocess.run(["git", "ls-files"], cwd=SOURCE, capture_output=True, text=True, check=True).stdout.splitlines())
        tracked |= {n[:m.start()] for n in tracked for m in re.finditer("/", n)}
        for name in PAGES:
            for line, language, text, _ in blocks(name):
                for path in re.findall(r"(?<![\w/])(?:examples|bench|tools|tests|docs)/[\w./-]*\w", text) if language in ("sh", "console", "python") else []:
                    self.assertTrue(path in tracked, f"{name}:{line}: git has no {path}")

    def test_links_lead_somewhere(self):
        for name in PAGES:
            for target in re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", read(name)):
                if "://" not in target:
                    self.assertTrue(os.path.exists(os.path.join(SOURCE, os.path.dirname(name), target)), f"{name}: {target}")

    def test_named_files_exist(self):
        """In code style, with a folder: from the root, or from src, include, docs or python/snug."""
        for name in PAGES:
            for path in re.findall(r"`([a-z_]+(?:/[\w*]+)*/[\w*]+\.(?:c|h|cu|cc|py|md|def|sh|txt))\b", read(name)):
                if "NAME" in path:
                    continue
                places = [os.path.join(SOURCE, place, path) for place in ("", "src", "include", "docs", "python", "python/snug")] + [os.path.join(BUILD, path)]
                self.assertTrue(any(glob.glob(p) for p in places), f"{name}: {path}")

    def test_the_readme_is_short(self):
        self.assertLessEqual(len(read("README.md").split()), MOST_WORDS)


class Numbers(unittest.TestCase):
    def test_tables_are_those_of_the_json(self):
        run = subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "bench", "speed_md.py"), "--check"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_each_section_is_shown(self):
        import json
        shown = set(re.findall(r"<!-- speed: (\w+) -->", read("docs/speed.md")))
        self.assertEqual(shown, set(json.loads(read("bench/speed.json"))))

    def test_all_sections_are_of_one_run(self):
        import json
        self.assertEqual(len({s["commit"] for s in json.loads(read("bench/speed.json")).values()}), 1)

    def test_no_page_has_another_number(self):
        """A line that sets a figure beside another engine's or library's name has it from one of two pages."""
        known = {"".join(m) for name in MEASURED for m in FIGURE.findall(read(name))}
        for name in PAGES:
            if name in (*MEASURED, "docs/ops.md", "docs/compatibility.md"):
                continue
            for n, line in enumerate(read(name).split("\n"), 1):
                if PEERS.search(line):
                    other = {"".join(m) for m in FIGURE.findall(line)} - known
                    self.assertFalse(other, f"{name}:{n} has {other}, which {MEASURED} have not: {line.strip()}")

    def test_pages_agree_how_long_the_tests_take(self):
        said = {name: re.findall(words, read(name)) for name, words in TEST_TAKES.items()}
        self.assertEqual([len(s) for s in said.values()], [1, 1, 1], said)
        self.assertEqual(len(set(sum(said.values(), []))), 1, said)


class Itself(unittest.TestCase):
    def test_it_can_fail(self):
        clone = Clone()
        try:
            for language, text in (("sh", "false\n"), ("sh", "true\nsnug plan nowhere.json\n"), ("console", "$ echo some words\nother words\n"), ("python", "import nowhere\n")):
                with self.assertRaises(AssertionError):
                    Commands.try_block(self, clone, "here", language, text)
            Commands.try_block(self, clone, "here", "console", "$ printf 'a 1\\nb 2\\nc 3 KiB\\n'\na 7\n...\nc 12.0 MiB\n")
        finally:
            clone.remove()
        self.assertEqual(list(FIGURE.findall("takes 12.7 s, 3 MiB, 2,000 /s, 4 sheets and 0.5x")), [("12.7", "s"), ("3", "MiB"), ("2,000", "/s"), ("0.5", "x")])


if __name__ == "__main__":
    unittest.main()
