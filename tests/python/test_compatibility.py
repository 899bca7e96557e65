#!/usr/bin/env python3
"""docs/compatibility.md says what this Snug answers to."""
import glob
import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Table(unittest.TestCase):
    def test_the_page_is_what_the_tool_prints(self):
        made = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "compat_md.py"), os.path.join(ROOT, "tests", "parity", "names.txt")],
                              capture_output=True, text=True, check=True).stdout
        with open(os.path.join(ROOT, "docs", "compatibility.md")) as f:
            self.assertTrue(f.read() == made, "docs/compatibility.md is old: run tools/compat_md.py tests/parity/names.txt > docs/compatibility.md")


# Arguments that change no value here: hints, names, what is the only way it is done, what an error comes of anyway.
NO_MATTER = set("""name message shift synchronized stable sorted sparse a_is_sparse b_is_sparse grad_a grad_b var bad_indices_policy alg rng_alg
    saturate assume_unique flash_attention fast validate_args validate_indices conjugate""".split())
ELSEWHERE = {("count_nonzero", "keepdims"), ("split", "num"), ("linspace", "axis")}     # read by a helper; follows from others


class Functions(unittest.TestCase):
    def test_each_argument_of_a_row_is_read(self):
        """An argument that a function has in its row and never asks for would be ignored without a word."""
        bodies = {}
        for path in glob.glob(os.path.join(ROOT, "src", "eager", "*.c")):
            with open(path) as f:
                for name, body in re.findall(r"^[\w ]+?\*?(\w+)\([^)]*\) \{\n(.*?)^\}", f.read(), re.M | re.S):
                    bodies[name] = bodies.get(name, "") + body
        with open(os.path.join(ROOT, "src", "eager", "functions.def")) as f:
            rows = re.findall(r'^SNUG_FN\((\w+), \w+, "([^"]*)", "([^"]*)"', f.read(), re.M)
        self.assertGreater(sum("sn_fn_" + function in bodies for function, _, _ in rows), 400)      # macros make the others

        def reached(name, seen):
            if name in seen or name not in bodies:
                return ""
            seen.add(name)
            return bodies[name] + "".join(reached(n, seen) for n in set(re.findall(r"\b(\w+)\(", bodies[name])))

        unread = []
        for function, names, arguments in rows:
            text = reached("sn_fn_" + function, set())
            for name, kind in re.findall(r"(\w+):([A-Z])\S*=", arguments) if text else ():
                if kind != "T" and name not in NO_MATTER and (function, name) not in ELSEWHERE and f'"{name}"' not in text:
                    unread.append(f"{names.split()[0]}: {name}")
        self.assertEqual(unread, [])


if __name__ == "__main__":
    unittest.main()
