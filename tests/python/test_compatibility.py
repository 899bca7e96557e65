#!/usr/bin/env python3
"""docs/compatibility.md says what this Snug answers to."""
import os
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


if __name__ == "__main__":
    unittest.main()
