#!/usr/bin/env python3
"""Is the tree as clang-format 14 (.clang-format) lays C out, do its comments end on a line of text, and has ruff (ruff.toml, which names its
version) nothing to say of Python?
usage: tools/format.py [--fix] [FILE...]    the files named, or all that git tracks; --fix mends what can be mended without asking
       tools/format.py --staged             what the next commit holds: of tools/hooks/pre-commit
Ends with 1 where something is found. A program that is missing is said, and what it would look at is left out."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from fetched import ROOT, Missing, fetched

C, PYTHON = (".c", ".h", ".cu", ".cc"), (".py",)


def clang_format():
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path and " 14." in subprocess.run([path, "--version"], capture_output=True, text=True).stdout:
            return path
    raise Missing("clang-format 14 is missing: tools/packages.sh clang-format-14")


def ruff():
    """From build/ruff, where pip puts the version that ruff.toml names."""
    with open(os.path.join(ROOT, "ruff.toml")) as f:
        version = re.search(r'required-version = "==([\d.]+)"', f.read()).group(1)
    return os.path.join(fetched("ruff", version, "bin/ruff"), "bin", "ruff")


def tracked(root):
    return subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()


def of(files, ends, root):
    return [f for f in files if f.endswith(ends) and os.path.exists(os.path.join(root, f))]


def said(command, files, root):
    """What the command says of these files; nothing where it is content, or there are none."""
    if not files:
        return ""
    run = subprocess.run(command + ["--"] * (command[0].endswith("ruff")) + files, cwd=root, capture_output=True, text=True)
    return (run.stdout + run.stderr if run.returncode else "")


def look_at_c(files, root, fix=False):
    program = clang_format()
    return said([program, "-i"] if fix else [program, "--dry-run", "-Werror"], of(files, C, root), root)


def look_at_python(files, root, fix=False):
    command = [ruff(), "check", "--quiet", "--no-cache", "--output-format", "concise", "--config", os.path.join(ROOT, "ruff.toml")]
    return said(command + ["--fix"] * fix, of(files, PYTHON, root), root)


def look_at_comments(files, root, fix=False):
    """A comment that is too long for its line has its end alone on the next: clang-format leaves comments as they are."""
    found = ""
    for name in of(files, C, root):
        with open(os.path.join(root, name)) as f:
            for n, line in enumerate(f, 1):
                if re.match(r"\s*\*/[\s\\]*$", line):
                    found += f"{name}:{n}: a comment's end alone on a line; shorten the comment, or take a word of it along\n"
    return found


def look(files, root=ROOT, fix=False):
    found = False
    for one in (look_at_c, look_at_comments, look_at_python):
        try:
            text = one(files, root, fix)
        except Missing as e:
            text = f"skipped: {e}\n"
        else:
            found |= bool(text)
        sys.stderr.write(text)
    return found


def look_at_staged():
    """The files as they are staged, which may differ from what lies in the folder."""
    names = subprocess.run(["git", "diff", "--cached", "--name-only", "--diff-filter=d", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [n for n in names.split("\0") if n.endswith(C + PYTHON)]
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["git", "checkout-index", "--prefix=" + d + "/", "--", *names], cwd=ROOT, check=True)
        shutil.copy(os.path.join(ROOT, ".clang-format"), d)
        return look(names, d)


def main(words):
    if words == ["--staged"]:
        return look_at_staged()
    fix = "--fix" in words
    files = [os.path.relpath(os.path.abspath(w), ROOT) for w in words if w != "--fix"]
    return look(files or tracked(ROOT), fix=fix)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
