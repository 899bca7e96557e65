#!/usr/bin/env python3
"""The tables of docs/speed.md and README.md, from bench/speed.json: one place for each measured number.

usage: bench/speed_md.py            writes the tables between `<!-- speed: NAME -->` and `<!-- end -->` on those pages
       bench/speed_md.py --check    writes nothing; ends with 1 where a page is not what it would write

A section of the JSON is one run: its command, date, machine and commit, `columns`, and `rows` of a text and a cell a column. A cell is null, a
text, or numbers with their unit: seconds `s`, a rate `per_s`, `percent`, and `mib`, the peak of the process (on a GPU, of the card).
bench/run.py, door.py, data.py, budget.py and gpu/table.py put their run there where they are given `--json` (a whole run, of all rows)."""
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
FILE = os.path.join(HERE, "speed.json")
PAGES = ["README.md", "docs/speed.md"]
REGION = re.compile(r"(<!-- speed: ([a-z_]+) -->\n)(.*?)(<!-- end -->)", re.S)
# The front page's table: rows of sections that have Snug in the first column and TensorFlow in the second.
FRONT = [("a training step of an MLP 100-64-10, batch 20,000", "steps", "MLP 100-64-10, batch 20,000"),
         ("of Conv32-pool-dense10 on 128x128x3, batch 32", "steps", "Conv32(3x3)-pool-dense10, 128x128x3, batch 32"),
         ("of ResNet-20 on 32x32x3, batch 128", "steps", "ResNet-20, 32x32, batch 128"),
         ("of a transformer 4x256, T = 128, batch 16", "steps", "Transformer 4x256, T=128, batch 16, vocabulary 1000"),
         ("a prediction of ResNet50", "predictions", "ResNet50, 224x224"),
         ("JPEGs decoded, resized and batched", "data", "1,500 JPEGs of 500x375: shuffle, decode, resize 224, scale, batch 32, prefetch"),
         ("`import tensorflow` (Snug's, beyond NumPy)", "door", "import"),
         ("a Python script of ten such Conv32 steps, from start to end", "door", "conv32, ten steps, whole script")]


def load():
    with open(FILE) as f:
        return json.load(f)


def figures(x, digits=3):
    """Three figures, and all of those before the point."""
    if x >= 10 ** digits:
        return f"{x:,.0f}"
    return f"{x:.{digits}g}" if "e" not in f"{x:.{digits}g}" else f"{x:.0f}"


def seconds(s):
    return figures(s) + " s" if s >= 1 else figures(s * 1e3) + " ms" if s >= 1e-4 else figures(s * 1e6) + " us"


def said(cell):
    if cell is None or isinstance(cell, str):
        return cell or ""
    first = (seconds(cell["s"]) if "s" in cell else figures(cell["per_s"]) + " /s" if "per_s" in cell
             else f"{cell['percent']:+.1f} %" if cell.get("signed") else figures(cell["percent"]) + " %" if "percent" in cell else "")
    return ", ".join(([first] if first else []) + ([figures(cell["mib"]) + " MiB"] if "mib" in cell else []))


def against(cells):
    """Time and memory as parts of the best of the others'."""
    own, others = cells[0], [c for c in cells[1:] if c]
    return [f"{own[k] / min(c[k] for c in others):.2f}x" if own and others else "" for k in ("s", "mib")]


def table(head, rows):
    lines = ["| " + " | ".join(cells) + " |" for cells in [head, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]]) + "\n"


def section(one):
    head = [one.get("corner", "")] + one["columns"] + (["time", "memory"] if one.get("against") else [])
    rows = [[text, *map(said, cells), *(against(cells) if one.get("against") else [])] for text, cells in one["rows"]]
    source = f"`{one['command']}`, {one['date']}, {one['machine']}, commit {one['commit']}."
    return table(head, rows) + "\n" + " ".join([source] + [one[k] for k in ("about", "note") if one.get(k)]) + "\n"


def front(data):
    rows = []
    for text, name, row in FRONT:
        cells = dict(map(tuple, data[name]["rows"]))[row]
        rows.append([text, said(cells[0]), said(cells[1])])
    return table(["", "Snug", "TensorFlow 2.21"], rows)


def page(text, data):
    def write(m):
        return m.group(1) + (front(data) if m.group(2) == "front" else section(data[m.group(2)])) + m.group(4)
    return REGION.sub(write, text)


def processor():
    with open("/proc/cpuinfo") as f:
        cpu = re.search(r"^model name\s*: (.*)$", f.read(), re.M)
    return f"{len(os.sched_getaffinity(0))} cores of an {cpu.group(1) if cpu else 'unknown processor'}"


def merge(name, columns, rows, command, machine=None):
    """A run becomes the section of that name; its title, unit and `about` stay, a note on the run before goes."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    data = load()
    kept = {k: v for k, v in data.get(name, {}).items() if k in ("corner", "about", "against")}
    data[name] = {**kept, "command": command, "date": time.strftime("%Y-%m-%d"), "machine": machine or processor(), "commit": git("rev-parse", "--short=8", "HEAD"),
                  "columns": columns, "rows": rows}
    with open(FILE, "w") as f:
        f.write(text_of(data))


def text_of(data):
    """A row a line."""
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return re.sub(r"\n   \[\n.*?\n   \](?=,?\n)", lambda m: "\n   " + json.dumps(json.loads(m.group(0)), ensure_ascii=False), text, flags=re.S) + "\n"


def wanted(words):
    """Whether `--json` is among the words of a command, which it is taken from."""
    if "--json" not in words:
        return False
    words.remove("--json")
    return True


def main(words):
    data, bad = load(), False
    for name in PAGES:
        path = os.path.join(ROOT, name)
        with open(path) as f:
            text = f.read()
        new = page(text, data)
        if words == ["--check"]:
            bad |= new != text
            print(f"{name} is not what bench/speed_md.py writes" if new != text else f"{name} is as bench/speed.json has it")
        elif new != text:
            with open(path, "w") as f:
                f.write(new)
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
