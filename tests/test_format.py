#!/usr/bin/env python3
"""The tree is laid out as tools/format.py wants it, and that finds what it is there for. A program that is missing skips its test.
usage: test_format.py SOURCE"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, os.path.join(SOURCE, "tools"))
import format as layout  # noqa: E402 (found by the path above)


class Format(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="snug-format-")
        shutil.copy(os.path.join(SOURCE, ".clang-format"), self.dir)

    def tearDown(self):
        shutil.rmtree(self.dir)

    def of(self, look, files, root=SOURCE):
        try:
            return look(files, root)
        except layout.Missing as e:
            self.skipTest(str(e))

    def says(self, look, name, text):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(text)
        return self.of(look, [name], self.dir)

    def test_c_is_laid_out(self):
        self.assertEqual(self.of(layout.look_at_c, layout.tracked(SOURCE)), "")

    def test_c_that_is_not_is_found(self):
        self.assertEqual(self.says(layout.look_at_c, "good.c", "int f(int a) {\n    return a;\n}\n"), "")
        self.assertIn("bad.c:1", self.says(layout.look_at_c, "bad.c", "int f(int a) { return  a;\n}\n"))

    def test_formulas_in_comments_stay(self):
        formula = "//  m = b1 m + (1 - b1) g\n//  v = b2 v + (1 - b2) g^2" + " + 0" * 40 + "\nint a;\n"
        self.assertEqual(self.says(layout.look_at_c, "formula.h", formula), "")

    def test_comments_end_on_a_line_of_text(self):
        self.assertEqual(layout.look_at_comments(layout.tracked(SOURCE), SOURCE), "")
        dashes = "-" * 80
        self.assertEqual(self.says(layout.look_at_comments, "whole.h", f"/* --- layers {dashes} */\n/* two\n * lines */\nint a; /* a */\n"), "")
        for text in (f"/* --- layers {dashes}\n */\n", "/* a line\n */\n", "int a; /* a line\n        */\n", "#define A 1 /* a line \\\n */ \\\n  + 1\n"):
            self.assertIn("cut.h:2", self.says(layout.look_at_comments, "cut.h", text))

    def test_python_is_in_order(self):
        self.assertEqual(self.of(layout.look_at_python, layout.tracked(SOURCE)), "")

    def test_python_that_is_not_is_found(self):
        self.assertEqual(self.says(layout.look_at_python, "good.py", "import os\nprint(os.sep)\n"), "")
        said = self.says(layout.look_at_python, "bad.py", "import os\nprint(o.sep)\n")
        self.assertIn("bad.py:1", said)
        self.assertIn("Undefined name `o`", said)

    def test_the_hook_looks_at_what_is_staged(self):
        """The staged text counts, whatever lies in the folder."""
        for look in (layout.clang_format, layout.ruff):
            self.of(lambda files, root: look(), [])
        git = lambda *words: subprocess.run(["git", *words], cwd=self.dir, check=True, capture_output=True)
        git("init", "-q")
        os.makedirs(os.path.join(self.dir, "tools", "hooks"))
        for name in ("ruff.toml", "tools/format.py", "tools/fetched.py", "tools/hooks/pre-commit"):
            shutil.copy(os.path.join(SOURCE, name), os.path.join(self.dir, name))
        if os.path.isdir(os.path.join(SOURCE, "build")):  # where ruff is
            os.symlink(os.path.join(SOURCE, "build"), os.path.join(self.dir, "build"))
        git("config", "core.hooksPath", "tools/hooks")
        commit = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "c"]
        path = os.path.join(self.dir, "a.c")
        for staged, left, code in (("int  a;\n", "int a;\n", 1), ("int a;\n", "int  a;\n", 0)):
            for text, then in ((staged, lambda: git("add", "a.c")), (left, lambda: None)):
                with open(path, "w") as f:
                    f.write(text)
                then()
            run = subprocess.run(commit, cwd=self.dir, capture_output=True, text=True)
            self.assertEqual(run.returncode, code, run.stderr)
            self.assertEqual("a.c:1" in run.stderr, bool(code), run.stderr)


if __name__ == "__main__":
    unittest.main()
