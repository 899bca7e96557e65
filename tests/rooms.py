#!/usr/bin/env python3
"""The shape of the code as a test: rooms include only rooms above them, memory is requested in one room, no switch over
operators, functions fit a screen and are called, no file exceeds 800 lines, names of files are unique, nobody but a runner asks what a device is, no path of
somebody's machine. usage: rooms.py SOURCE"""
import os
import re
import subprocess
import sys

ROOMS = "base memory tensor op graph function nn plan kernels/cpu kernels/cuda budget exec record codec data model train eager report cli python".split()
MAX_FUNCTION, MAX_FILE, MAX_COLUMNS = 60, 800, 100
ALLOCATE = re.compile(r"\b(malloc|calloc|realloc|reallocarray|aligned_alloc|posix_memalign|alloca|mmap|strdup|strndup|asprintf)\s*\(")
OPTION = re.compile(r'"[^"]*--[a-z]')
# What a device is, only these know: the plug-in, the GPU's runner and its tables in other rooms, the side of recorded code that is a card.
RUNNER = re.compile(r"src/kernels/cuda/|src/[a-z/]+/(?:gpu[a-z_]*|[a-z_]+_gpu|record_card|record_place)\.c$")
ASKS_DEVICE = re.compile(r"\bsn_gpu_of\b|\bsn_engine_gpu\b|\bon_card\b|\bcard_block\b|->card\b|->away\b|[!=]=\s*&sn_host_side\b|\b(?:if|while|for)\b[^;]*gpu|\w*gpu\w*(?:\([^()]*\))?\s*\?")
SEES_DEVICE = re.compile(r'"(?:exec/gpu[a-z_]*|record/card)\.h"')
IMPL_TEXT = re.compile(r'"(?:cublaslt|cudnn|host):')  # whose kernel a plan's text names: src/op/impl.h
# Functions that no file of src calls: tests have no other way to what they look at, or replace.
FOR_TESTS = {
    "sn_cpu_family_for": "kernels of a named instruction set", "sn_cpu_picture_for": "the same of pictures",
    "sn_fault_io": "the hook that makes requests fail", "sn_fault_struck": "the same", "sn_fault_memory_requests": "the same", "sn_fault_io_requests": "the same",
    "sn_spill_is_direct": "whether the system's cache is passed by", "sn_source_from_file": "see tensor/source.h",
}
MACHINE_PATH = re.compile(r"/(?:root|farm)/|/home/[a-z]+/")


def room_of(path):
    inside = path.split("src/", 1)[1]
    return next((r for r in ROOMS if inside.startswith(r + "/")), None)


def code_only(text):
    """The text with comments and strings blanked, line structure kept."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def comments_blank(text):
    """The text with comments blanked; strings stay."""
    keep = lambda m: m.group(0) if m.group(0).startswith('"') else re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', keep, text, flags=re.S)


def includes(path, text, say):
    room = room_of(path)
    for n, line in enumerate(text.split("\n"), 1):
        m = re.match(r'\s*#include\s+"([^"]+)"', line)
        if not m:
            continue
        if room in ("cli", "python"):
            if "/" in m.group(1):
                say(path, n, "the command and the extension see only public headers and their own, not " + m.group(1))
            continue
        other = room_of("src/" + m.group(1))
        if other is None:
            say(path, n, f"unknown room in include {m.group(1)}")
        elif ROOMS.index(other) > ROOMS.index(room):
            say(path, n, f"room {room} includes {m.group(1)} from the room {other} below it")


def functions(code):
    """(line, name, length) of each function: a head that starts in column 0 and ends in '{', up to '}' in column 0."""
    lines = code.split("\n")
    head = start = None
    for i, line in enumerate(lines):
        if start is not None:
            if line.startswith("}"):
                yield start + 1, head, i - start + 1
                start = None
        elif re.match(r"[A-Za-z_]", line) and not re.match(r"typedef|struct\b[^()]*$|enum|union", line):
            name = re.search(r"(\w+)\s*\(", line)
            j = i
            while j < len(lines) - 1 and not re.search(r"[;{}]\s*$", lines[j]):
                j += 1
            if name and lines[j].rstrip().endswith("{") and "=" not in " ".join(lines[i:j + 1]):
                head, start = name.group(1), j


POINTLESS = re.compile(r'\b(vsnprintf|strtod|atof)\s*\(|\bsnprintf\([^;]*?%[-+ #0-9.*]*l?[gfeGE]\b')


def decimal_points(path, text, say):
    """What prints or reads real numbers does it with a point under every locale."""
    if path.startswith(("src/cli/", "src/kernels/cuda/")) or path == "src/base/real.c":     # the command stays in the locale "C"
        return
    for m in POINTLESS.finditer(re.sub(r"/\*.*?\*/", lambda c: re.sub(r"[^\n]", " ", c.group(0)), text, flags=re.S)):
        say(path, text.count("\n", 0, m.start()) + 1, "a real number under the locale's decimal point; use base/real.h: " + m.group(0).split("\n")[0])


def same_names(root, files, say):
    """A file's name says what is in it without its folder, and is used once."""
    first = {}
    for path in files:
        name = os.path.basename(path)
        if path.startswith("src/") and os.path.exists(os.path.join(root, path)) and first.setdefault(name, path) != path:
            say(path, 1, f"has the name of {first[name]}")


class Calls:
    """Functions sn_* that src defines, and which of its files name them for anything but that. Names that macros put together (sn_shape_##x) count as named
    where what is put behind stands in a table."""

    def __init__(self):
        self.defined, self.named, self.pasted, self.words = {}, set(), set(), set()

    def look(self, path, code):
        self.pasted |= set(re.findall(r"\b(sn_\w+?)##", code))
        if path.endswith(".def"):
            self.words |= set(re.findall(r"\w+", code))
        for line in code.split("\n"):
            self.named |= set(re.findall(r"\bsn_\w+" if line[:1] in " \t#" else r"\bsn_\w+\b(?! *\()", line))
        self.defined.update({name: (path, n) for n, name, _ in functions(code) if name.startswith("sn_")})

    def unused(self):
        return {name: at for name, at in self.defined.items() if name not in self.named
                and not any(name.startswith(p) and name[len(p):] in self.words for p in self.pasted)}


def exceptions(root):
    path = os.path.join(root, "tests", "style-exceptions")
    out = {}
    for line in open(path):
        if line.strip() and not line.startswith("#"):
            name, reason = line.split(None, 1)
            out[name] = reason
    return out


def main(root):
    bad = []
    say = lambda path, n, what: bad.append(f"{path}:{n}: {what}")
    allowed = exceptions(root)
    used, calls = set(), Calls()
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True).stdout.split()
    same_names(root, files, say)
    for path in files:
        if not path.endswith((".c", ".h", ".def", ".cu", ".py", ".sh", ".md", ".txt", ".cmake")) or not os.path.exists(os.path.join(root, path)):
            continue
        text = open(os.path.join(root, path), errors="replace").read()
        for n, line in enumerate(text.split("\n"), 1):
            if MACHINE_PATH.search(line) and path != "tests/rooms.py":
                say(path, n, "names a path of a machine")
        if not path.endswith((".c", ".h", ".cu", ".def")) or not path.startswith("src/"):
            continue
        code = code_only(text)
        calls.look(path, code)
        if path.endswith(".def"):
            continue
        includes(path, text, say)
        decimal_points(path, text, say)
        for m in IMPL_TEXT.finditer(comments_blank(text)) if path != "src/op/impl.h" else ():
            say(path, text.count("\n", 0, m.start()) + 1, "spells what op/impl.h names: " + m.group(0))
        if path.startswith("src/record/") and path != "src/record/card.h" and not RUNNER.search(path) and SEES_DEVICE.search(text):
            say(path, 1, "looks into what only the side that is a card knows: " + SEES_DEVICE.search(text).group(0))
        if text.count("\n") > MAX_FILE and path not in allowed:
            say(path, 1, f"{text.count(chr(10))} lines; split it")
        for n, line in enumerate(text.split("\n"), 1):
            if not path.startswith(("src/cli/", "src/report/")) and OPTION.search(line):
                say(path, n, "names an option of the command, which C and Python do not have: " + line.strip())
            if len(line) > MAX_COLUMNS and not re.match(r"\s+X\(", line):  # rows of a table stay one line
                say(path, n, f"{len(line)} columns")
        for n, line in enumerate(code.split("\n"), 1):
            if not path.startswith("src/memory/") and ALLOCATE.search(line):
                say(path, n, "requests memory outside src/memory: " + line.strip())
            if path.endswith(".c") and not RUNNER.search(path) and ASKS_DEVICE.search(line):
                say(path, n, "asks what a device is; that is a function of the runners' table: " + line.strip())
            if re.search(r"\bcase\s+SN_OP_", line):
                say(path, n, "a switch over operators; use a column of the table")
            if not path.startswith("src/cli/") and re.search(r"\b(printf|puts|fprintf|exit|abort)\s*\(", line) and "__attribute__" not in line:
                say(path, n, "the library never prints, exits or aborts: " + line.strip())
            if re.search(r"\b(TODO|FIXME|XXX)\b", text.split("\n")[n - 1]):
                say(path, n, "TODO without an issue")
        for n, name, length in functions(code):
            if length > MAX_FUNCTION:
                if name in allowed:
                    used.add(name)
                else:
                    say(path, n, f"function {name} has {length} lines; at most {MAX_FUNCTION}, or list it with a reason in tests/style-exceptions")
    unused = calls.unused()
    for name in sorted(set(unused) - set(FOR_TESTS)):
        say(*unused[name], f"nobody in src calls {name}; what only tests need is theirs")
    for name in sorted(set(FOR_TESTS) & set(calls.defined) - set(unused)):
        say("tests/rooms.py", 1, f"{name} is listed as of tests alone, but src calls it")
    for name in sorted(set(allowed) - used):
        if not name.startswith("src/"):
            bad.append(f"tests/style-exceptions: {name} is listed but fits, remove it")
    print("\n".join(bad) or f"rooms: {len(files)} files keep the shape")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
