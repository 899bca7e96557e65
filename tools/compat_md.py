#!/usr/bin/env python3
"""Prints docs/compatibility.md: which of TensorFlow's and Keras' public names Snug has, found by looking them up. Run with a Python
that has snug: build/venv/bin/python tools/compat_md.py tests/parity/names.txt > docs/compatibility.md"""
import sys
import textwrap

from snug import _check

HEAD = """# Which names of TensorFlow 2.21 and Keras 3 are there

Made by `tools/compat_md.py` from `tests/parity/names.txt` (names recorded on TensorFlow) and from what this Snug answers to; a test compares
the two. Do not edit. A name that is there may lack some of its arguments: then the call says so. `python -m snug --check script.py` looks
a script through.

| module | has | of |
|---|---|---|"""


def rows(path):
    """(module, names it has, names it lacks) for each line of the list."""
    with open(path) as f:
        for line in f:
            module, names = line.split(":")
            dotted = module if module.startswith("keras") else "tensorflow" + module[2:]
            if _check.lacks(dotted):
                yield module, [], names.split()
                continue
            lacking = [n for n in names.split() if lacks(dotted, n)]
            yield module, [n for n in names.split() if n not in lacking], lacking


def lacks(module, name):
    if not module.endswith(".Dataset"):
        return bool(_check.lacks(f"{module}.{name}"))
    from snug.data import Dataset
    return not hasattr(Dataset, name)


def paragraph(names):
    return textwrap.fill(", ".join(f"`{n}`" for n in names), 140, break_on_hyphens=False)


def main(path):
    table = list(rows(path))
    print(HEAD)
    for module, has, lacking in table:
        print(f"| `{module}` | {len(has)} | {len(has) + len(lacking)} |")
    print("\n## What is missing")
    for module, has, lacking in table:
        if lacking:
            print(f"\n**{module}**" + (" (the whole module)" if not has else "") + f": {paragraph(lacking)}")


main(sys.argv[1])
